//! Looks into a store from outside: walks segments, checks chunks, without a lock and beside a writer.
//!
//! Owns:       nothing; files are opened for reading only, except by [`repair`].
//! Promises:   S9, nothing on disk panics or leads to a large allocation. What is not verified is
//!             never counted as verified. A write in progress is not called damage.
//! Format:     docs/format/segment-v1.md
//! Proof:      tests/inspect/, tests/inspect_repair.rs, tests/inspect_snapshot.rs

mod chunk;
mod condition;
mod pace;
mod pieces;

pub mod repair;
pub mod snapshot;
mod walk;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use self::chunk::Chunk;
pub use self::condition::SegmentState;
pub use self::pace::Pace;
pub use self::walk::{Damage, Depth, Finding, SegmentReport};

use crate::disk::{Disk, DiskFile, RealDisk};
use crate::error::{Kind, StoreError};
use crate::format::StoreId;
use crate::format::record::{self, HEADER_LEN};
use crate::format::superblock::{self, Superblock};
use crate::key::StoreKey;
use crate::kind::Codec;
use crate::reference::{Address, Reference};
use crate::store::open::{read_key, read_small};
use crate::store::segments::{self, FOLDER, Name};

/// A store seen from outside. It may be open in another process.
#[derive(Clone)]
pub struct Inspector {
    disk: Arc<dyn Disk>,
    shown: Arc<str>,
    store_id: StoreId,
    key_check: [u8; 8],
    key: Result<StoreKey, Arc<str>>,
    settle: Duration,
}

/// What is in the folder of segments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Numbers of the segments, ascending.
    pub segments: Vec<u32>,
    /// Files of segments that were being made.
    pub drafts: Vec<String>,
    /// Files that are none of the store's.
    pub foreign: Vec<String>,
}

/// How long bytes at the end of an open segment may fail to verify before they are called damage,
/// unless [`Inspector::settle_within`] says otherwise.
const SETTLE: Duration = Duration::from_secs(5);
/// How often such bytes are looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl Inspector {
    /// Reads superblock and key of the store in a directory. Takes no lock and changes nothing. A
    /// key that cannot be read is no error: [`Inspector::key_problem`] says what it was.
    ///
    /// # Errors
    /// `BadConfig` when the directory is no store or its superblock is damaged or of another format;
    /// `Io` as the disk has it.
    pub fn open(directory: &Path) -> Result<Inspector, StoreError> {
        let disk = Arc::new(RealDisk::new(directory, None));
        Inspector::open_on(disk, &directory.display().to_string())
    }

    /// As [`Inspector::open`], on a disk of the caller's; `shown` serves messages.
    ///
    /// # Errors
    /// As [`Inspector::open`].
    pub fn open_on(disk: Arc<dyn Disk>, shown: &str) -> Result<Inspector, StoreError> {
        let bad = |what: &dyn fmt::Display| {
            StoreError::new(Kind::BadConfig, format_args!("store {shown}: {what}"))
        };
        let bytes = match read_small(&*disk, superblock::FILE_NAME, superblock::MAX_LEN) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(bad(&"there is no superblock, so it is not a store"));
            }
            Err(error) => return Err(bad(&format_args!("reading the superblock: {error}"))),
        };
        let superblock = Superblock::parse(&bytes)
            .map_err(|error| bad(&format_args!("superblock refused: {error}")))?;
        Ok(Inspector {
            key: read_key(&*disk, &superblock).map_err(Arc::from),
            disk,
            shown: shown.into(),
            store_id: superblock.store_id,
            key_check: superblock.key_check,
            settle: SETTLE,
        })
    }

    /// How long bytes of a segment that is being written may fail to verify before they are called
    /// damage. Default 5 s.
    #[must_use]
    pub fn settle_within(mut self, settle: Duration) -> Inspector {
        self.settle = settle;
        self
    }

    /// The store's id, 32 hex digits.
    pub fn store_id(&self) -> String {
        self.store_id.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// The version of the format on disk.
    pub fn format_version(&self) -> u32 {
        crate::format::FORMAT_VERSION
    }

    /// Why identities and references cannot be checked; `None` when they can.
    pub fn key_problem(&self) -> Option<&str> {
        self.key.as_ref().err().map(|problem| &**problem)
    }

    /// What is in the folder of segments.
    ///
    /// # Errors
    /// `Io` when it cannot be listed.
    pub fn list(&self) -> Result<Listing, StoreError> {
        let names = self.disk.list(FOLDER).map_err(|error| {
            StoreError::io(
                format_args!("store {}: listing segments", self.shown),
                &error,
            )
        })?;
        let mut listing = Listing::default();
        for name in names {
            match segments::read_name(&name) {
                Name::Segment(segment) => listing.segments.push(segment),
                Name::Draft => listing.drafts.push(name),
                Name::Foreign => listing.foreign.push(name),
            }
        }
        listing.segments.sort_unstable();
        listing.drafts.sort_unstable();
        listing.foreign.sort_unstable();
        Ok(listing)
    }

    /// Length of all segment files.
    ///
    /// # Errors
    /// `Io` when one cannot be opened.
    pub fn total_bytes(&self) -> Result<u64, StoreError> {
        let mut total = 0;
        for segment in self.list()?.segments {
            total += self
                .open_segment(segment)
                .and_then(|file| file.byte_len())
                .map_err(|error| {
                    StoreError::io(format_args!("reading segment {segment:08x}"), &error)
                })?;
        }
        Ok(total)
    }

    /// Reads the text spelling of a reference. `None`: ordinary data, another store's reference, or
    /// the key is not to be had.
    pub fn parse_any_text(&self, field: &[u8]) -> Option<Reference> {
        Reference::parse_text(self.key.as_ref().ok()?, field)
    }

    /// The reference that a row would hold for a chunk. `None` without the key, and for a chunk that
    /// a newer program wrote.
    pub fn reference(&self, chunk: &Chunk) -> Option<Reference> {
        let address = chunk.address()?;
        Some(Reference::seal(self.key.as_ref().ok()?, address))
    }

    /// Reads the chunk of a reference, and its pieces if it is stored in pieces, and verifies all of
    /// it, its identity included where there is a key. A chunk that is being written is waited for.
    ///
    /// # Errors
    /// `Corrupt` when something else stands there or nothing; `Io` when the disk failed.
    pub fn read(&self, reference: &Reference) -> Result<(Chunk, Vec<u8>), StoreError> {
        let (chunk, content) = self.read_record(reference.address())?;
        match reference.codec() {
            Codec::Raw | Codec::Lz4 => Ok((chunk, content)),
            Codec::Manifest => Ok((chunk, self.put_together(reference.address(), &content)?)),
        }
    }

    /// The record of an address, verified; of a value in pieces the payload of its manifest.
    fn read_record(&self, expected: &Address) -> Result<(Chunk, Vec<u8>), StoreError> {
        let (chunk, content) = self.read_at(expected.segment, expected.offset)?;
        if chunk.address() != Some(*expected) {
            return Err(StoreError::corrupt(
                expected.segment,
                expected.offset,
                "the record header does not agree with the reference",
            ));
        }
        Ok((chunk, content))
    }

    /// Reads the chunk at a place and verifies it, its identity included where there is a key; gives
    /// its header and its value, of a value in pieces its manifest.
    ///
    /// # Errors
    /// As [`Inspector::read`].
    pub fn read_at(&self, segment: u32, offset: u32) -> Result<(Chunk, Vec<u8>), StoreError> {
        let began = Instant::now();
        loop {
            let error = match self.try_read_at(segment, offset) {
                Ok(read) => return Ok(read),
                Err(error) => error,
            };
            // A sealed segment does not change; an open one may just be written.
            if error.kind() != Kind::Corrupt
                || began.elapsed() >= self.settle
                || !self.may_change(segment)
            {
                return Err(error);
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn try_read_at(&self, segment: u32, offset: u32) -> Result<(Chunk, Vec<u8>), StoreError> {
        let corrupt = |seen: &dyn fmt::Display| StoreError::corrupt(segment, offset, seen);
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => corrupt(&"there is no such segment"),
            _ => StoreError::io(
                format_args!("reading segment {segment:08x} at offset {offset}"),
                &error,
            ),
        };
        let name = segments::file_name(segment);
        let file = self.disk.open(&name, false).map_err(failed)?;
        let mut header = [0u8; HEADER_LEN];
        let read = file.read_at(&mut header, offset.into()).map_err(failed)?;
        if read < HEADER_LEN {
            return Err(corrupt(&"the segment file ends before it"));
        }
        let stored_len = record::claimed_stored_len(&header, segment, offset)
            .ok_or_else(|| corrupt(&"no record starts there"))?;
        let mut payload = vec![0u8; stored_len];
        let at = u64::from(offset) + HEADER_LEN as u64;
        if file.read_at(&mut payload, at).map_err(failed)? < stored_len {
            return Err(corrupt(&"the segment file ends before it"));
        }
        let chunk = Chunk::new(segment, offset, &header);
        chunk
            .check_crc(&self.store_id, &header, &payload)
            .map_err(|seen| corrupt(&seen))?;
        let value = chunk
            .value(self.key.as_ref().ok(), &payload)
            .map_err(|seen| corrupt(&seen))?;
        Ok((chunk, value.into_owned()))
    }

    /// Whether a segment may be written at this moment.
    fn may_change(&self, segment: u32) -> bool {
        self.look(segment)
            .is_ok_and(|look| look.state == SegmentState::Open)
    }

    fn open_segment(&self, segment: u32) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(&segments::file_name(segment), false)
    }
}

impl fmt::Debug for Inspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspector")
            .field("directory", &self.shown)
            .finish_non_exhaustive()
    }
}
