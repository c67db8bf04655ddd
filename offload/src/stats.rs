//! What the store counts.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters since the store was opened, and its present size.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct StoreStats {
            /// Segment files.
            pub segments: u64,
            /// Length of all segment files in bytes, reserved space included.
            pub segment_bytes: u64,
            /// Bytes of them that hold records.
            pub used_bytes: u64,
            /// Bytes that wait to be written.
            pub pending_bytes: u64,
            $($(#[$doc])* pub $name: u64,)*
        }

        #[derive(Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: AtomicU64,)*
        }

        impl Counters {
            pub(crate) fn read(&self) -> StoreStats {
                StoreStats {
                    $($name: self.$name.load(Ordering::Relaxed),)*
                    ..StoreStats::default()
                }
            }
        }
    };
}

counters! {
    /// Values accepted by `put`, deduplicated ones included.
    values_put,
    /// Their logical bytes.
    logical_bytes,
    /// Payload bytes appended for them.
    stored_bytes,
    /// Puts that were refused because there was no room or no healthy segment.
    puts_refused,
    /// Values that were found stored already.
    dedup_hits,
    /// Logical bytes that were not written for that reason.
    dedup_bytes,
    /// Values whose compressed form was kept.
    values_compressed,
    /// Logical bytes of those.
    compression_in_bytes,
    /// Payload bytes of those.
    compression_out_bytes,
    /// Batches that became durable.
    batches,
    /// Calls of `fdatasync` for batches.
    syncs,
    /// Microseconds spent in them.
    sync_micros,
    /// Bytes written in batches, headers and padding included.
    written_bytes,
    /// Failed writes and syncs; each one poisons a segment.
    write_failures,
    /// Values read and verified.
    values_read,
    /// Of these, values that were in the page cache.
    values_read_from_memory,
    /// Their logical bytes.
    read_bytes,
    /// Reads from the disk after coalescing.
    disk_reads,
    /// Reads that found something else than the value.
    corrupt_reads,
    /// Reads that failed.
    read_failures,
}

pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
