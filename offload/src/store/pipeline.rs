//! Group commit: `put` fills a batch while the batch before it is being written and synced.
//!
//! Owns:       the segment that is being written and the batches.
//! Promises:   S3, a ticket is durable only after `fdatasync` returned for its batch.
//! Invariants: P1 batches settle in the order of their tickets. P2 offsets are given out in the
//!             order of the records in the file. P3 after a failed write or sync its segment is
//!             never written or synced again, and every ticket that was given out and not settled
//!             fails. P4 the lock is never held across I/O.
//! Fails:      two failures without a success between them, or an error in making a segment, make
//!             the store read-only; want of space does so until there is space again.
//! Proof:      tests/faults.rs, tests/model.rs

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::watch;

use super::batch::{Batch, SealJob};
use super::buffer::Buffer;
use super::segments::OpenSegment;
use super::tickets::{Fate, Tickets};
use super::{StoreState, Ticket};
use crate::MAX_RECORD_LEN;
use crate::error::{Kind, StoreError};
use crate::format::record;
use crate::reference::Address;

pub(crate) struct Pipeline {
    state: Mutex<State>,
    /// The committer waits here for batches.
    work: Condvar,
    /// The steward waits here for segments to make and to seal.
    chores: Condvar,
    tickets: Tickets,
    /// Ticks whenever one who waits for room should look again.
    changes: watch::Sender<()>,
    limits: Limits,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) max_pending_bytes: usize,
    pub(crate) buffer_len: usize,
    pub(crate) failure_pause: Duration,
}

struct State {
    target: Option<OpenSegment>,
    spare: Option<OpenSegment>,
    spare_wanted: bool,
    /// What the next `put` goes to. Its segment is `target`'s.
    filling: Option<Batch>,
    /// Batches before `filling`, ended because their segment was full.
    queue: VecDeque<Batch>,
    in_flight: Option<Arc<Batch>>,
    /// The ticket of the next batch that is begun.
    next_ticket: u64,
    /// Somebody waits for every ticket up to this one.
    wanted: u64,
    pending_bytes: usize,
    /// Buffers to use again, `IDLE_BUFFERS` at most.
    idle_buffers: Vec<Buffer>,
    seals: Vec<SealJob>,
    paused_until: Option<Instant>,
    failures_in_a_row: u32,
    /// Why no segment can be made, and when to try again.
    full: Option<(StoreError, Instant)>,
    read_only: Option<StoreError>,
    closing: Closing,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Closing {
    No,
    /// No more puts; what is pending is written.
    Draining,
    /// The committer has ended.
    Drained,
}

/// Where a record goes.
pub(crate) struct Place {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(crate) ticket: Ticket,
}

/// What the steward should do next.
pub(crate) enum Chore {
    Seal(SealJob),
    MakeSegment,
    End,
}

/// How long to wait before trying again to make a segment on a full disk.
const FULL_RETRY: Duration = Duration::from_secs(1);
/// A batch of so many bytes is written though nobody waits for it yet.
const WRITTEN_UNASKED: usize = 1 << 20;
/// One is being written, one is being filled. More are in use only while more waits than fits one.
const IDLE_BUFFERS: usize = 2;

impl State {
    /// The batch to write now: one that is ended, or the one being filled once somebody waits for it.
    fn take_next(&mut self) -> Option<Batch> {
        if let Some(ended) = self.queue.pop_front() {
            return Some(ended);
        }
        let (wanted, closing) = (self.wanted, self.closing != Closing::No);
        self.filling.take_if(|batch| {
            closing || batch.ticket <= wanted || batch.buffer.len() >= WRITTEN_UNASKED
        })
    }

    /// Ends the batch that is being filled, before anybody asks for it.
    fn end_filling(&mut self) {
        self.queue.extend(self.filling.take());
    }
}

impl Pipeline {
    pub(crate) fn new(target: OpenSegment, spare: Option<OpenSegment>, limits: Limits) -> Pipeline {
        Pipeline {
            state: Mutex::new(State {
                target: Some(target),
                spare,
                spare_wanted: false,
                filling: None,
                queue: VecDeque::new(),
                in_flight: None,
                next_ticket: 1,
                wanted: 0,
                pending_bytes: 0,
                idle_buffers: (0..IDLE_BUFFERS)
                    .map(|_| Buffer::new(limits.buffer_len))
                    .collect(),
                seals: Vec::new(),
                paused_until: None,
                failures_in_a_row: 0,
                full: None,
                read_only: None,
                closing: Closing::No,
            }),
            work: Condvar::new(),
            chores: Condvar::new(),
            tickets: Tickets::default(),
            changes: watch::Sender::new(()),
            limits,
        }
    }

    /// Appends a record of `footprint` bytes: `write` gets its room in a buffer
    /// and the place.
    pub(crate) fn append(
        &self,
        footprint: usize,
        write: impl FnOnce(&mut [u8], &Place),
    ) -> Result<Place, StoreError> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        self.admit(state, footprint)?;
        if state
            .filling
            .as_ref()
            .is_some_and(|batch| !batch.buffer.fits(footprint))
        {
            state.end_filling();
            self.work.notify_one();
        }
        let Some(target) = state.target.as_mut() else {
            return Err(no_segment_yet());
        };
        let filling = state.filling.get_or_insert_with(|| {
            let ticket = state.next_ticket;
            state.next_ticket += 1;
            Batch::begin(
                ticket,
                target,
                state
                    .idle_buffers
                    .pop()
                    .unwrap_or_else(|| Buffer::new(self.limits.buffer_len)),
            )
        });
        let place = Place {
            segment: target.segment,
            // `admit` found room before `end`, which is below the 4 GiB that u32 can say.
            offset: target.tail as u32,
            ticket: Ticket(filling.ticket),
        };
        write(filling.extend(footprint), &place);
        target.tail += footprint as u64;
        target.records += 1;
        let filling_bytes = filling.buffer.len();
        debug_assert_eq!(filling.start + filling_bytes as u64, target.tail);
        state.pending_bytes += footprint;
        // Early enough that the next segment is there before this one is full.
        let used_quarter = target.tail > target.end / 4;
        if used_quarter && state.spare.is_none() && !state.spare_wanted {
            state.spare_wanted = true;
            self.chores.notify_one();
        }
        if state.in_flight.is_none() && filling_bytes >= WRITTEN_UNASKED {
            self.work.notify_one();
        }
        Ok(place)
    }

    /// Makes sure that `footprint` bytes fit the target, moving on to the spare segment if need be.
    fn admit(&self, state: &mut State, footprint: usize) -> Result<(), StoreError> {
        self.refusal(state)?;
        if state.pending_bytes + footprint > self.limits.max_pending_bytes {
            return Err(StoreError::new(
                Kind::Retry,
                "as many bytes as allowed wait to be written",
            ));
        }
        let fits = |segment: &OpenSegment| segment.room() >= footprint as u64;
        if state.target.as_ref().is_some_and(fits) {
            return Ok(());
        }
        if state.spare.is_none() {
            let full = state.full.as_ref().map(|(error, _)| error.clone());
            if !state.spare_wanted {
                state.spare_wanted = true;
                self.chores.notify_one();
            }
            return Err(full.unwrap_or_else(no_segment_yet));
        }
        self.end_segment(state);
        state.target = state.spare.take();
        Ok(())
    }

    /// Why no value is taken at this moment, whatever its length.
    fn refusal(&self, state: &mut State) -> Result<(), StoreError> {
        if let Some(error) = &state.read_only {
            return Err(error.clone());
        }
        if state.closing != Closing::No {
            return Err(StoreError::new(Kind::ReadOnly, "the store is closed"));
        }
        if let Some(until) = state.paused_until {
            if Instant::now() < until {
                return Err(StoreError::new(
                    Kind::Retry,
                    "writes are paused after a failed write",
                ));
            }
            state.paused_until = None;
        }
        Ok(())
    }

    /// Queues what is left of a full segment, with its seal.
    fn end_segment(&self, state: &mut State) {
        let Some(ended) = state.target.take() else {
            return;
        };
        let seal = SealJob {
            segment: ended.segment,
            file: Arc::clone(&ended.file),
            tail: ended.tail,
            records: ended.records,
            end: ended.end,
        };
        let mut last = state.filling.take().unwrap_or_else(|| {
            // Everything is in flight or settled; an empty batch carries the seal behind it.
            let ticket = state.next_ticket;
            state.next_ticket += 1;
            let buffer = state
                .idle_buffers
                .pop()
                .unwrap_or_else(|| Buffer::new(self.limits.buffer_len));
            Batch::begin(ticket, &ended, buffer)
        });
        last.seal = Some(seal);
        state.queue.push_back(last);
        self.work.notify_one();
    }

    /// The next batch to write; waits for one. `None` when the store is closing and all is written.
    pub(crate) fn next_batch(&self) -> Option<Arc<Batch>> {
        let mut state = self.state.lock();
        loop {
            if let Some(batch) = state.take_next() {
                let batch = Arc::new(batch);
                state.in_flight = Some(Arc::clone(&batch));
                return Some(batch);
            }
            if state.closing != Closing::No {
                state.closing = Closing::Drained;
                self.chores.notify_one();
                return None;
            }
            self.work.wait(&mut state);
        }
    }

    /// The batch in flight is durable.
    pub(crate) fn settle(&self, batch: Arc<Batch>) {
        let mut state = self.state.lock();
        state.in_flight = None;
        // An empty batch says nothing about the disk.
        if !batch.buffer.is_empty() {
            state.failures_in_a_row = 0;
        }
        state.pending_bytes = state.pending_bytes.saturating_sub(batch.buffer.len());
        let ticket = batch.ticket;
        // `in_flight` was the only other handle: readers copy what they need under the lock.
        if let Some(mut batch) = Arc::into_inner(batch) {
            if let Some(seal) = batch.seal.take() {
                state.seals.push(seal);
                self.chores.notify_one();
            }
            if state.idle_buffers.len() < IDLE_BUFFERS {
                state.idle_buffers.push(batch.buffer);
            }
        }
        self.publish(state, ticket);
    }

    /// The batch in flight could not be written or synced (P3).
    pub(crate) fn fail(&self, batch: &Batch, error: StoreError) {
        let mut state = self.state.lock();
        state.in_flight = None;
        let last = self.fail_pending(&mut state, batch.ticket, &error);
        if state
            .target
            .as_ref()
            .is_some_and(|target| target.segment == batch.segment)
        {
            state.target = state.spare.take();
        }
        state.failures_in_a_row += 1;
        if state.failures_in_a_row >= 2 {
            state.read_only = Some(StoreError::new(
                Kind::ReadOnly,
                format_args!("two segments failed one after the other; the last: {error}"),
            ));
        } else if state.target.is_none() && !state.spare_wanted {
            state.spare_wanted = true;
            self.chores.notify_one();
        }
        state.paused_until = Some(Instant::now() + self.limits.failure_pause);
        self.publish(state, last);
    }

    /// The committer ended in a way it should not: nothing more will be written.
    pub(crate) fn abandon(&self) {
        let mut state = self.state.lock();
        let error = StoreError::new(Kind::Bug, "the committer thread panicked");
        state.in_flight = None;
        let first = self.tickets.first_pending();
        let last = self.fail_pending(&mut state, first, &error);
        state.read_only = Some(error);
        // Whoever closes the store must not wait for a committer to drain it.
        state.closing = Closing::Drained;
        self.chores.notify_one();
        self.publish(state, last);
    }

    /// Drops all batches and records that every ticket from `first` on failed; returns the last.
    fn fail_pending(&self, state: &mut State, first: u64, error: &StoreError) -> u64 {
        let last = (state.next_ticket - 1).max(first);
        let dropped: Vec<Batch> = state.queue.drain(..).chain(state.filling.take()).collect();
        state.pending_bytes = 0;
        // Nothing of the dropped batches was written: a target they went to goes on before them.
        if let Some(target) = state.target.as_mut() {
            for batch in dropped.iter().filter(|b| b.segment == target.segment) {
                if batch.start < target.tail {
                    target.tail = batch.start;
                }
                target.records -= batch.records;
            }
        }
        self.tickets.fail(first..=last, error);
        last
    }

    fn publish(&self, state: MutexGuard<'_, State>, ticket: u64) {
        self.tickets.settle(ticket, move || drop(state));
        self.changes.send_replace(());
    }

    /// What became of a ticket, and of all that were given out before it and failed with it.
    pub(crate) fn fate(&self, ticket: Ticket) -> Fate {
        self.tickets.fate(ticket)
    }

    /// Waits until a ticket is settled. The values of one statement, and of all sessions that come
    /// while a sync runs, share the next one: a batch is written when somebody waits for it.
    ///
    /// Cancel-safe.
    pub(crate) async fn settled(&self, ticket: Ticket) -> Fate {
        self.tickets.settled(ticket, || self.want(ticket)).await
    }

    fn want(&self, ticket: Ticket) {
        let mut state = self.state.lock();
        state.wanted = state.wanted.max(ticket.0);
        if state.in_flight.is_none() {
            self.work.notify_one();
        }
    }

    /// Changes from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Whether a value of any length would be taken now: `Err(Retry)` when it is worth waiting.
    pub(crate) fn has_room(&self) -> Result<(), StoreError> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let most = record::footprint(MAX_RECORD_LEN);
        self.refusal(state)?;
        if state.pending_bytes + most > self.limits.max_pending_bytes {
            return Err(StoreError::new(Kind::Retry, "too many bytes are pending"));
        }
        let in_target = state.target.as_ref().map_or(0, OpenSegment::room);
        if in_target >= most as u64 || state.spare.is_some() {
            return Ok(());
        }
        if !state.spare_wanted {
            state.spare_wanted = true;
            self.chores.notify_one();
        }
        let full = state.full.as_ref().map(|(error, _)| error.clone());
        Err(full.unwrap_or_else(no_segment_yet))
    }

    /// A record that is not written yet, without its padding.
    pub(crate) fn pending_record(&self, address: &Address) -> Option<Vec<u8>> {
        let state = self.state.lock();
        state
            .in_flight
            .as_deref()
            .into_iter()
            .chain(&state.queue)
            .chain(&state.filling)
            .find_map(|batch| batch.record(address))
    }

    /// The next thing for the steward to do; waits for it.
    pub(crate) fn next_chore(&self) -> Chore {
        let mut state = self.state.lock();
        loop {
            if let Some(seal) = state.seals.pop() {
                return Chore::Seal(seal);
            }
            if state.closing == Closing::Drained {
                return Chore::End;
            }
            let may_make = state.closing == Closing::No && state.read_only.is_none();
            if may_make && state.spare_wanted {
                match state.full {
                    Some((_, again)) if Instant::now() < again => {
                        self.chores.wait_until(&mut state, again);
                        continue;
                    }
                    _ => return Chore::MakeSegment,
                }
            }
            self.chores.wait(&mut state);
        }
    }

    /// A segment was made.
    pub(crate) fn supply(&self, made: OpenSegment) {
        let mut state = self.state.lock();
        state.spare_wanted = false;
        if state.full.take().is_some() {
            tracing::info!("segments can be made again");
        }
        if state.target.is_none() {
            state.target = Some(made);
        } else {
            state.spare = Some(made);
        }
        drop(state);
        self.changes.send_replace(());
    }

    /// A segment could not be made; whether that is news, and not one more try on a full disk.
    pub(crate) fn supply_failed(&self, error: StoreError) -> bool {
        let mut state = self.state.lock();
        let is_news = state.full.is_none();
        if error.kind() == Kind::Full {
            state.full = Some((error, Instant::now() + FULL_RETRY));
        } else {
            state.spare_wanted = false;
            state.read_only = Some(StoreError::new(Kind::ReadOnly, error));
        }
        drop(state);
        self.changes.send_replace(());
        is_news
    }

    /// Whether values are taken.
    pub(crate) fn health(&self) -> StoreState {
        let state = self.state.lock();
        let reason = match (&state.read_only, &state.full) {
            (Some(error), _) => Some(error),
            // With room in the target a full disk is no hindrance yet.
            (None, Some((error, _))) => {
                let room = state.target.as_ref().map_or(0, OpenSegment::room);
                (room < record::footprint(MAX_RECORD_LEN) as u64).then_some(error)
            }
            (None, None) => None,
        };
        match reason {
            Some(error) => StoreState::ReadOnly {
                reason: error.to_string(),
            },
            None => StoreState::Healthy,
        }
    }

    /// Bytes that wait, and where the target ends now.
    pub(crate) fn usage(&self) -> (usize, Option<u64>) {
        let state = self.state.lock();
        let tail = state.target.as_ref().map(|target| target.tail);
        (state.pending_bytes, tail)
    }

    /// Takes no more puts; the committer writes what is pending and ends, then the steward.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        if state.closing == Closing::No {
            state.closing = Closing::Draining;
        }
        drop(state);
        self.work.notify_one();
        self.chores.notify_one();
        self.changes.send_replace(());
    }
}

fn no_segment_yet() -> StoreError {
    StoreError::new(Kind::Retry, "the next segment is being prepared")
}
