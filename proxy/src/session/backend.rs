//! What the server answers, on its way to the client.
//!
//! Owns:       the reading half of the server's socket and the writing half of the client's.
//! Promises:   types are the plain ones and references are values by the time the client sees them
//!             (S4, S5); all else goes as it came, in its order (S6).
//! Fails:      a value that cannot be read ends its statement with an error and aborts the
//!             transaction; the session goes on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use toastrack_value::encoding::ClientEncoding;
use toastrack_wire::backend::{
    CommandComplete, DataRow, ErrorBuilder, ParameterStatus, encode_ready_for_query,
    ready_for_query_status,
};
use toastrack_wire::frame::HEADER_LEN;
use toastrack_wire::{Header, backend_header, tag::backend as tag};

use super::inbox::{IDLE, Inbox, START_CAPACITY};
use super::ledger::{Entry, SimpleQuery};
use super::statements::Shape;
use super::{Session, describe, errors, sasl};
use crate::intercept::{CopyRows, CopyTarget, Fetched, Resolution, RowError, Rows};
use crate::metrics::add;
use crate::server::{Reader, Writer};

/// See the module.
pub(super) struct Backend<'s> {
    pub(super) session: &'s Session,
    server: Reader<'s>,
    client: Writer<'s>,
    inbox: Inbox,
    pub(super) outbox: Vec<u8>,
    last_read: usize,
    rows: RowsOf,
    pub(super) copy: Option<CopyRows>,
    /// A value could not be read: replies are dropped until the request is over.
    pub(super) discarding: bool,
    /// A reply that was dropped told of a command that may have changed something.
    discarded_write: bool,
    /// DDL was seen since the catalog was last read.
    ddl_seen: bool,
    /// No transaction was open at the last ReadyForQuery.
    between_transactions: bool,
    fetched: Fetched,
    /// The COPY ... FROM STDIN under way whose rows are looked into.
    pub(super) copy_in: Option<Arc<CopyTarget>>,
    /// The error of a question of our own that has made the client's transaction a failed one.
    pub(super) failed_question: Option<Bytes>,
}

/// Where the shape of the next DataRow comes from.
enum RowsOf {
    /// The RowDescription that came before it.
    Described(Arc<Shape>),
    /// The portal being executed.
    Portal,
}

/// The client is written to from here on even while more rows are waiting.
const FULL: usize = 64 * 1024;
const KEPT_CAPACITY: usize = 512 * 1024;
/// Longer messages that need no look are passed on piece by piece.
const LONG_FRAME: usize = 256 * 1024;
/// Bytes of values that are fetched ahead of the row at hand.
const FETCH_AHEAD: usize = 4 * 1024 * 1024;
/// How often a session that is to end looks whether it may.
const DRAIN_CHECK: Duration = Duration::from_millis(50);

impl<'s> Backend<'s> {
    pub(super) fn new(session: &'s Session, server: Reader<'s>, client: Writer<'s>) -> Self {
        Backend {
            session,
            server,
            client,
            inbox: Inbox::new(&[]),
            outbox: Vec::new(),
            last_read: 0,
            rows: RowsOf::Portal,
            copy: None,
            discarding: false,
            discarded_write: false,
            ddl_seen: false,
            between_transactions: false,
            fetched: Fetched::new(),
            copy_in: None,
            failed_question: None,
        }
    }

    /// Runs until the server ends the connection, or the proxy does so while it drains.
    pub(super) async fn run(&mut self) -> io::Result<()> {
        loop {
            let header = match backend_header(&self.inbox.bytes) {
                Ok(header) => header,
                Err(error) => {
                    // A server of a protocol before 3.0 answers a start-up with plain text.
                    tracing::debug!(%error, "not a message, passed on");
                    return self.pass_all().await;
                }
            };
            match header {
                Some(header) if self.inbox.bytes.len() >= header.len => {
                    let frame = self.inbox.take(header.len);
                    if !self.on_message(header.tag, frame).await? {
                        return self.flush().await;
                    }
                    if self.outbox.len() >= FULL {
                        self.flush().await?;
                    }
                }
                Some(header) if header.len > LONG_FRAME && self.can_stream(header.tag) => {
                    self.stream(header).await?;
                }
                _ => {
                    self.flush().await?;
                    if !self.fill().await? {
                        return self.flush().await;
                    }
                }
            }
        }
    }

    /// Handles one message; false ends the session.
    async fn on_message(&mut self, tag: u8, frame: Bytes) -> io::Result<bool> {
        if self.on_answer(tag, &frame) {
            return Ok(true);
        }
        match tag {
            tag::DATA_ROW => self.on_data_row(frame).await?,
            tag::ROW_DESCRIPTION => return self.on_row_description(frame).await,
            tag::PARAMETER_DESCRIPTION => return self.on_parameter_description(frame).await,
            tag::NO_DATA => self.on_no_data(&frame),
            tag::PARSE_COMPLETE | tag::BIND_COMPLETE | tag::CLOSE_COMPLETE => {
                let mut ledger = self.session.ledger.lock();
                ledger.front_of_reply();
                match ledger.pop() {
                    Some(Entry::Parse { statement, .. }) => {
                        statement.confirmed.store(true, Ordering::Relaxed);
                    }
                    Some(Entry::Bind { portal, .. }) => {
                        portal.confirmed.store(true, Ordering::Relaxed);
                    }
                    _ => {}
                }
                drop(ledger);
                self.forward(&frame);
            }
            tag::COMMAND_COMPLETE => self.on_command_complete(&frame),
            tag::EMPTY_QUERY_RESPONSE | tag::PORTAL_SUSPENDED => {
                self.execution_ended();
                self.forward(&frame);
            }
            tag::ERROR_RESPONSE => self.on_error(frame),
            tag::NOTICE_RESPONSE => {
                let frame = self.in_clients_lines(frame);
                self.forward_always(&frame);
            }
            tag::READY_FOR_QUERY => return self.on_ready(&frame).await,
            tag::AUTHENTICATION if !self.session.channel_binding => {
                match sasl::without_channel_binding(&frame) {
                    Some(offer) => self.forward(&offer),
                    None => self.forward(&frame),
                }
            }
            tag::PARAMETER_STATUS => {
                self.on_parameter_status(&frame);
                self.forward_always(&frame);
            }
            tag::NOTIFICATION_RESPONSE => self.forward_always(&frame),
            tag::COPY_IN_RESPONSE => self.on_copy_in_response(&frame).await,
            tag::COPY_OUT_RESPONSE => return self.on_copy_out_response(frame).await,
            tag::COPY_DATA => self.on_copy_data(frame).await?,
            _ => self.forward(&frame),
        }
        Ok(true)
    }

    async fn on_data_row(&mut self, frame: Bytes) -> io::Result<()> {
        if self.discarding {
            return Ok(());
        }
        let Some(shape) = self.shape() else {
            self.outbox.extend_from_slice(&frame);
            return Ok(());
        };
        let Ok(row) = DataRow::parse(&frame[HEADER_LEN..]) else {
            self.outbox.extend_from_slice(&frame);
            return Ok(());
        };
        loop {
            let rows = self.resolver();
            let resolution = rows.resolve(&row, &shape, &self.fetched, &mut self.outbox);
            match resolution {
                Ok(Resolution::Untouched) => self.outbox.extend_from_slice(&frame),
                Ok(Resolution::Written) => {}
                Ok(Resolution::Missing(mut missing)) => {
                    // Whoever waits for one row waits for the rows behind it as well.
                    self.look_ahead(&shape, &mut missing);
                    let detoaster = &self.session.context.detoaster;
                    self.fetched = detoaster.fetch(missing).await;
                    continue;
                }
                Err(error) => self.fail_statement(&error),
            }
            return Ok(());
        }
    }

    /// Adds what the rows that have come already will need.
    fn look_ahead(&self, shape: &Shape, missing: &mut Vec<toastrack_offload::Reference>) {
        let resolver = self.resolver();
        let mut rest: &[u8] = &self.inbox.bytes;
        let mut bytes: usize = missing.iter().map(|one| one.logical_len() as usize).sum();
        while let Ok(Some(header)) = backend_header(rest)
            && header.tag == tag::DATA_ROW
            && let Some(body) = header.body(rest)
            && let Ok(row) = DataRow::parse(body)
            && bytes < FETCH_AHEAD
        {
            let ahead = resolver.missing(&row, shape);
            bytes += ahead
                .iter()
                .map(|one| one.logical_len() as usize)
                .sum::<usize>();
            missing.extend(ahead);
            rest = &rest[header.len..];
        }
    }

    /// What is to be looked at in a DataRow; None when nothing is.
    fn shape(&self) -> Option<Arc<Shape>> {
        let shape = match &self.rows {
            RowsOf::Described(shape) => Arc::clone(shape),
            RowsOf::Portal => match self.session.ledger.lock().front_of_reply()? {
                Entry::Execute(portal) => portal.shape()?,
                _ => return None,
            },
        };
        (!shape.columns.is_empty()).then_some(shape)
    }

    async fn on_row_description(&mut self, frame: Bytes) -> io::Result<bool> {
        let body = &frame[HEADER_LEN..];
        let Ok(oids) = describe::row_oids(body) else {
            self.forward(&frame);
            return Ok(true);
        };
        let Some(database) = self.session.database.get() else {
            self.forward(&frame);
            return Ok(true);
        };
        let catalog = match database.types_of(oids.into_iter()).await {
            Ok(catalog) => catalog,
            Err(error) => return Ok(self.lose_catalog(&error)),
        };
        let read = describe::read_row(body, &catalog);
        let plain = describe::plain_row(frame.clone(), &catalog);
        let (Ok((columns, shape)), Ok(plain)) = (read, plain) else {
            self.forward(&frame);
            return Ok(true);
        };
        let mut hidden = false;
        {
            let mut ledger = self.session.ledger.lock();
            match ledger.front_of_reply() {
                Some(Entry::DescribeStatement(statement)) => {
                    // Set once: Postgres refuses to execute a statement whose columns changed.
                    let _ = statement.columns.set(Arc::new(columns));
                    ledger.pop();
                }
                Some(Entry::DescribePortal {
                    portal,
                    hidden: own,
                }) => {
                    hidden = *own;
                    *portal.shape.lock() = Some(Arc::new(shape));
                    ledger.pop();
                }
                _ => self.rows = RowsOf::Described(Arc::new(shape)),
            }
        }
        if !hidden {
            self.forward(&plain);
        }
        Ok(true)
    }

    async fn on_parameter_description(&mut self, frame: Bytes) -> io::Result<bool> {
        let statement = match self.session.ledger.lock().front_of_reply() {
            Some(Entry::DescribeStatement(statement)) => Some(Arc::clone(statement)),
            _ => None,
        };
        let oids = describe::parameter_oids(&frame[HEADER_LEN..]);
        if let (Some(statement), Ok(oids), Some(database)) =
            (statement, oids, self.session.database.get())
        {
            let catalog = match database.types_of(oids.into_iter()).await {
                Ok(catalog) => catalog,
                Err(error) => return Ok(self.lose_catalog(&error)),
            };
            if let Ok(plain) = describe::plain_parameters(frame.clone(), &catalog, &statement) {
                self.forward(&plain);
                return Ok(true);
            }
        }
        self.forward(&frame);
        Ok(true)
    }

    fn on_no_data(&mut self, frame: &Bytes) {
        let mut hidden = false;
        {
            let mut ledger = self.session.ledger.lock();
            match ledger.front_of_reply() {
                Some(Entry::DescribeStatement(statement)) => {
                    let _ = statement.columns.set(Arc::default());
                }
                Some(Entry::DescribePortal {
                    portal,
                    hidden: own,
                }) => {
                    hidden = *own;
                    *portal.shape.lock() = Some(Arc::default());
                }
                _ => {}
            }
            ledger.pop();
        }
        if !hidden {
            self.forward(frame);
        }
    }

    fn on_command_complete(&mut self, frame: &Bytes) {
        if let Ok(complete) = CommandComplete::parse(&frame[HEADER_LEN..]) {
            if changes_catalog(complete.tag) {
                self.ddl_seen = true;
                self.session.schema_changes();
            }
            self.discarded_write |= self.discarding && !only_reads(complete.tag);
        }
        self.execution_ended();
        self.forward(frame);
    }

    /// An execution is over; in a simple query the next statement follows.
    fn execution_ended(&mut self) {
        self.rows = RowsOf::Portal;
        self.copy = None;
        self.end_copy_in();
        self.fetched.clear();
        let mut ledger = self.session.ledger.lock();
        if matches!(ledger.front_of_reply(), Some(Entry::Execute(_))) {
            ledger.pop();
        }
    }

    fn on_error(&mut self, frame: Bytes) {
        if self.question_failed(&frame) {
            return;
        }
        let frame = self.in_clients_lines(frame);
        self.rows = RowsOf::Portal;
        self.copy = None;
        self.end_copy_in();
        let mut hidden = false;
        let edits = {
            let mut ledger = self.session.ledger.lock();
            let edits = match ledger.front() {
                Some(Entry::Query(query)) => {
                    hidden = query.hidden;
                    let restored = query.restored.load(Ordering::Relaxed);
                    query.edits.clone().filter(|_| !restored)
                }
                Some(Entry::Parse { statement, .. }) => statement.edits.clone(),
                Some(Entry::Bind { portal, .. } | Entry::Execute(portal)) => portal
                    .statement
                    .as_ref()
                    .and_then(|statement| statement.edits.clone()),
                _ => None,
            };
            ledger.failed();
            edits
        };
        if hidden {
            return;
        }
        if errors::is_consequence(&frame)
            && let Some(cause) = self.failed_question.take()
        {
            return self.forward(&cause);
        }
        match edits.and_then(|edits| errors::with_original_position(&frame, &edits)) {
            Some(mapped) => self.forward(&mapped),
            None => self.forward(&frame),
        }
    }

    async fn on_ready(&mut self, frame: &Bytes) -> io::Result<bool> {
        let status = ready_for_query_status(&frame[HEADER_LEN..]).unwrap_or(b'I');
        self.rows = RowsOf::Portal;
        self.copy = None;
        self.end_copy_in();
        self.between_transactions = status == b'I';
        let (entry, nothing_behind) = {
            let mut ledger = self.session.ledger.lock();
            let entry = ledger.ready(status);
            (entry, ledger.is_idle())
        };
        match entry {
            Some(Entry::Startup) => return self.open_catalog(frame).await,
            Some(Entry::OwnSync) => {
                // Without an open transaction what failed has no consequence.
                self.failed_question.take_if(|_| status != b'E');
                return Ok(true);
            }
            // The client is told what it would have been told had Postgres itself failed to read.
            Some(Entry::Query(SimpleQuery { hidden: true, .. })) => {
                encode_ready_for_query(&mut self.outbox, status);
                return Ok(true);
            }
            _ => {}
        }
        self.failed_question = None;
        let discarded_write = std::mem::take(&mut self.discarded_write);
        if std::mem::take(&mut self.discarding) && (status == b'T' || discarded_write) {
            if status == b'T' && nothing_behind {
                let abort = SimpleQuery {
                    hidden: true,
                    ..SimpleQuery::default()
                };
                self.session.ledger.lock().push(Entry::Query(abort));
                self.session.request_abort();
                return Ok(true);
            }
            // The error could not be known in time. Where more was sent, only the end of the session
            // keeps the transaction from being committed; where it is committed, a session that ends
            // before it is ready says that its outcome is not known, as Postgres' own would.
            let message = "a value could not be read before the transaction went on";
            ErrorBuilder::fatal("XX001", message).encode(&mut self.outbox);
            return Ok(false);
        }
        if status == b'I' {
            if std::mem::take(&mut self.ddl_seen) {
                self.catch_up_with_ddl().await;
            }
            self.session.schema_pending.store(false, Ordering::Relaxed);
        }
        if let Some(database) = self.session.database.get() {
            database.refresh_if_stale();
        }
        self.outbox.extend_from_slice(frame);
        Ok(true)
    }

    /// The session is ready: from now on what its columns are must be known.
    async fn open_catalog(&mut self, frame: &Bytes) -> io::Result<bool> {
        let catalogs = &self.session.context.catalogs;
        let session = self.session;
        match catalogs.open(&session.database_name, session.server).await {
            Ok(database) => {
                let _ = self.session.database.set(database);
                self.outbox.extend_from_slice(frame);
                Ok(true)
            }
            Err(error) => Ok(self.lose_catalog(&error)),
        }
    }

    /// Without the catalog a reference could not be told from data (S4): the session ends.
    pub(super) fn lose_catalog(&mut self, error: &crate::CatalogError) -> bool {
        tracing::error!(%error, "session refused");
        ErrorBuilder::fatal("08006", error.to_string())
            .hint("Toastrack reads the system catalog with a role of its own, set as [control].")
            .encode(&mut self.outbox);
        false
    }

    async fn catch_up_with_ddl(&mut self) {
        let Some(database) = self.session.database.get() else {
            return;
        };
        if let Err(error) = database.refresh().await {
            tracing::warn!(%error, "catalog not refreshed");
        }
    }

    fn on_parameter_status(&self, frame: &Bytes) {
        let Ok(status) = ParameterStatus::parse(&frame[HEADER_LEN..]) else {
            return;
        };
        let mut settings = self.session.settings.lock();
        match status.name {
            b"client_encoding" => {
                settings.client_encoding = ClientEncoding::from_name(status.value)
            }
            b"server_encoding" => {
                settings.server_utf8 = matches!(
                    ClientEncoding::from_name(status.value),
                    ClientEncoding::Utf8
                );
            }
            b"standard_conforming_strings" => {
                settings.standard_conforming_strings = status.value == b"on";
            }
            _ => {}
        }
    }

    /// Tells the client of a value that could not be read, in the place of the row.
    pub(super) fn fail_statement(&mut self, error: &RowError) {
        tracing::error!(%error, "value not read");
        add(&self.session.context.metrics.resolve_errors, 1);
        ErrorBuilder::error(error.sqlstate(), error.to_string()).encode(&mut self.outbox);
        self.discarding = true;
    }

    fn resolver(&self) -> Rows<'s> {
        let context = &self.session.context;
        Rows {
            store: &context.store,
            detoaster: &context.detoaster,
            metrics: &context.metrics,
            encoding: self.encoding(),
        }
    }

    pub(super) fn encoding(&self) -> ClientEncoding {
        self.session.settings.lock().client_encoding
    }

    pub(super) fn forward(&mut self, frame: &[u8]) {
        if !self.discarding {
            self.outbox.extend_from_slice(frame);
        }
    }

    /// Messages that belong to no request.
    fn forward_always(&mut self, frame: &[u8]) {
        self.outbox.extend_from_slice(frame);
    }

    /// Whether a long message can go without a look.
    fn can_stream(&self, tag: u8) -> bool {
        match tag {
            tag::DATA_ROW => !self.discarding && self.shape().is_none(),
            tag::COPY_DATA => !self.discarding && self.copy.is_none(),
            _ => false,
        }
    }

    async fn stream(&mut self, header: Header) -> io::Result<()> {
        let mut left = header.len;
        loop {
            let here = left.min(self.inbox.bytes.len());
            let piece = self.inbox.take(here);
            self.outbox.extend_from_slice(&piece);
            left -= here;
            if left == 0 {
                return Ok(());
            }
            self.flush().await?;
            if !self.fill().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn pass_all(&mut self) -> io::Result<()> {
        loop {
            let all = self.inbox.bytes.len();
            let piece = self.inbox.take(all);
            self.outbox.extend_from_slice(&piece);
            self.flush().await?;
            if !self.fill().await? {
                return Ok(());
            }
        }
    }

    /// Waits for more from the server; false when there will be none, or the session has to end
    /// because the proxy does.
    async fn fill(&mut self) -> io::Result<bool> {
        self.inbox.make_room(self.last_read);
        let draining = &self.session.context.draining;
        loop {
            let roomy = self.inbox.is_roomy() || self.outbox.capacity() > START_CAPACITY;
            let check = async {
                draining.cancelled().await;
                tokio::time::sleep(DRAIN_CHECK).await;
            };
            tokio::select! {
                read = self.server.fill(&mut self.inbox.bytes) => {
                    self.last_read = read?;
                    add(&self.session.context.metrics.server_bytes_in, self.last_read as u64);
                    return Ok(self.last_read > 0);
                }
                () = tokio::time::sleep(IDLE), if roomy && self.outbox.is_empty() => {
                    self.inbox.shrink();
                    self.outbox = Vec::new();
                }
                () = check => {
                    if self.between_transactions && self.session.ledger.lock().may_end() {
                        let message = "terminating connection due to administrator command";
                        ErrorBuilder::fatal("57P01", message).encode(&mut self.outbox);
                        return Ok(false);
                    }
                }
            }
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        if self.outbox.is_empty() {
            return Ok(());
        }
        self.client.write_all(&self.outbox).await?;
        add(
            &self.session.context.metrics.client_bytes_out,
            self.outbox.len() as u64,
        );
        self.outbox.clear();
        self.outbox.shrink_to(KEPT_CAPACITY);
        Ok(())
    }
}

/// Whether a command has changed nothing, as far as its tag tells.
fn only_reads(tag: &[u8]) -> bool {
    [
        &b"SELECT "[..],
        b"FETCH ",
        b"MOVE ",
        b"COPY ",
        b"SHOW",
        b"BEGIN",
        b"EXPLAIN",
    ]
    .iter()
    .any(|verb| tag.starts_with(verb))
}

/// Whether a command may have made, changed or dropped offloaded columns.
fn changes_catalog(tag: &[u8]) -> bool {
    [&b"CREATE "[..], b"ALTER ", b"DROP ", b"IMPORT ", b"DO"]
        .iter()
        .any(|verb| tag.starts_with(verb))
}
