//! The detoast cache: values by identity, one load for many waiters.
//!
//! Owns:       the cached values and the list of loads under way.
//! Promises:   a value is only ever returned for the identity it was inserted under;
//!             at most one load of an identity runs at a time; errors are not cached.
//! Bounded by: `capacity_bytes`, counted as value bytes plus [`ENTRY_OVERHEAD_BYTES`] each (S7).

mod flight;

#[cfg(test)]
mod tests;

use std::any::Any;
use std::future::Future;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::flight::{Flights, Outcome};

/// What an entry is counted for on top of the bytes of its value: key, list nodes, frequency
/// sketch and allocator rounding, estimated from moka's structures.
pub const ENTRY_OVERHEAD_BYTES: u32 = 192;

/// The 16-byte identity of a value.
pub type Key = [u8; 16];

/// Values by identity, bounded in bytes. Clones share one cache.
#[derive(Clone)]
pub struct DetoastCache {
    shared: Arc<Shared>,
}

/// Counters since the cache was made, and its present size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Look-ups that found the value, waiting for another caller's load included.
    pub hits: u64,
    /// Look-ups that did not.
    pub misses: u64,
    /// Values put in, by `insert` and by loads.
    pub inserts: u64,
    /// Values put in that are not held any more: pushed out for want of room, or put in twice.
    pub evictions: u64,
    /// Values held now.
    pub entries: u64,
    /// Bytes held now, overhead included.
    pub bytes: u64,
    /// The bound on `bytes`; 0 when the cache is switched off.
    pub capacity: u64,
}

struct Shared {
    /// `None` when the capacity is 0.
    values: Option<moka::sync::Cache<Key, Bytes, IdentityHasherBuilder>>,
    flights: Flights,
    capacity: u64,
    hits: AtomicU64,
    misses: AtomicU64,
    inserts: AtomicU64,
    /// As last reported: a counter does not go back.
    evictions: AtomicU64,
}

impl DetoastCache {
    /// A cache that holds at most `capacity_bytes`; 0 switches caching off, and then
    /// `get_or_load` still shares one load among its waiters.
    pub fn new(capacity_bytes: u64) -> DetoastCache {
        let values = (capacity_bytes > 0).then(|| {
            // Without a listener for evictions, which would have moka take a lock of the key's at
            // every insert.
            moka::sync::Cache::builder()
                .max_capacity(capacity_bytes)
                .initial_capacity(initial_entries(capacity_bytes))
                .weigher(|_key: &Key, value: &Bytes| weight(value))
                .build_with_hasher(IdentityHasherBuilder)
        });
        DetoastCache {
            shared: Arc::new(Shared {
                values,
                flights: Flights::default(),
                capacity: capacity_bytes,
                hits: AtomicU64::new(0),
                misses: AtomicU64::new(0),
                inserts: AtomicU64::new(0),
                evictions: AtomicU64::new(0),
            }),
        }
    }

    /// The value of `key`, if it is here. Never blocks on a load; under a microsecond.
    pub fn get(&self, key: &Key) -> Option<Bytes> {
        let found = self.peek(key);
        match found {
            Some(_) => self.shared.hits.fetch_add(1, Ordering::Relaxed),
            None => self.shared.misses.fetch_add(1, Ordering::Relaxed),
        };
        found
    }

    /// Whether the value of `key` is here. Not counted as a look-up.
    pub fn contains(&self, key: &Key) -> bool {
        self.shared
            .values
            .as_ref()
            .is_some_and(|values| values.contains_key(key))
    }

    /// Puts a value in. `value` is a buffer of its own, not a slice of a larger one, which it would
    /// keep alive beyond what is counted for it.
    pub fn insert(&self, key: Key, value: Bytes) {
        let Some(values) = &self.shared.values else {
            return;
        };
        self.shared.inserts.fetch_add(1, Ordering::Relaxed);
        values.insert(key, value);
    }

    /// The value of `key`, loaded by `load` when it is not here.
    ///
    /// While one caller loads, others with the same key wait for its result. Its error goes to all
    /// who were waiting and is then forgotten.
    ///
    /// Cancel-safe: when the loading caller is dropped, one of those who wait loads instead.
    ///
    /// # Errors
    /// What `load` failed with, shared.
    pub async fn get_or_load<E, F>(&self, key: Key, load: F) -> Result<Bytes, Arc<E>>
    where
        E: Send + Sync + 'static,
        F: Future<Output = Result<Bytes, E>>,
    {
        if let Some(found) = self.peek(&key) {
            self.shared.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(found);
        }
        let mut flight = self.shared.flights.join(key).await;
        match flight.outcome() {
            Some(Outcome::Loaded(value)) => {
                self.shared.hits.fetch_add(1, Ordering::Relaxed);
                return Ok(value);
            }
            Some(Outcome::Failed(error)) => {
                // Callers that name another error type for the same key load for themselves.
                if let Ok(error) = error.downcast::<E>() {
                    self.shared.misses.fetch_add(1, Ordering::Relaxed);
                    return Err(error);
                }
            }
            None => {
                // The load before this one may have ended between the look-up and the joining.
                if let Some(found) = self.peek(&key) {
                    self.shared.hits.fetch_add(1, Ordering::Relaxed);
                    return Ok(found);
                }
            }
        }
        self.shared.misses.fetch_add(1, Ordering::Relaxed);
        match load.await {
            Ok(value) => {
                self.insert(key, value.clone());
                flight.end(Outcome::Loaded(value.clone()));
                Ok(value)
            }
            Err(error) => {
                let error = Arc::new(error);
                let shared: Arc<dyn Any + Send + Sync> = error.clone();
                flight.end(Outcome::Failed(shared));
                Err(error)
            }
        }
    }

    /// Counters and present size. Carries out the maintenance that is pending.
    pub fn stats(&self) -> CacheStats {
        let shared = &self.shared;
        let inserts = shared.inserts.load(Ordering::Relaxed);
        let (entries, bytes) = match &shared.values {
            Some(values) => {
                values.run_pending_tasks();
                (values.entry_count(), values.weighted_size())
            }
            None => (0, 0),
        };
        let gone = inserts.saturating_sub(entries);
        let reported = shared.evictions.fetch_max(gone, Ordering::Relaxed);
        CacheStats {
            hits: shared.hits.load(Ordering::Relaxed),
            misses: shared.misses.load(Ordering::Relaxed),
            inserts,
            evictions: reported.max(gone),
            entries,
            bytes,
            capacity: shared.capacity,
        }
    }

    fn peek(&self, key: &Key) -> Option<Bytes> {
        self.shared.values.as_ref()?.get(key)
    }
}

impl std::fmt::Debug for DetoastCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("DetoastCache").field(&self.stats()).finish()
    }
}

/// Room in the map for a cache full of values of 8 kB, so that it seldom has to grow; 2 MiB or so for
/// each GiB of capacity.
fn initial_entries(capacity_bytes: u64) -> usize {
    const LIKELY_VALUE: u64 = 8 * 1024;
    const MOST: u64 = 1 << 20;
    usize::try_from((capacity_bytes / LIKELY_VALUE).min(MOST)).unwrap_or(0)
}

fn weight(value: &Bytes) -> u32 {
    u32::try_from(value.len())
        .unwrap_or(u32::MAX)
        .saturating_add(ENTRY_OVERHEAD_BYTES)
}

/// Identities are keyed hashes already: uniform, and not to be chosen by a client.
#[derive(Clone, Copy)]
struct IdentityHasherBuilder;

struct IdentityHasher(u64);

impl BuildHasher for IdentityHasherBuilder {
    type Hasher = IdentityHasher;

    fn build_hasher(&self) -> IdentityHasher {
        IdentityHasher(0)
    }
}

impl Hasher for IdentityHasher {
    fn write(&mut self, bytes: &[u8]) {
        // The length prefix of the array arrives by `write_usize`; only the key itself comes here.
        let mut first = [0u8; 8];
        let n = bytes.len().min(8);
        first[..n].copy_from_slice(&bytes[..n]);
        self.0 ^= u64::from_le_bytes(first);
    }

    fn write_usize(&mut self, _len: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}
