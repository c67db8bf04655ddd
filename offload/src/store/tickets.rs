//! What became of every ticket, and who waits to hear of it.
//!
//! Promises: a ticket that is not pending is durable, or its failure is known, before anybody can
//!           learn that it is settled.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Ticket;
use crate::error::StoreError;

/// See the module.
#[derive(Default)]
pub(crate) struct Tickets {
    /// Every ticket up to this one is settled: durable, or in `failures`.
    settled: AtomicU64,
    any_failure: AtomicBool,
    failures: Mutex<Vec<Failure>>,
    /// One entry for all who wait for a ticket.
    waiters: Mutex<Vec<(u64, Arc<Notify>)>>,
}

struct Failure {
    tickets: RangeInclusive<u64>,
    error: StoreError,
}

/// What became of a ticket.
pub(crate) enum Fate {
    Pending,
    Durable,
    Failed(StoreError),
}

impl Tickets {
    /// The first ticket that is not settled.
    pub(crate) fn first_pending(&self) -> u64 {
        self.settled.load(Ordering::Acquire) + 1
    }

    /// These failed; to be settled next.
    pub(crate) fn fail(&self, tickets: RangeInclusive<u64>, error: &StoreError) {
        let error = error.clone();
        self.failures.lock().push(Failure { tickets, error });
        self.any_failure.store(true, Ordering::Release);
    }

    /// Every ticket up to `ticket` is settled. `unlock` runs before those who wait are woken.
    pub(crate) fn settle(&self, ticket: u64, unlock: impl FnOnce()) {
        self.settled.store(ticket, Ordering::Release);
        unlock();
        self.waiters.lock().retain(|(waited_for, waiter)| {
            let settled = *waited_for <= ticket;
            if settled {
                waiter.notify_waiters();
            }
            !settled
        });
    }

    pub(crate) fn fate(&self, ticket: Ticket) -> Fate {
        if self.settled.load(Ordering::Acquire) < ticket.0 {
            return Fate::Pending;
        }
        if self.any_failure.load(Ordering::Acquire) {
            let failures = self.failures.lock();
            let failed = failures
                .iter()
                .find(|failure| failure.tickets.contains(&ticket.0));
            if let Some(failure) = failed {
                return Fate::Failed(failure.error.clone());
            }
        }
        Fate::Durable
    }

    /// Waits until `ticket` is settled; `ask` is called if it is not. Cancel-safe.
    pub(crate) async fn settled(&self, ticket: Ticket, ask: impl FnOnce()) -> Fate {
        let waiter = self.waiter(ticket);
        let mut notified = std::pin::pin!(waiter.notified());
        // Before the look, so that what happens after it is not missed.
        notified.as_mut().enable();
        if let Fate::Pending = self.fate(ticket) {
            ask();
            notified.await;
        }
        self.fate(ticket)
    }

    fn waiter(&self, ticket: Ticket) -> Arc<Notify> {
        let mut waiters = self.waiters.lock();
        let same = waiters
            .iter()
            .find(|(waited_for, _)| *waited_for == ticket.0);
        if let Some((_, waiter)) = same {
            return Arc::clone(waiter);
        }
        let waiter = Arc::new(Notify::new());
        waiters.push((ticket.0, Arc::clone(&waiter)));
        waiter
    }
}
