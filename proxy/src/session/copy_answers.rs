//! What the server answers about a COPY ... FROM STDIN: to the question before it, and at its start.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use toastrack_wire::frame::HEADER_LEN;
use toastrack_wire::tag::backend as tag;

use super::backend::Backend;
use super::copy_target::decide;
use super::errors;
use super::ledger::Entry;

impl Backend<'_> {
    /// Swallows a message that answers a question of our own; false when it answers none.
    pub(super) fn on_answer(&self, tag: u8, frame: &Bytes) -> bool {
        let may_answer = [
            tag::PARSE_COMPLETE,
            tag::BIND_COMPLETE,
            tag::DATA_ROW,
            tag::COMMAND_COMPLETE,
            tag::CLOSE_COMPLETE,
        ];
        if !self.session.asking.load(Ordering::Relaxed) || !may_answer.contains(&tag) {
            return false;
        }
        let mut ledger = self.session.ledger.lock();
        let Some(Entry::Ask(asked)) = ledger.front_of_reply() else {
            return false;
        };
        if asked.on_reply(tag, &frame[HEADER_LEN..]) {
            ledger.pop();
            self.session.note_questions(&ledger);
        }
        true
    }

    /// An error, before it is noted in the ledger: whether a question with a Sync of its own has failed,
    /// of which the client is not to be told. What it asked next tells it of the consequence.
    pub(super) fn question_failed(&mut self, frame: &Bytes) -> bool {
        if !self.session.asking.load(Ordering::Relaxed) || errors::ends_connection(frame) {
            return false;
        }
        let mut ledger = self.session.ledger.lock();
        if !matches!(ledger.front_of_reply(), Some(Entry::Ask(_))) {
            return false;
        }
        ledger.failed();
        self.session.note_questions(&ledger);
        let swallowed = matches!(ledger.front(), Some(Entry::OwnSync));
        if swallowed {
            tracing::debug!("the target of a copy was not told");
            self.failed_question = Some(frame.clone());
        }
        // In a batch the client's own messages are skipped with the question: the error is theirs.
        swallowed
    }

    /// A copy begins. Its target is decided on before the client hears of it, and so sends rows.
    pub(super) async fn on_copy_in_response(&mut self, frame: &Bytes) {
        let asked = {
            let mut ledger = self.session.ledger.lock();
            ledger.copy_in_began();
            ledger.asked_before_copy()
        };
        if let Some(asked) = asked
            && let Some(target) = decide(self.session, &asked, &frame[HEADER_LEN..]).await
        {
            // The client may have sent something meanwhile.
            let still = self.session.ledger.lock().asked_before_copy();
            let same = still.is_some_and(|still| Arc::ptr_eq(&still, &asked));
            if same && !self.session.rows_passed.load(Ordering::Relaxed) {
                *self.session.copy_in.lock() = Some(Arc::clone(&target));
                self.copy_in = Some(target);
            }
        }
        self.forward(frame);
    }

    /// Whatever ends a copy has come.
    pub(super) fn end_copy_in(&mut self) {
        if let Some(target) = self.copy_in.take() {
            target.ended.store(true, Ordering::Relaxed);
            let mut waiting = self.session.copy_in.lock();
            waiting.take_if(|waiting| Arc::ptr_eq(waiting, &target));
        }
    }

    /// An error or notice with the line of the copy under way as the client counts.
    pub(super) fn in_clients_lines(&self, frame: Bytes) -> Bytes {
        let target = self.copy_in.as_ref();
        let changed = target.and_then(|target| errors::with_original_line(&frame, target));
        changed.map_or(frame, Bytes::from)
    }
}
