//! The dedup hint: where values that were stored lately stand.
//!
//! Owns:       a fixed table; its size is set at open and never grows.
//! Promises:   nothing. It may forget anything at any time; reads never use it.
//! Invariants: H1 an entry is only shared after `Store::put` has checked it: see `Entry`.

use crate::key::Identity;
use crate::kind::ValueKind;
use crate::reference::{Address, Reference};
use crate::store::Ticket;

/// Entries of one bucket; a new entry pushes out the one that was used longest ago.
const WAYS: usize = 4;

/// A value that was put by this process.
///
/// Before it is shared, the 128-bit identity, the kind and both lengths are compared with the new
/// value's; that the batch of `ticket` did not fail; and, if the record is durable and its header
/// is in the page cache, that the header on disk says the same.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) reference: Reference,
    pub(crate) ticket: Ticket,
}

pub(crate) struct Hint {
    buckets: Vec<[Option<Entry>; WAYS]>,
}

impl Hint {
    /// A table for about `entries` values; 0 finds nothing ever.
    pub(crate) fn new(entries: usize) -> Hint {
        Hint {
            buckets: vec![[None; WAYS]; entries.div_ceil(WAYS)],
        }
    }

    pub(crate) fn find(
        &mut self,
        kind: ValueKind,
        identity: Identity,
        logical_len: u32,
        char_len: u32,
    ) -> Option<Entry> {
        let bucket = self.bucket(identity)?;
        let way = bucket.iter().position(|entry| {
            entry.is_some_and(|entry| {
                let address = entry.reference.address();
                address.identity == identity
                    && address.kind == kind
                    && address.logical_len == logical_len
                    && address.char_len == char_len
            })
        })?;
        bucket[..=way].rotate_right(1);
        bucket[0]
    }

    pub(crate) fn insert(&mut self, entry: Entry) {
        let identity = entry.reference.identity();
        if let Some(bucket) = self.bucket(identity) {
            bucket.rotate_right(1);
            bucket[0] = Some(entry);
        }
    }

    pub(crate) fn forget(&mut self, address: &Address) {
        if let Some(bucket) = self.bucket(address.identity) {
            for entry in bucket {
                if entry.is_some_and(|entry| entry.reference.address() == address) {
                    *entry = None;
                }
            }
        }
    }

    fn bucket(&mut self, identity: Identity) -> Option<&mut [Option<Entry>; WAYS]> {
        let mut first = [0u8; 8];
        first.copy_from_slice(&identity.0[..8]);
        let at = u64::from_le_bytes(first).checked_rem(self.buckets.len() as u64)?;
        self.buckets.get_mut(at as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::StoreKey;
    use crate::kind::Codec;

    fn entry(n: u8, kind: ValueKind) -> Entry {
        let address = Address {
            kind,
            codec: Codec::Raw,
            segment: 1,
            offset: u32::from(n) * 8,
            stored_len: 1,
            logical_len: 1,
            char_len: 1,
            identity: Identity([n; 16]),
        };
        Entry {
            reference: Reference::seal(&StoreKey::new([0; 32]), address),
            ticket: Ticket::default(),
        }
    }

    fn found(hint: &mut Hint, n: u8) -> bool {
        hint.find(ValueKind::Text, Identity([n; 16]), 1, 1)
            .is_some()
    }

    /// Proves: one bucket keeps the four used last, and kind and lengths are part of the question.
    #[test]
    fn a_bucket_keeps_what_was_used_last() {
        let mut hint = Hint::new(4);
        for n in 0..4 {
            hint.insert(entry(n, ValueKind::Text));
        }
        assert!(found(&mut hint, 0));
        hint.insert(entry(4, ValueKind::Text));
        assert!(found(&mut hint, 0));
        assert!(!found(&mut hint, 1));
        assert!(found(&mut hint, 2));
        let identity = Identity([2; 16]);
        assert!(hint.find(ValueKind::Varchar, identity, 1, 1).is_none());
        assert!(hint.find(ValueKind::Text, identity, 2, 1).is_none());
        assert!(hint.find(ValueKind::Text, identity, 1, 2).is_none());
        hint.forget(entry(2, ValueKind::Text).reference.address());
        assert!(!found(&mut hint, 2));
    }

    /// Proves: a table of no entries finds nothing and takes nothing.
    #[test]
    fn no_entries_no_dedup() {
        let mut hint = Hint::new(0);
        hint.insert(entry(1, ValueKind::Text));
        assert!(!found(&mut hint, 1));
    }

    /// Proves: what docs/format and the options say an entry costs.
    #[test]
    fn an_entry_is_small() {
        assert!(size_of::<Option<Entry>>() <= 64);
    }
}
