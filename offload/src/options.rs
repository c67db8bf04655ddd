//! How a store is opened.

use std::path::PathBuf;
use std::time::Duration;

use crate::MAX_RECORD_LEN;
use crate::compress::Compression;
use crate::error::{Kind, StoreError};
use crate::format::segment::{FILE_LEN_UNIT, MAX_FILE_LEN, MIN_FILE_LEN};

/// Settings of one store. They may differ from one opening to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreOptions {
    /// The store's directory; created, as a new store, when it is missing or empty.
    pub directory: PathBuf,
    /// Length of new segment files in bytes: 64 KiB to 4 GiB, a multiple of 4096. Default 256 MiB.
    /// Two such files are reserved ahead of the data: the one being written and, later, the next.
    pub segment_len_bytes: u64,
    /// Group that may read segments, so that the database server can. Default: nobody else may.
    pub server_gid: Option<u32>,
    /// Default lz4, kept from a saving of 12.5 % on.
    pub compression: Compression,
    /// Values the dedup hint remembers, at 64 bytes of memory each; 0 switches deduplication off.
    /// Default 262,144 (16 MiB).
    pub dedup_entries: usize,
    /// Write SHA-256 of raw payloads to their records, so that SQL can check what it reads from a
    /// segment file. Costs about as much as the identity again. Default off.
    pub server_digest: bool,
    /// Bytes that wait to be written, at most, before `put` answers `Kind::Retry`. At least
    /// 2 MiB; a value that is longer than this, compressed, is never taken. Default 48 MiB.
    pub max_pending_bytes: usize,
    /// Reads that wait for the disk at the same time, at most. Default 32.
    pub max_reads_in_flight: usize,
    /// How long `put` answers `Kind::Retry` after a failed write or sync. Tickets of one statement
    /// must be awaited within this time: see [`Ticket`](crate::Ticket). Default 5 s.
    pub failure_pause: Duration,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            directory: PathBuf::from("toastrack-store"),
            segment_len_bytes: 256 << 20,
            server_gid: None,
            compression: Compression::default(),
            dedup_entries: 1 << 18,
            server_digest: false,
            max_pending_bytes: 48 << 20,
            max_reads_in_flight: 32,
            failure_pause: Duration::from_secs(5),
        }
    }
}

impl StoreOptions {
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let bad = |what: String| Err(StoreError::new(Kind::BadConfig, what));
        let len = self.segment_len_bytes;
        if !(MIN_FILE_LEN..=MAX_FILE_LEN).contains(&len) || !len.is_multiple_of(FILE_LEN_UNIT) {
            return bad(format!(
                "segment length is {len} bytes, must be {MIN_FILE_LEN} to {MAX_FILE_LEN} and a \
                 multiple of {FILE_LEN_UNIT}"
            ));
        }
        if let Compression::Lz4 { min_saving } = self.compression
            && !(0.0..1.0).contains(&min_saving)
        {
            return bad(format!(
                "least saving of compression is {min_saving}, must be 0 or more and below 1"
            ));
        }
        if self.max_pending_bytes < 2 * MAX_RECORD_LEN {
            return bad(format!(
                "bytes that wait to be written are limited to {}, must be at least {}",
                self.max_pending_bytes,
                2 * MAX_RECORD_LEN
            ));
        }
        if self.max_reads_in_flight == 0 {
            return bad("reads in flight are limited to 0, must be at least 1".into());
        }
        Ok(())
    }
}
