//! A COPY ... FROM STDIN on its way to the server: questions before it, its rows, its end.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use toastrack_sql::CopyIn;
use toastrack_wire::frame::HEADER_LEN;
use toastrack_wire::frontend::encode_sync;
use toastrack_wire::{Direction, Header, encode_frame, tag::frontend as tag};

use super::asked::Asked;
use super::copy_target::may_offload;
use super::frontend::Frontend;
use super::ledger::Entry;
use super::statements::Portal;
use crate::intercept::{CopyInRows, Passed};

/// While rows stream, references wait so long for more of them, to share one wait for the disk.
const LINGER: Duration = Duration::from_millis(5);

impl Frontend<'_> {
    /// Asks which tables the copies of a simple query mean, if nothing is under way; gives the questions in
    /// the order of the copies. To be called before the query is noted.
    pub(super) fn ask_before_query(&mut self, text: &[u8]) -> VecDeque<Option<Arc<Asked>>> {
        let mut questions = VecDeque::new();
        if !toastrack_sql::may_copy_in(text) {
            return questions;
        }
        let Some(catalog) = self.session.offloading() else {
            return questions;
        };
        if !catalog.tables.mentions(text) || !self.session.ledger.lock().may_ask_at_rest() {
            return questions;
        }
        let copies = toastrack_sql::copies_in(text);
        let worthwhile = |copy: Option<CopyIn>| copy.filter(|copy| may_offload(copy, &catalog));
        for copy in copies.into_iter().map(worthwhile) {
            questions.push_back(copy.and_then(|copy| self.ask(copy)));
        }
        if questions.iter().any(Option::is_some) {
            self.session.ledger.lock().push(Entry::OwnSync);
            encode_sync(self.outbox.bytes());
        }
        questions
    }

    /// Asks which table the copy of a portal means that is about to be executed.
    pub(super) fn ask_before_execute(&mut self, portal: &Portal) {
        *portal.asked.lock() = None;
        let copy = portal
            .statement
            .as_ref()
            .and_then(|known| known.copy_in.clone());
        let Some(copy) = copy else {
            return;
        };
        let catalog = self.session.offloading();
        let worthwhile = catalog.is_some_and(|catalog| may_offload(&copy, &catalog));
        if worthwhile && self.session.ledger.lock().may_ask_in_batch() {
            *portal.asked.lock() = self.ask(copy);
        }
    }

    fn ask(&mut self, copy: CopyIn) -> Option<Arc<Asked>> {
        let asked = Arc::new(Asked::new(copy));
        self.questions += 1;
        asked
            .encode(self.questions, self.outbox.bytes())
            .ok()
            .map(|()| {
                let mut ledger = self.session.ledger.lock();
                ledger.push(Entry::Ask(Arc::clone(&asked)));
                self.session.note_questions(&ledger);
                asked
            })
    }

    /// Whether the rows that come are looked into.
    pub(super) fn is_copying(&mut self) -> bool {
        if self.copy.is_none() {
            let target = self.session.copy_in.lock().take();
            self.copy = target.map(CopyInRows::new);
        }
        let ended = |copy: &CopyInRows| copy.target().ended.load(Ordering::Relaxed);
        if self.copy.as_ref().is_some_and(ended) {
            self.break_copy_off();
        }
        self.copy.is_some()
    }

    pub(super) fn on_copy_data(&mut self, frame: &Bytes) {
        if !self.is_copying() {
            self.session.rows_passed.store(true, Ordering::Relaxed);
            return self.outbox.push(frame);
        }
        let body = &frame[HEADER_LEN..];
        let passed = self.feed(body);
        // Nothing was held back before, nor is now: the bytes are those of the message.
        if passed.changed.is_none() && passed.original == body {
            return self.outbox.push(frame);
        }
        self.send_rows(passed);
    }

    /// A long CopyData, piece by piece; its rows go on in messages of their own.
    pub(super) async fn stream_copy(&mut self, header: Header) -> io::Result<()> {
        self.inbox.take(HEADER_LEN);
        let mut left = header.len - HEADER_LEN;
        loop {
            let here = left.min(self.inbox.bytes.len());
            let piece = self.inbox.take(here);
            let passed = self.feed(&piece);
            self.send_rows(passed);
            left -= here;
            if self.outbox.is_full() {
                self.flush().await?;
            }
            if left == 0 {
                return Ok(());
            }
            self.fill_amid_message().await?;
        }
    }

    /// Any message but CopyData, Flush and Sync ends a copy, or is going to be refused.
    pub(super) fn before_other_message(&mut self, message: u8) {
        match message {
            tag::COPY_DATA | tag::FLUSH | tag::SYNC => return,
            tag::COPY_DONE if self.is_copying() => {
                let sink = self.session.sink();
                let passed = self.copy.take().map(|mut copy| copy.finish(&sink));
                self.send_rows(passed.unwrap_or_default());
            }
            _ => self.break_copy_off(),
        }
        if [tag::COPY_DONE, tag::COPY_FAIL, tag::QUERY, tag::EXECUTE].contains(&message) {
            *self.session.copy_in.lock() = None;
            self.session.rows_passed.store(false, Ordering::Relaxed);
        }
    }

    /// Waits for more rows a little, if references could wait with them; false when it is time to send.
    pub(super) async fn linger(&mut self) -> io::Result<Option<usize>> {
        if self.copy.is_none() || !self.outbox.has_references() || self.outbox.is_full() {
            return Ok(None);
        }
        match tokio::time::timeout(LINGER, self.fill()).await {
            Ok(read) => read.map(Some),
            Err(_) => Ok(None),
        }
    }

    /// What is held back goes as it came.
    pub(super) fn break_copy_off(&mut self) {
        if let Some(mut copy) = self.copy.take() {
            let original = copy.break_off();
            self.send_rows(Passed {
                original,
                ..Passed::default()
            });
        }
    }

    fn feed(&mut self, bytes: &[u8]) -> Passed {
        let sink = self.session.sink();
        match &mut self.copy {
            Some(copy) => copy.feed(bytes, &sink),
            None => Passed {
                original: bytes.to_vec(),
                ..Passed::default()
            },
        }
    }

    fn send_rows(&mut self, passed: Passed) {
        if passed.original.is_empty() {
            return;
        }
        let start = self.outbox.bytes().len();
        let Some((changed, ticket)) = passed.changed else {
            copy_data(&passed.original, self.outbox.bytes());
            return;
        };
        let mut original = Vec::with_capacity(passed.original.len() + HEADER_LEN);
        copy_data(&passed.original, &mut original);
        copy_data(&changed, self.outbox.bytes());
        self.outbox
            .offloaded(start, original.into(), ticket, passed.restored);
    }
}

/// Rows and one message more at most: far below the longest message there can be.
fn copy_data(rows: &[u8], out: &mut Vec<u8>) {
    if let Err(error) = encode_frame(out, Direction::Frontend, tag::COPY_DATA, rows) {
        tracing::error!(%error, "rows of a copy not sent");
    }
}
