//! The chunk store: values in, references out, and back.
//!
//! Owns:       the directory (by its lock), the segment being written, the dedup hint, two threads.
//! Promises:   S3 by `durable`; S4 by every read; S9: nothing on disk panics a reader.
//! Format:     docs/format/segment-v1.md, docs/format/reference-v1.md
//! Proof:      tests/model.rs, tests/recovery.rs, tests/flips.rs, tests/faults.rs, tests/golden.rs

mod batch;
mod buffer;
mod committer;
pub(crate) mod open;
mod pipeline;
mod put;
mod read;
mod readers;
pub(crate) mod segments;
mod steward;
mod tickets;

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use self::pipeline::Pipeline;
use self::readers::Readers;
use self::tickets::Fate;
use crate::disk::{Disk, RealDisk};
use crate::error::{Kind, StoreError};
use crate::format::StoreId;
use crate::hint::Hint;
use crate::key::StoreKey;
use crate::kind::ValueKind;
use crate::options::StoreOptions;
use crate::reference::Reference;
use crate::stats::{Counters, StoreStats};

/// A store that is open for reading and writing. Clones share it; the last one to be dropped
/// writes what is pending and stops the threads, which may block for as long as a sync takes.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    threads: Arc<Threads>,
}

/// A point in the order of puts, for [`Store::durable`].
///
/// Of several tickets, waiting for the greatest covers the others, as long as they are awaited
/// within [`StoreOptions::failure_pause`] of the first put: after a failed write no value is taken
/// for that time, so a ticket that was given out later cannot hide one that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticket(pub(crate) u64);

/// What `put` returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Put {
    /// What to put in the row, once `ticket` is durable.
    pub reference: Reference,
    /// What to wait for.
    pub ticket: Ticket,
    /// The value was in the store already and was not written again.
    pub deduplicated: bool,
}

/// Whether the store takes values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreState {
    /// It does.
    Healthy,
    /// It does not, for this reason; reads go on.
    ReadOnly {
        /// For an operator.
        reason: String,
    },
}

/// What the handles and the threads have in common.
pub(crate) struct Shared {
    options: StoreOptions,
    key: StoreKey,
    store_id: StoreId,
    disk: Arc<dyn Disk>,
    pipeline: Pipeline,
    readers: Readers,
    hint: Mutex<Hint>,
    counters: Counters,
    sizes: Sizes,
    reads: Arc<Semaphore>,
    next_segment: AtomicU32,
    /// Interrupts the making of a segment.
    stop: AtomicBool,
    lock: Mutex<Option<Box<dyn Any + Send + Sync>>>,
}

/// Sizes of segments other than the one being written.
#[derive(Default)]
struct Sizes {
    segments: AtomicU64,
    segment_bytes: AtomicU64,
    /// Records in segments that are not written any more.
    ended_bytes: AtomicU64,
}

struct Threads {
    shared: Arc<Shared>,
    running: Mutex<Option<[JoinHandle<()>; 2]>>,
}

impl Store {
    /// Opens the store in a directory of the file system; creates it when there is none.
    ///
    /// Blocks while it scans what was being written at the last close or crash, and while it makes
    /// a segment if none can be written: up to a second or so with the default segment length.
    ///
    /// # Errors
    /// `BadConfig` when an option is out of range, the directory is another process's, of another
    /// format version, not a store, or its key is missing or another store's; `Full` and `Io` as
    /// the disk has it.
    pub fn open(options: StoreOptions) -> Result<Store, StoreError> {
        let disk = RealDisk::new(&options.directory, options.server_gid);
        Store::open_on(Arc::new(disk), options)
    }

    /// Opens a store on a disk of the caller's; `options.directory` and `server_gid` only serve
    /// messages then.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(disk: Arc<dyn Disk>, options: StoreOptions) -> Result<Store, StoreError> {
        let shared = Arc::new(open::open(disk, options)?);
        let spawn = |name: &str, run: fn(&Shared)| {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name(name.to_owned())
                .spawn(move || run(&shared))
                .map_err(|error| StoreError::io("starting a thread of the store", &error))
        };
        let committer = spawn("toastrack-commit", committer::run)?;
        let steward = match spawn("toastrack-steward", steward::run) {
            Ok(steward) => steward,
            Err(error) => {
                shared.pipeline.close();
                return Err(error);
            }
        };
        Ok(Store {
            threads: Arc::new(Threads {
                shared: Arc::clone(&shared),
                running: Mutex::new(Some([committer, steward])),
            }),
            shared,
        })
    }

    /// Hashes, deduplicates, compresses and appends a value to the batch that is being filled. Does
    /// not wait for the disk: 8 kB took 5 to 9 µs of CPU raw, 20 to 26 µs with lz4, 4 to 7 µs when
    /// deduplicated (busy machine of 2 cores).
    ///
    /// `char_len` is the number of characters of the value, for bytea the number of bytes. The
    /// reference may go into a row only once the ticket is durable.
    ///
    /// # Errors
    /// `Retry` when too much is pending or the next segment is not ready: leave the value inline,
    /// or await [`Store::room`] and try again. `BadRequest` when the value is longer than
    /// [`MAX_VALUE_LEN`](crate::MAX_VALUE_LEN) or does not fit a segment. `Full` and `ReadOnly`
    /// when nothing is taken.
    pub fn put(&self, kind: ValueKind, char_len: u32, value: &[u8]) -> Result<Put, StoreError> {
        self.shared.put(kind, char_len, value)
    }

    /// Waits until everything up to `ticket` survives power loss. Cancel-safe.
    ///
    /// # Errors
    /// What the write or the sync failed with; the references of that ticket must not be used.
    pub async fn durable(&self, ticket: Ticket) -> Result<(), StoreError> {
        match self.shared.pipeline.settled(ticket).await {
            Fate::Durable => Ok(()),
            Fate::Failed(error) => Err(error),
            Fate::Pending => Err(StoreError::new(
                Kind::Bug,
                "a ticket was announced too early",
            )),
        }
    }

    /// Whether `durable` would return `Ok` at once.
    pub fn is_durable(&self, ticket: Ticket) -> bool {
        matches!(self.shared.pipeline.fate(ticket), Fate::Durable)
    }

    /// Waits until `put` would take a value of up to [`MAX_RECORD_LEN`](crate::MAX_RECORD_LEN) bytes.
    /// Cancel-safe.
    ///
    /// # Errors
    /// Any error of `put` but `Retry`.
    pub async fn room(&self) -> Result<(), StoreError> {
        // A pause ends by the clock, without a change to wake up for.
        const POLL: Duration = Duration::from_millis(50);
        let pipeline = &self.shared.pipeline;
        let mut changes = pipeline.changes();
        loop {
            match pipeline.has_room() {
                Err(error) if error.kind() == Kind::Retry => {}
                other => return other,
            }
            // A time-out is a reason to look again as well.
            let _ = tokio::time::timeout(POLL, changes.changed()).await;
        }
    }

    /// Reads a field of a column of `kind`, as it stands in the row: in text form for text, varchar,
    /// json and jsonb, raw for bytea. `None`: ordinary data, which includes references of other
    /// stores. The kind of the reference may be another of the same family (docs/format).
    pub fn parse(&self, kind: ValueKind, field: &[u8]) -> Option<Reference> {
        Reference::parse(&self.shared.key, kind, field)
    }

    /// Reads the text spelling (`toast:...`) of a reference of any kind. `None`: ordinary data.
    pub fn parse_any_text(&self, field: &[u8]) -> Option<Reference> {
        Reference::parse_text(&self.shared.key, field)
    }

    /// Counters and sizes.
    pub fn stats(&self) -> StoreStats {
        let shared = &self.shared;
        let (pending, target_tail) = shared.pipeline.usage();
        let target_used = target_tail.map_or(0, |tail| {
            tail - u64::from(crate::format::segment::RECORDS_START)
        });
        StoreStats {
            segments: shared.sizes.segments.load(Ordering::Relaxed),
            segment_bytes: shared.sizes.segment_bytes.load(Ordering::Relaxed),
            used_bytes: shared.sizes.ended_bytes.load(Ordering::Relaxed) + target_used,
            pending_bytes: pending as u64,
            ..shared.counters.read()
        }
    }

    /// Whether values are taken.
    pub fn state(&self) -> StoreState {
        self.shared.pipeline.health()
    }

    /// Takes no more values, writes what is pending, stops the threads and unlocks the directory.
    /// Blocks for as long as that takes. Other clones can still read.
    pub fn close(self) {
        self.threads.stop();
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("directory", &self.shared.options.directory)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl Threads {
    fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.pipeline.close();
        let running = self.running.lock().take();
        for thread in running.into_iter().flatten() {
            if thread.join().is_err() {
                tracing::error!("a thread of the store panicked");
            }
        }
        self.shared.lock.lock().take();
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.stop();
    }
}
