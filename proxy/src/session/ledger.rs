//! What the client asked and the server has still to answer, in order.
//!
//! Owns:       the queue of expected replies and the names of statements and portals.
//! Promises:   the front entry is the one that the server's next reply belongs to.
//! Invariants: L1 an entry is pushed before its message is sent. L2 entries that the server skips
//!             after an error are taken back, and with them what they had changed by name.
//! Source:     <https://www.postgresql.org/docs/15/protocol-flow.html>

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use toastrack_sql::EditMap;

use super::asked::Asked;
use super::statements::{Portal, Statement};

type Name = Box<[u8]>;

/// An expected reply.
pub(crate) enum Entry {
    /// Authentication, up to the first ReadyForQuery.
    Startup,
    /// A simple query, up to its ReadyForQuery.
    Query(SimpleQuery),
    Parse {
        name: Name,
        statement: Arc<Statement>,
        previous: Option<Arc<Statement>>,
    },
    Bind {
        name: Name,
        portal: Arc<Portal>,
        previous: Option<Arc<Portal>>,
    },
    DescribeStatement(Arc<Statement>),
    /// `hidden` when the proxy asked, not the client.
    DescribePortal {
        portal: Arc<Portal>,
        hidden: bool,
    },
    Execute(Arc<Portal>),
    CloseStatement {
        name: Name,
        previous: Option<Arc<Statement>>,
    },
    ClosePortal {
        name: Name,
        previous: Option<Arc<Portal>>,
    },
    FunctionCall,
    /// A message that the server is going to refuse.
    Malformed,
    Sync,
    /// The proxy's own question before a copy: its replies are swallowed.
    Ask(Arc<Asked>),
    /// Sync behind questions that the client's next message is no part of.
    OwnSync,
    /// CopyDone or CopyFail: not answered, but it ends what a CopyInResponse began.
    CopyEnd,
}

impl Entry {
    /// Whether ReadyForQuery answers it.
    fn is_boundary(&self) -> bool {
        matches!(
            self,
            Entry::Startup | Entry::Query(_) | Entry::FunctionCall | Entry::Sync | Entry::OwnSync
        )
    }
}

/// A simple query under way.
#[derive(Default)]
pub(crate) struct SimpleQuery {
    pub(crate) edits: Option<Arc<EditMap>>,
    /// The values could not be kept: the text went as it came, and `edits` do not count.
    pub(crate) restored: Arc<AtomicBool>,
    /// The COPY ... TO STDOUT statements of the text, in order.
    pub(crate) copies: VecDeque<toastrack_sql::CopyOut>,
    /// What was asked for each COPY ... FROM STDIN of the text, in order.
    pub(crate) copies_in: VecDeque<Option<Arc<Asked>>>,
    /// How many of them have begun.
    pub(crate) copies_begun: usize,
    /// The proxy's own query that aborts the transaction: its replies are swallowed.
    pub(crate) hidden: bool,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Ledger {
    entries: VecDeque<Entry>,
    statements: HashMap<Name, Arc<Statement>>,
    portals: HashMap<Name, Arc<Portal>>,
    /// The server skips everything up to the next Sync.
    skipping: bool,
    /// The server is in copy-in mode of an extended query and ignores Sync.
    copy_in: bool,
    /// Messages sent that the server answers with ReadyForQuery, and those of them answered.
    boundaries: u64,
    boundaries_answered: u64,
    /// The number of the segment that is being sent.
    segment: u64,
    /// The client has begun a batch that it has not ended with Sync.
    amid_batch: bool,
    /// The last ReadyForQuery told of a transaction that has failed.
    in_failed_transaction: bool,
}

impl Ledger {
    /// A ledger at the start of a session.
    pub(crate) fn new() -> Ledger {
        Ledger {
            entries: VecDeque::from([Entry::Startup]),
            boundaries: 1,
            segment: 1,
            ..Ledger::default()
        }
    }

    /// Notes a message that is about to be sent (L1). Entries that the server is going to skip are
    /// dropped and taken back at once.
    pub(crate) fn push(&mut self, entry: Entry) {
        // The end of a copy ends no batch, but a simple query is none.
        let of_query = matches!(entry, Entry::CopyEnd) && self.last_is_query();
        self.amid_batch = !entry.is_boundary() && !of_query;
        if entry.is_boundary() {
            self.segment += 1;
        }
        match &entry {
            Entry::Sync if self.skipping => self.skipping = false,
            Entry::Sync if self.copy_in => return,
            Entry::CopyEnd => self.copy_in = false,
            _ if self.skipping => return self.take_back(entry),
            _ => {}
        }
        if entry.is_boundary() {
            self.boundaries += 1;
        }
        self.entries.push_back(entry);
    }

    /// Whether what was sent last, ends of copies left aside, is a simple query that is under way.
    fn last_is_query(&self) -> bool {
        let mut newest = self.entries.iter().rev();
        let last = newest.find(|entry| !matches!(entry, Entry::CopyEnd));
        matches!(last, Some(Entry::Query(_)))
    }

    /// The entry that the next reply belongs to.
    pub(crate) fn front(&mut self) -> Option<&mut Entry> {
        while matches!(self.entries.front(), Some(Entry::CopyEnd)) {
            self.entries.pop_front();
        }
        self.entries.front_mut()
    }

    /// The entry that a reply other than ReadyForQuery and ErrorResponse belongs to. A Sync in front
    /// is one that the server swallowed in a copy that failed.
    pub(crate) fn front_of_reply(&mut self) -> Option<&mut Entry> {
        while matches!(self.front(), Some(Entry::Sync)) {
            self.entries.pop_front();
            self.boundaries_answered += 1;
        }
        self.front()
    }

    /// The front entry is answered.
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        self.front();
        self.entries.pop_front()
    }

    /// Nothing is under way.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.front().is_none()
    }

    /// Nothing is under way, nor begun.
    pub(crate) fn may_end(&mut self) -> bool {
        self.is_idle() && !self.amid_batch
    }

    /// Whether a question that is sent now, with a Sync of its own, comes between nothing.
    pub(crate) fn may_ask_at_rest(&mut self) -> bool {
        self.may_end() && !self.skipping && !self.in_failed_transaction
    }

    /// Whether a question that is sent now, in the batch at hand, meets a session that takes it: what is
    /// under way are no copies, nor what may be one.
    pub(crate) fn may_ask_in_batch(&self) -> bool {
        let is_harmless = |entry: &Entry| match entry {
            Entry::Parse { .. }
            | Entry::Bind { .. }
            | Entry::DescribeStatement(_)
            | Entry::DescribePortal { .. }
            | Entry::CloseStatement { .. }
            | Entry::ClosePortal { .. } => true,
            Entry::Execute(portal) => {
                let statement = portal.statement.as_ref();
                statement.is_some_and(|statement| statement.fixed_shape)
            }
            _ => false,
        };
        !self.skipping
            && !self.copy_in
            && !self.in_failed_transaction
            && self.entries.iter().all(is_harmless)
    }

    /// Whether a question has not been answered yet.
    pub(crate) fn is_asking(&self) -> bool {
        let is_question = |entry: &Entry| matches!(entry, Entry::Ask(_));
        self.entries.iter().any(is_question)
    }

    /// The question that the copy which has just begun was preceded by, if the copy is certainly the one
    /// that was asked about, and the client has sent nothing behind it, so that what it sends from now on
    /// are the rows of this copy.
    pub(crate) fn asked_before_copy(&mut self) -> Option<Arc<Asked>> {
        let behind = self.entries.len().saturating_sub(1);
        let in_order = self.copy_in && behind == 0;
        match self.front()? {
            Entry::Query(query) => {
                let begun_before = query.copies_begun.checked_sub(1)?;
                let asked = query.copies_in.get(begun_before).cloned().flatten();
                let ends = self.entries.iter().skip(1);
                let only_ends = ends
                    .into_iter()
                    .all(|entry| matches!(entry, Entry::CopyEnd));
                asked.filter(|_| only_ends && behind == begun_before)
            }
            Entry::Execute(portal) => {
                let statement = portal.statement.as_ref()?;
                let certain = statement.is_confirmed() && portal.is_confirmed();
                portal.asked().filter(|_| certain && in_order)
            }
            _ => None,
        }
    }

    /// The server said CopyInResponse: Syncs up to the end of the copy are not answered.
    pub(crate) fn copy_in_began(&mut self) {
        match self.front() {
            Some(Entry::Execute(_)) => {}
            Some(Entry::Query(query)) => {
                query.copies_begun += 1;
                return;
            }
            _ => return,
        }
        let behind = self.entries.iter().skip(1);
        let swallowed = behind
            .take_while(|entry| matches!(entry, Entry::Sync))
            .count();
        self.copy_in = swallowed + 1 == self.entries.len();
        self.entries.drain(1..=swallowed);
        self.boundaries_answered += swallowed as u64;
    }

    /// The server said ErrorResponse. In an extended query it now skips to the next Sync (L2).
    pub(crate) fn failed(&mut self) {
        match self.front() {
            Some(front) if front.is_boundary() => return,
            // An error outside of any request is a FATAL one: the connection ends.
            None => return,
            Some(_) => {}
        }
        self.copy_in = false;
        let end = self
            .entries
            .iter()
            .position(|entry| matches!(entry, Entry::Sync | Entry::OwnSync));
        self.skipping = end.is_none();
        let skipped: Vec<Entry> = self
            .entries
            .drain(..end.unwrap_or(self.entries.len()))
            .collect();
        for entry in skipped.into_iter().rev() {
            self.take_back(entry);
        }
    }

    /// The server said ReadyForQuery with this status; when no transaction is open, all portals that
    /// were bound before have ended.
    pub(crate) fn ready(&mut self, status: u8) -> Option<Entry> {
        self.skipping = false;
        self.in_failed_transaction = status == b'E';
        // Otherwise it answers a Sync that was taken for swallowed.
        let expected = self.front().is_some_and(|front| front.is_boundary());
        let entry = if expected { self.pop() } else { None };
        if expected {
            self.boundaries_answered += 1;
        }
        if status == b'I' && !self.portals.is_empty() {
            let answered = self.boundaries_answered;
            self.portals
                .retain(|_, portal| portal.bound_after >= answered);
        }
        entry
    }

    /// A Parse is about to be sent.
    pub(crate) fn parse(&mut self, name: &[u8], statement: Statement) {
        let statement = Arc::new(Statement {
            parsed_in: self.segment,
            ..statement
        });
        let previous = self.statements.insert(name.into(), Arc::clone(&statement));
        self.push(Entry::Parse {
            name: name.into(),
            statement,
            previous,
        });
    }

    /// A Bind is about to be sent.
    pub(crate) fn bind(&mut self, name: &[u8], statement: &[u8], formats: Option<Box<[i16]>>) {
        let portal = Arc::new(Portal {
            statement: self.statement(statement),
            formats,
            named: !name.is_empty(),
            bound_after: self.boundaries,
            ..Portal::unknown()
        });
        let previous = self.portals.insert(name.into(), Arc::clone(&portal));
        self.push(Entry::Bind {
            name: name.into(),
            portal,
            previous,
        });
    }

    pub(crate) fn describe_statement(&mut self, name: &[u8]) {
        let statement = self
            .statement(name)
            .unwrap_or_else(|| Arc::new(Statement::unknown(Vec::new())));
        statement.described_in.set(self.segment);
        self.push(Entry::DescribeStatement(statement));
    }

    pub(crate) fn describe_portal(&mut self, portal: Arc<Portal>, hidden: bool) {
        portal.described_in.set(self.segment);
        self.push(Entry::DescribePortal { portal, hidden });
    }

    pub(crate) fn close_statement(&mut self, name: &[u8]) {
        let previous = self.statements.remove(name);
        self.push(Entry::CloseStatement {
            name: name.into(),
            previous,
        });
    }

    pub(crate) fn close_portal(&mut self, name: &[u8]) {
        let previous = self.portals.remove(name);
        self.push(Entry::ClosePortal {
            name: name.into(),
            previous,
        });
    }

    /// The statement of that name, if the session parsed it.
    pub(crate) fn statement(&self, name: &[u8]) -> Option<Arc<Statement>> {
        self.statements.get(name).cloned()
    }

    /// The portal of that name; an unknown one if the session did not bind it.
    pub(crate) fn portal(&self, name: &[u8]) -> Arc<Portal> {
        let portal = self.portals.get(name).cloned();
        portal.unwrap_or_else(|| Arc::new(Portal::unknown()))
    }

    /// The statement of that name, if a Bind that is sent now is certain to meet it.
    pub(crate) fn certain_statement(&self, name: &[u8]) -> Option<Arc<Statement>> {
        self.statement(name)
            .filter(|statement| statement.is_certain(self.segment))
    }

    /// Whether the server must be asked for a portal's result columns before an Execute that is sent
    /// now.
    pub(crate) fn needs_describe(&self, portal: &Portal) -> bool {
        portal.needs_describe(self.segment)
    }

    /// Names may have changed their meaning by SQL (DEALLOCATE, DISCARD): what is remembered of
    /// them no longer holds. Not knowing is always right (S2).
    pub(crate) fn forget_names(&mut self) {
        self.statements.clear();
        self.portals.clear();
    }

    /// Whether any statement is remembered.
    pub(crate) fn remembers_names(&self) -> bool {
        !self.statements.is_empty()
    }

    /// Undoes what pushing `entry` had changed (L2). Called from the newest to the oldest.
    fn take_back(&mut self, entry: Entry) {
        match entry {
            Entry::Parse {
                name,
                statement,
                previous,
            } => {
                let current = self.statements.get(&name);
                if current.is_some_and(|current| Arc::ptr_eq(current, &statement)) {
                    put_back(&mut self.statements, name, previous);
                }
            }
            Entry::Bind {
                name,
                portal,
                previous,
            } => {
                let current = self.portals.get(&name);
                if current.is_some_and(|current| Arc::ptr_eq(current, &portal)) {
                    put_back(&mut self.portals, name, previous);
                }
            }
            Entry::CloseStatement { name, previous } => {
                if !self.statements.contains_key(&name) {
                    put_back(&mut self.statements, name, previous);
                }
            }
            Entry::ClosePortal { name, previous } => {
                if !self.portals.contains_key(&name) {
                    put_back(&mut self.portals, name, previous);
                }
            }
            Entry::DescribeStatement(statement) => statement.described_in.clear(),
            Entry::DescribePortal { portal, .. } => portal.described_in.clear(),
            Entry::Startup
            | Entry::Query(_)
            | Entry::Execute(_)
            | Entry::FunctionCall
            | Entry::Malformed
            | Entry::Sync
            | Entry::Ask(_)
            | Entry::OwnSync
            | Entry::CopyEnd => {}
        }
    }
}

fn put_back<T>(map: &mut HashMap<Name, Arc<T>>, name: Name, previous: Option<Arc<T>>) {
    match previous {
        Some(previous) => map.insert(name, previous),
        None => map.remove(&name),
    };
}
