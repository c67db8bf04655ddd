//! A cache of analysed texts, bounded in entries and in bytes.
//!
//! Keys are texts within a set of tables. Shards keep sessions from waiting
//! for each other; each evicts by the clock algorithm.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::Mutex;

const SHARDS: usize = 8;
/// Bytes of texts and plans that one shard holds.
const SHARD_BYTES: usize = 1 << 20;
/// Texts above this are not kept.
const MAX_ENTRY_BYTES: usize = SHARD_BYTES / 2;

#[derive(Debug)]
pub(crate) struct Cache<V> {
    hasher: DefaultHashBuilder,
    shards: [Mutex<Shard<V>>; SHARDS],
    entries_per_shard: usize,
}

#[derive(Debug)]
struct Shard<V> {
    /// Indexes into `slots`.
    index: HashTable<usize>,
    slots: Vec<Slot<V>>,
    hand: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Slot<V> {
    hash: u64,
    tables: u64,
    text: Box<str>,
    value: Arc<V>,
    bytes: usize,
    used: bool,
}

impl<V> Cache<V> {
    pub(crate) fn new(entries: usize) -> Cache<V> {
        Cache {
            hasher: DefaultHashBuilder::default(),
            shards: std::array::from_fn(|_| Mutex::new(Shard::new())),
            entries_per_shard: entries.div_ceil(SHARDS),
        }
    }

    pub(crate) fn find(&self, tables: u64, text: &str) -> Option<Arc<V>> {
        if self.entries_per_shard == 0 || text.len() > MAX_ENTRY_BYTES {
            return None;
        }
        let hash = self.hash(tables, text);
        self.shard(hash).lock().find(hash, tables, text)
    }

    /// Keeps a value; `value_bytes` is about what it takes beside the text.
    pub(crate) fn keep(&self, tables: u64, text: &str, value: &Arc<V>, value_bytes: usize) {
        let bytes = text.len() + value_bytes + size_of::<Slot<V>>();
        if self.entries_per_shard == 0 || bytes > MAX_ENTRY_BYTES {
            return;
        }
        let hash = self.hash(tables, text);
        let slot = Slot {
            hash,
            tables,
            text: text.into(),
            value: Arc::clone(value),
            bytes,
            used: false,
        };
        let mut shard = self.shard(hash).lock();
        // Another session may have analysed the same text meanwhile.
        if shard.find(hash, tables, text).is_none() {
            shard.insert(slot, self.entries_per_shard);
        }
    }

    fn hash(&self, tables: u64, text: &str) -> u64 {
        self.hasher.hash_one((tables, text))
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard<V>> {
        // The table uses the low bits and the top seven.
        &self.shards[(hash >> 40) as usize % SHARDS]
    }
}

impl<V> Shard<V> {
    fn new() -> Shard<V> {
        Shard {
            index: HashTable::new(),
            slots: Vec::new(),
            hand: 0,
            bytes: 0,
        }
    }

    fn find(&mut self, hash: u64, tables: u64, text: &str) -> Option<Arc<V>> {
        let slots = &self.slots;
        let is_it = |&i: &usize| slots[i].tables == tables && *slots[i].text == *text;
        let i = *self.index.find(hash, is_it)?;
        let slot = &mut self.slots[i];
        slot.used = true;
        Some(Arc::clone(&slot.value))
    }

    fn insert(&mut self, slot: Slot<V>, max_slots: usize) {
        while self.slots.len() >= max_slots || self.bytes + slot.bytes > SHARD_BYTES {
            self.evict();
        }
        let slots = &self.slots;
        let i = slots.len();
        self.index
            .insert_unique(slot.hash, i, |&other| slots[other].hash);
        self.bytes += slot.bytes;
        self.slots.push(slot);
    }

    /// Removes the first slot from the hand on that was not used since the hand last passed.
    fn evict(&mut self) {
        while !self.slots.is_empty() {
            self.hand %= self.slots.len();
            let slot = &mut self.slots[self.hand];
            if std::mem::take(&mut slot.used) {
                self.hand += 1;
                continue;
            }
            self.remove(self.hand);
            return;
        }
    }

    fn remove(&mut self, i: usize) {
        let last = self.slots.len() - 1;
        if let Ok(entry) = self.index.find_entry(self.slots[i].hash, |&at| at == i) {
            entry.remove();
        }
        if let Some(moved) = self.index.find_mut(self.slots[last].hash, |&at| at == last) {
            *moved = i;
        }
        self.bytes -= self.slots[i].bytes;
        self.slots.swap_remove(i);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills a small cache far beyond its bounds, using one text all the time:
    /// the bounds hold, every hit is the right value, the used text survives.
    #[test]
    fn bounds_hold_and_hits_are_right() {
        let cache: Cache<String> = Cache::new(64);
        cache.keep(1, "hot", &Arc::new("hot".to_owned()), 10);
        for i in 0..10_000 {
            let text = format!("text {i}");
            cache.keep(1, &text, &Arc::new(text.clone()), 1000);
            if i % 16 == 0 {
                assert_eq!(*cache.find(1, &text).expect("just kept"), text);
            }
            assert!(cache.find(2, &text).is_none());
            assert_eq!(*cache.find(1, "hot").expect("always used"), "hot");
        }
        let mut kept = 0;
        for shard in &cache.shards {
            let shard = shard.lock();
            assert!(shard.slots.len() <= 8 && shard.index.len() == shard.slots.len());
            assert_eq!(
                shard.bytes,
                shard.slots.iter().map(|s| s.bytes).sum::<usize>()
            );
            kept += shard.slots.len();
        }
        assert!(kept > 32);
    }

    #[test]
    fn large_texts_push_out_others_but_never_exceed_the_bytes() {
        let cache: Cache<()> = Cache::new(10_000);
        for i in 0..200 {
            let text = format!("{i}{}", "x".repeat(100_000));
            cache.keep(1, &text, &Arc::new(()), 0);
        }
        assert!(
            cache
                .shards
                .iter()
                .all(|s| s.lock().bytes <= SHARD_BYTES && !s.lock().slots.is_empty())
        );
        let huge = "x".repeat(MAX_ENTRY_BYTES + 1);
        cache.keep(1, &huge, &Arc::new(()), 0);
        assert!(cache.find(1, &huge).is_none());
    }

    #[test]
    fn nothing_is_kept_without_entries() {
        let cache: Cache<()> = Cache::new(0);
        cache.keep(1, "a", &Arc::new(()), 0);
        assert!(cache.find(1, "a").is_none());
    }
}
