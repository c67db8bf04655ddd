//! What the client sends, on its way to the server.
//!
//! Owns:       the reading half of the client's socket and the writing half of the server's.
//! Promises:   every message is noted in the ledger before it is sent (L1), and goes as it came but
//!             for offloaded values (S6). References leave only when durable (S3).
//! Fails:      bytes that are no message are passed to the server, whose answer the client gets.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use toastrack_sql::{EditMap, RowShape, StatementPlan, apply_edits};
use toastrack_wire::frame::HEADER_LEN;
use toastrack_wire::frontend::{
    Bind, Close, Describe, Execute, Parse, Query, Target, encode_describe, encode_parse,
    encode_query,
};
use toastrack_wire::{Header, frontend_header, tag::frontend as tag};

use super::inbox::{IDLE, Inbox};
use super::ledger::{Entry, SimpleQuery};
use super::outbox::Outbox;
use super::statements::{ParamSite, Statement};
use super::{ABORT, Session};
use crate::catalog::{Snapshot, value_kind};
use crate::intercept::{
    CopyInRows, OffloadedQuery, begins_with_ddl, offload_literals, offload_params,
};
use crate::metrics::{InlineReason, add};
use crate::server::{Reader, Writer};

/// See the module.
pub(super) struct Frontend<'s> {
    pub(super) session: &'s Session,
    client: Reader<'s>,
    server: Writer<'s>,
    pub(super) inbox: Inbox,
    pub(super) outbox: Outbox,
    last_read: usize,
    /// The rows of a copy that are looked into.
    pub(super) copy: Option<CopyInRows>,
    /// How many questions were asked before copies.
    pub(super) questions: u64,
}

/// Longer messages are passed on piece by piece and not looked into.
const LONGEST_FRAME: usize = 16 * 1024 * 1024;

impl<'s> Frontend<'s> {
    pub(super) fn new(
        session: &'s Session,
        client: Reader<'s>,
        server: Writer<'s>,
        received: &[u8],
    ) -> Frontend<'s> {
        Frontend {
            session,
            client,
            server,
            inbox: Inbox::new(received),
            outbox: Outbox::default(),
            last_read: 0,
            copy: None,
            questions: 0,
        }
    }

    /// Runs until the client will send no more; the server has then been told so.
    pub(super) async fn run(&mut self) -> io::Result<()> {
        loop {
            self.abort_if_wanted();
            let header = match frontend_header(&self.inbox.bytes) {
                Ok(header) => header,
                Err(error) => {
                    tracing::debug!(%error, "not a message, left to the server");
                    return self.pass_all().await;
                }
            };
            match header {
                Some(header) if self.inbox.bytes.len() >= header.len => {
                    let frame = self.inbox.take(header.len);
                    self.before_other_message(header.tag);
                    if header.tag == tag::TERMINATE {
                        self.outbox.push(&frame);
                        return self.finish().await;
                    }
                    self.on_message(header.tag, frame);
                    if self.outbox.is_full() {
                        self.flush().await?;
                    }
                }
                Some(header) if can_stream(header) => self.stream(header).await?,
                _ => {
                    let read = match self.linger().await? {
                        Some(read) => read,
                        None => {
                            self.flush().await?;
                            self.fill().await?
                        }
                    };
                    if read == 0 {
                        return self.finish().await;
                    }
                }
            }
        }
    }

    async fn finish(&mut self) -> io::Result<()> {
        self.flush().await?;
        self.server.shutdown().await
    }

    fn on_message(&mut self, tag: u8, frame: Bytes) {
        let body = frame.slice(HEADER_LEN..);
        match tag {
            tag::QUERY => return self.on_query(&body, frame),
            tag::PARSE => return self.on_parse(&body, frame),
            tag::BIND => return self.on_bind(&body, frame),
            tag::EXECUTE => self.before_execute(&body),
            tag::COPY_DATA => return self.on_copy_data(&frame),
            tag::DESCRIBE => {
                let mut ledger = self.session.ledger.lock();
                match Describe::parse(&body) {
                    Ok(Describe {
                        target: Target::Statement,
                        name,
                    }) => {
                        ledger.describe_statement(name);
                    }
                    Ok(Describe {
                        target: Target::Portal,
                        name,
                    }) => {
                        let portal = ledger.portal(name);
                        ledger.describe_portal(portal, false);
                    }
                    Err(_) => ledger.push(Entry::Malformed),
                }
            }
            tag::CLOSE => {
                let mut ledger = self.session.ledger.lock();
                match Close::parse(&body) {
                    Ok(Close {
                        target: Target::Statement,
                        name,
                    }) => ledger.close_statement(name),
                    Ok(Close {
                        target: Target::Portal,
                        name,
                    }) => ledger.close_portal(name),
                    Err(_) => ledger.push(Entry::Malformed),
                }
            }
            tag::SYNC => self.session.ledger.lock().push(Entry::Sync),
            tag::FUNCTION_CALL => self.session.ledger.lock().push(Entry::FunctionCall),
            tag::COPY_DONE | tag::COPY_FAIL => self.session.ledger.lock().push(Entry::CopyEnd),
            // Authentication answers and Flush are not answered one by one.
            _ => {}
        }
        self.outbox.push(&frame);
    }

    /// What a text that is about to be sent may change in what is known.
    fn before_text(&self, text: &[u8]) {
        self.forget_names_if_changed(text);
        if begins_with_ddl(text) {
            self.session.schema_changes();
        }
    }

    fn on_query(&mut self, body: &[u8], frame: Bytes) {
        let mut entry = SimpleQuery::default();
        if let Ok(query) = Query::parse(body) {
            self.before_text(query.text);
            entry.copies_in = self.ask_before_query(query.text);
            entry.copies = toastrack_sql::copies_out(query.text).into();
            if let Some(OffloadedQuery {
                text,
                edits,
                ticket,
            }) = self.offload_query(query.text)
            {
                let start = self.outbox.bytes().len();
                if encode_query(self.outbox.bytes(), text.as_bytes()).is_ok() {
                    entry.edits = Some(Arc::new(edits));
                    let restored = Arc::clone(&entry.restored);
                    self.session.ledger.lock().push(Entry::Query(entry));
                    self.outbox.offloaded(start, frame, ticket, restored);
                    add(&self.session.context.metrics.statements_rewritten, 1);
                    return;
                }
            }
        }
        self.session.ledger.lock().push(Entry::Query(entry));
        self.outbox.push(&frame);
    }

    fn offload_query(&self, text: &[u8]) -> Option<OffloadedQuery> {
        let catalog = self.session.offloading()?;
        if !catalog.tables.mentions(text) {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        offload_literals(
            &self.session.sink(),
            &self.session.context.analyzer,
            &catalog,
            text,
        )
    }

    fn on_parse(&mut self, body: &[u8], frame: Bytes) {
        let Ok(parse) = Parse::parse(body) else {
            self.session.ledger.lock().push(Entry::Malformed);
            return self.outbox.push(&frame);
        };
        self.before_text(parse.query);
        let declared: Vec<u32> = parse.param_types().collect();
        let mut statement = Statement::unknown(declared);
        statement.fixed_shape = toastrack_sql::row_shape(parse.query) == RowShape::Fixed;
        statement.copies = toastrack_sql::copies_out(parse.query);
        let text = std::str::from_utf8(parse.query).ok();
        let catalog = self
            .session
            .offloading()
            .filter(|catalog| catalog.tables.mentions(parse.query));
        if let (Some(catalog), Some(text)) = (catalog, text) {
            statement.copy_in = match &mut toastrack_sql::copies_in(parse.query)[..] {
                [copy] => copy.take().filter(|copy| copy.first),
                _ => None,
            };
            let plan = self
                .session
                .context
                .analyzer
                .statement(&catalog.tables, text);
            let rewritten = declare(&plan, &catalog, text, &mut statement);
            if let Some(Rewritten { text, types, edits }) = rewritten
                && encode_parse(self.outbox.bytes(), parse.name, text.as_bytes(), &types).is_ok()
            {
                statement.edits = (!edits.is_identity()).then(|| Arc::new(edits));
                self.session.ledger.lock().parse(parse.name, statement);
                add(&self.session.context.metrics.statements_rewritten, 1);
                return;
            }
            statement.sites.clear();
        }
        self.session.ledger.lock().parse(parse.name, statement);
        self.outbox.push(&frame);
    }

    fn on_bind(&mut self, body: &[u8], frame: Bytes) {
        let Ok(bind) = Bind::parse(body) else {
            self.session.ledger.lock().push(Entry::Malformed);
            return self.outbox.push(&frame);
        };
        let statement = {
            let mut ledger = self.session.ledger.lock();
            let formats = bind.result_formats().codes().collect();
            ledger.bind(bind.portal, bind.statement, Some(formats));
            ledger.certain_statement(bind.statement)
        };
        let sites = statement
            .as_ref()
            .map_or(&[][..], |statement| &statement.sites);
        if !sites.is_empty() && self.session.offloading().is_some() {
            let params = offload_params(&self.session.sink(), &bind, sites);
            let start = self.outbox.bytes().len();
            if let Some(params) = params
                && params.encode(&bind, self.outbox.bytes()).is_ok()
            {
                let restored = Arc::default();
                self.outbox.offloaded(start, frame, params.ticket, restored);
                return;
            }
        }
        self.outbox.push(&frame);
    }

    /// Rows can be read only by one who knows their types: where the client has not asked, the
    /// proxy does, and keeps the answer to itself.
    fn before_execute(&mut self, body: &[u8]) {
        let mut ledger = self.session.ledger.lock();
        let Ok(execute) = Execute::parse(body) else {
            return ledger.push(Entry::Malformed);
        };
        let portal = ledger.portal(execute.portal);
        if ledger.needs_describe(&portal)
            && encode_describe(self.outbox.bytes(), Target::Portal, execute.portal).is_ok()
        {
            ledger.describe_portal(Arc::clone(&portal), true);
        }
        drop(ledger);
        self.ask_before_execute(&portal);
        self.session.ledger.lock().push(Entry::Execute(portal));
    }

    /// DEALLOCATE and DISCARD give names a new meaning.
    fn forget_names_if_changed(&self, text: &[u8]) {
        let mut ledger = self.session.ledger.lock();
        if ledger.remembers_names() && toastrack_sql::changes_names(text) {
            ledger.forget_names();
        }
    }

    fn abort_if_wanted(&mut self) {
        if std::mem::take(&mut *self.session.abort.lock())
            && let Err(error) = encode_query(self.outbox.bytes(), ABORT)
        {
            tracing::error!(%error, "abort not sent");
        }
    }

    /// Passes a long message on as it arrives.
    async fn stream(&mut self, header: Header) -> io::Result<()> {
        self.before_other_message(header.tag);
        if header.tag == tag::COPY_DATA {
            if self.is_copying() {
                return self.stream_copy(header).await;
            }
            self.session.rows_passed.store(true, Ordering::Relaxed);
        }
        while !self.note_stream(header.tag) {
            // The names stand within the first bytes; more must come before they can be read.
            if self.inbox.bytes.len() >= LONGEST_NAMES {
                return self.pass_all().await;
            }
            self.flush().await?;
            self.fill_amid_message().await?;
        }
        let mut left = header.len;
        loop {
            let here = left.min(self.inbox.bytes.len());
            let piece = self.inbox.take(here);
            self.outbox.push(&piece);
            left -= here;
            if left == 0 {
                return Ok(());
            }
            self.flush().await?;
            self.fill_amid_message().await?;
        }
    }

    /// Notes a long message by what its first bytes say; false if these have not come yet.
    fn note_stream(&mut self, tag: u8) -> bool {
        let start = self.inbox.bytes.get(HEADER_LEN..).unwrap_or_default();
        let mut names = start.split(|byte| *byte == 0);
        let mut ledger = self.session.ledger.lock();
        match tag {
            // A text that is not looked at may give names another meaning.
            tag::QUERY => {
                ledger.forget_names();
                ledger.push(Entry::Query(SimpleQuery::default()));
            }
            tag::FUNCTION_CALL => ledger.push(Entry::FunctionCall),
            tag::PARSE => {
                let (Some(name), Some(_)) = (names.next(), names.next()) else {
                    return false;
                };
                ledger.forget_names();
                ledger.parse(name, Statement::unknown(Vec::new()));
            }
            tag::BIND => {
                let (Some(portal), Some(statement), Some(_)) =
                    (names.next(), names.next(), names.next())
                else {
                    return false;
                };
                ledger.bind(portal, statement, None);
                self.session
                    .context
                    .metrics
                    .count_inline(InlineReason::TooLarge);
            }
            _ => {}
        }
        true
    }

    /// Passes on whatever comes, for the server to judge.
    async fn pass_all(&mut self) -> io::Result<()> {
        self.break_copy_off();
        loop {
            let all = self.inbox.bytes.len();
            let piece = self.inbox.take(all);
            self.outbox.push(&piece);
            self.flush().await?;
            if self.fill().await? == 0 {
                return self.finish().await;
            }
        }
    }

    /// Waits for more from the client, or for a wish to abort; 0 at the end.
    pub(super) async fn fill(&mut self) -> io::Result<usize> {
        loop {
            let roomy = self.inbox.is_roomy() || self.outbox.is_roomy();
            tokio::select! {
                read = read(self.session, &mut self.client, &mut self.inbox, &mut self.last_read) => {
                    return read;
                }
                () = self.session.abort_wanted.notified() => {
                    self.abort_if_wanted();
                    // Anything but 0, which would mean the end.
                    return Ok(1);
                }
                () = tokio::time::sleep(IDLE), if roomy => {
                    self.inbox.shrink();
                    self.outbox.shrink();
                    self.last_read = 0;
                }
            }
        }
    }

    /// Waits for more of a message whose start has been sent: nothing may come between.
    pub(super) async fn fill_amid_message(&mut self) -> io::Result<()> {
        match read(
            self.session,
            &mut self.client,
            &mut self.inbox,
            &mut self.last_read,
        )
        .await?
        {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    pub(super) async fn flush(&mut self) -> io::Result<()> {
        let context = &self.session.context;
        self.outbox
            .flush(&mut self.server, &context.store, &context.metrics)
            .await
    }
}

/// Cancel-safe.
async fn read(
    session: &Session,
    client: &mut Reader<'_>,
    inbox: &mut Inbox,
    last_read: &mut usize,
) -> io::Result<usize> {
    inbox.make_room(*last_read);
    *last_read = client.fill(&mut inbox.bytes).await?;
    add(&session.context.metrics.client_bytes_in, *last_read as u64);
    Ok(*last_read)
}

/// Two names of at most 63 bytes as a rule, but nothing bounds those of the protocol.
const LONGEST_NAMES: usize = 64 * 1024;

fn can_stream(header: Header) -> bool {
    header.len > LONGEST_FRAME || (header.tag == tag::COPY_DATA && header.len > 64 * 1024)
}

/// A statement as it is to be forwarded.
struct Rewritten {
    text: String,
    types: Vec<u32>,
    edits: EditMap,
}

/// Declares the parameters that go straight into offloaded columns as the columns' types. None: there
/// are none, or their values would be no better off.
fn declare(
    plan: &StatementPlan,
    catalog: &Snapshot,
    text: &str,
    statement: &mut Statement,
) -> Option<Rewritten> {
    let mut types = statement.declared.clone();
    let mut sites = Vec::new();
    for param in &plan.params {
        let index = usize::from(param.number).checked_sub(1)?;
        let column = catalog.column(param.column)?;
        let visible_type = catalog.plain_oid_of(value_kind(param.client_kind))?;
        let declared = types.get(index).copied().unwrap_or(0);
        // One that is used elsewhere keeps the type that the client gave it; where it gave none, the
        // uses would disagree about it (42P08).
        if declared != 0 && (!param.only_assigned || !catalog.is_plain_of(declared, param.kind)) {
            continue;
        }
        if types.len() <= index {
            types.resize(index + 1, 0);
        }
        types[index] = catalog.oid_of(value_kind(param.kind))?;
        sites.push(ParamSite {
            index,
            column: Arc::clone(column),
            visible_type,
            used_elsewhere: !param.only_assigned,
        });
    }
    if sites.is_empty() {
        return None;
    }
    let declared = |edit: &&toastrack_sql::Edit| {
        edit.param.is_none_or(|number| {
            sites
                .iter()
                .any(|site| site.index + 1 == usize::from(number))
        })
    };
    let (text, edits) = apply_edits(text, plan.edits.iter().filter(declared));
    statement.sites = sites;
    Some(Rewritten { text, types, edits })
}
