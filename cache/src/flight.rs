//! Loads under way: one caller loads, the others wait for its outcome.
//!
//! Owns:       one entry per key that is being loaded; it goes when the last caller leaves.
//! Invariants: F1 of all callers that joined one flight, at most one holds its slot.
//!             F2 a flight that has an outcome is no longer in the map, so errors are not cached.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::Key;

type Slot = Arc<tokio::sync::Mutex<Option<Outcome>>>;

/// How a load ended.
#[derive(Clone)]
pub(crate) enum Outcome {
    Loaded(Bytes),
    Failed(Arc<dyn Any + Send + Sync>),
}

#[derive(Default)]
pub(crate) struct Flights {
    by_key: Arc<Mutex<HashMap<Key, Slot>>>,
}

/// A caller's turn at a flight. Until it is dropped, others with the same key wait.
pub(crate) struct Turn {
    slot: tokio::sync::OwnedMutexGuard<Option<Outcome>>,
    // Dropped after the slot is released.
    seat: Seat,
}

impl Flights {
    /// Joins the flight of `key` and waits for the turn. Cancel-safe.
    pub(crate) async fn join(&self, key: Key) -> Turn {
        let slot = Arc::clone(self.by_key.lock().entry(key).or_default());
        let seat = Seat {
            by_key: Arc::clone(&self.by_key),
            key,
            slot: Arc::clone(&slot),
        };
        Turn {
            slot: slot.lock_owned().await,
            seat,
        }
    }
}

#[cfg(test)]
impl Flights {
    pub(crate) fn len(&self) -> usize {
        self.by_key.lock().len()
    }
}

impl Turn {
    /// How the load ended, if a caller before this one brought it to an end.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.slot.clone()
    }

    /// Records the outcome for those who wait; callers from now on start a new flight (F2).
    pub(crate) fn end(&mut self, outcome: Outcome) {
        *self.slot = Some(outcome);
        self.seat.retire();
    }
}

/// A caller's membership of a flight.
struct Seat {
    by_key: Arc<Mutex<HashMap<Key, Slot>>>,
    key: Key,
    slot: Slot,
}

impl Seat {
    fn retire(&self) {
        let mut flights = self.by_key.lock();
        if flights
            .get(&self.key)
            .is_some_and(|present| Arc::ptr_eq(present, &self.slot))
        {
            flights.remove(&self.key);
        }
    }
}

impl Drop for Seat {
    /// The last caller to leave an unfinished flight takes it off the map.
    fn drop(&mut self) {
        let mut flights = self.by_key.lock();
        let last = flights.get(&self.key).is_some_and(|present| {
            // The map's handle and this one: nobody else waits, since joining needs the map's lock.
            Arc::ptr_eq(present, &self.slot) && Arc::strong_count(present) == 2
        });
        if last {
            flights.remove(&self.key);
        }
    }
}
