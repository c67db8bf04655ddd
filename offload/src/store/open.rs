//! Opening a store: lock, superblock, key, and what the last writer left open.
//!
//! Promises:   nothing that verifies is ever dropped; a segment that had to be cut is not written again.
//! Format:     docs/format/segment-v1.md, "Torn-tail rule", "Unknown-version rule"
//! Proof:      tests/recovery.rs, tests/golden.rs

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::buffer::buffer_len;
use super::pipeline::{Limits, Pipeline};
use super::readers::Readers;
use super::segments::{self, FOLDER, Name, OpenSegment};
use super::{Shared, Sizes};
use crate::disk::{Audience, Disk, DiskFile};
use crate::error::{Kind, StoreError};
use crate::format::StoreId;
use crate::format::segment::{BLOCK_LEN, FILE_LEN_UNIT, Found, RECORDS_START, Seal, SegmentHeader};
use crate::format::superblock::{self, Superblock};
use crate::hint::Hint;
use crate::key::StoreKey;
use crate::options::StoreOptions;
use crate::recover::{self, Scan};
use crate::stats::{Counters, add};

pub(crate) const LOCK: &str = "lock";
pub(crate) const KEY: &str = "key";
pub(crate) const KEY_LEN: usize = 32;
const DRAFT_SUFFIX: &str = ".tmp";

pub(super) fn open(disk: Arc<dyn Disk>, options: StoreOptions) -> Result<Shared, StoreError> {
    options.check()?;
    let shown = options.directory.display().to_string();
    let failed = |what: &str, error: io::Error| failed(&shown, what, error);

    refuse_foreign(&*disk, &shown)?;
    disk.create_dir("", Audience::Server)
        .map_err(|e| failed("creating the directory", e))?;
    let lock = disk
        .lock(LOCK)
        .map_err(|e| failed("locking", e))?
        .ok_or_else(|| bad(&shown, "another process has it open"))?;
    let (superblock, key) = match read_small(&*disk, superblock::FILE_NAME, superblock::MAX_LEN) {
        Ok(bytes) => known(&*disk, &bytes, &shown)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(&*disk, &shown)?,
        Err(error) => return Err(failed("reading the superblock", error)),
    };
    // The group may have changed since the store was made.
    disk.create_dir(FOLDER, Audience::Server)
        .and_then(|()| disk.restrict(superblock::FILE_NAME, Audience::Server))
        .and_then(|()| disk.restrict(KEY, Audience::Owner))
        .map_err(|e| failed("setting owner group and mode", e))?;

    let store_id = superblock.store_id;
    let sizes = Sizes::default();
    let left = Survey::of(&*disk, &store_id, &sizes, &shown)?;
    let next_segment = AtomicU32::new(left.last_segment.saturating_add(1));
    let stop = AtomicBool::new(false);
    let target = match left.target {
        Some(target) => target,
        None => first_segment(&*disk, &store_id, &next_segment, &sizes, &options, &stop)?,
    };
    let limits = Limits {
        max_pending_bytes: options.max_pending_bytes,
        buffer_len: buffer_len(options.segment_len_bytes),
        failure_pause: options.failure_pause,
    };
    Ok(Shared {
        key,
        store_id,
        pipeline: Pipeline::new(target, left.spare, limits),
        readers: Readers::default(),
        hint: Mutex::new(Hint::new(options.dedup_entries)),
        counters: Counters::default(),
        sizes,
        reads: Arc::new(Semaphore::new(options.max_reads_in_flight)),
        next_segment,
        stop,
        lock: Mutex::new(Some(lock)),
        disk,
        options,
    })
}

/// Refuses a directory that is neither a store nor the beginnings of one, before anything in it or
/// its mode is changed.
fn refuse_foreign(disk: &dyn Disk, shown: &str) -> Result<(), StoreError> {
    let names = match disk.list("") {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(shown, "listing the directory", error)),
    };
    if names.iter().any(|name| name == superblock::FILE_NAME) {
        return Ok(());
    }
    let own = |name: &str| {
        let name = name.strip_suffix(DRAFT_SUFFIX).unwrap_or(name);
        [LOCK, KEY, FOLDER, superblock::FILE_NAME].contains(&name)
    };
    match names.iter().find(|name| !own(name)) {
        Some(name) => Err(bad(
            shown,
            format_args!("it is not a store, and not empty: there is {name}"),
        )),
        None => Ok(()),
    }
}

fn bad(directory: &str, what: impl fmt::Display) -> StoreError {
    StoreError::new(Kind::BadConfig, format_args!("store {directory}: {what}"))
}

fn failed(directory: &str, what: &str, error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory => {
            bad(directory, format_args!("{what}: {error}"))
        }
        _ => StoreError::io(format_args!("store {directory}: {what}"), &error),
    }
}

/// Superblock and key of a store that exists.
fn known(disk: &dyn Disk, bytes: &[u8], shown: &str) -> Result<(Superblock, StoreKey), StoreError> {
    let superblock = Superblock::parse(bytes)
        .map_err(|error| bad(shown, format_args!("superblock refused: {error}")))?;
    let key = read_key(disk, &superblock).map_err(|error| bad(shown, error))?;
    Ok((superblock, key))
}

/// The key of a store with this superblock; says what is wrong with it otherwise.
pub(crate) fn read_key(disk: &dyn Disk, superblock: &Superblock) -> Result<StoreKey, String> {
    let bytes = read_small(disk, KEY, KEY_LEN + 1)
        .map_err(|error| format!("the key file cannot be read: {error}"))?;
    let key = <[u8; KEY_LEN]>::try_from(bytes.as_slice())
        .map_err(|_| format!("the key file is not {KEY_LEN} bytes long"))?;
    let key = StoreKey::new(key);
    if key.check() != superblock.key_check {
        return Err("the key file is of another store".to_owned());
    }
    Ok(key)
}

/// Makes a new store. The superblock comes last: a directory that has it has all the rest.
fn create(disk: &dyn Disk, shown: &str) -> Result<(Superblock, StoreKey), StoreError> {
    let failed = |what: &str, error: io::Error| failed(shown, what, error);
    disk.create_dir(FOLDER, Audience::Server)
        .map_err(|e| failed("creating the folder of segments", e))?;
    let present = disk
        .list(FOLDER)
        .map_err(|e| failed("listing segments", e))?;
    if present
        .iter()
        .any(|name| matches!(segments::read_name(name), Name::Segment(_)))
    {
        return Err(bad(shown, "there are segments but no superblock"));
    }
    let mut random = [0u8; KEY_LEN + 16];
    getrandom::fill(&mut random).map_err(|e| bad(shown, format_args!("no randomness: {e}")))?;
    let mut key = [0u8; KEY_LEN];
    key.copy_from_slice(&random[..KEY_LEN]);
    let mut store_id: StoreId = [0; 16];
    store_id.copy_from_slice(&random[KEY_LEN..]);

    // A key without a superblock is of a creation that did not get to its end: nothing uses it.
    match disk.remove(KEY) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed("removing an unused key", error));
        }
        _ => {}
    }
    write_whole(disk, KEY, Audience::Owner, &key).map_err(|e| failed("writing the key", e))?;
    let key = StoreKey::new(key);
    let superblock = Superblock {
        store_id,
        key_check: key.check(),
    };
    let text = superblock.to_text();
    write_whole(
        disk,
        superblock::FILE_NAME,
        Audience::Server,
        text.as_bytes(),
    )
    .map_err(|e| failed("writing the superblock", e))?;
    Ok((superblock, key))
}

/// Writes a small file so that it is there whole and durable, or not at all.
pub(crate) fn write_whole(
    disk: &dyn Disk,
    name: &str,
    audience: Audience,
    bytes: &[u8],
) -> io::Result<()> {
    let draft = format!("{name}{DRAFT_SUFFIX}");
    match disk.remove(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = disk.create(&draft, audience)?;
    file.write_at(bytes, 0)?;
    file.sync_all()?;
    disk.rename(&draft, name)?;
    disk.sync_dir("")
}

pub(crate) fn read_small(disk: &dyn Disk, name: &str, most: usize) -> io::Result<Vec<u8>> {
    let file = disk.open(name, false)?;
    let mut bytes = vec![0u8; most];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

fn first_segment(
    disk: &dyn Disk,
    store_id: &StoreId,
    next_segment: &AtomicU32,
    sizes: &Sizes,
    options: &StoreOptions,
    stop: &AtomicBool,
) -> Result<OpenSegment, StoreError> {
    let segment = next_segment.fetch_add(1, Ordering::Relaxed);
    let len = options.segment_len_bytes;
    let made = segments::make(disk, store_id, segment, len, stop)
        .map_err(|error| StoreError::io(format_args!("making segment {segment:08x}"), &error))?;
    add(&sizes.segments, 1);
    add(&sizes.segment_bytes, len);
    Ok(made)
}

/// What the last writer left.
struct Survey {
    target: Option<OpenSegment>,
    spare: Option<OpenSegment>,
    last_segment: u32,
}

impl Survey {
    fn of(
        disk: &dyn Disk,
        store_id: &StoreId,
        sizes: &Sizes,
        shown: &str,
    ) -> Result<Survey, StoreError> {
        let names = disk
            .list(FOLDER)
            .map_err(|e| failed(shown, "listing segments", e))?;
        let mut numbers = Vec::new();
        for name in names {
            match segments::read_name(&name) {
                Name::Segment(segment) => numbers.push(segment),
                Name::Draft => disk
                    .remove(&format!("{FOLDER}/{name}"))
                    .map_err(|e| failed(shown, "removing a segment draft", e))?,
                Name::Foreign => tracing::warn!(name, "foreign file in the folder of segments"),
            }
        }
        numbers.sort_unstable();
        let mut survey = Survey {
            target: None,
            spare: None,
            last_segment: numbers.last().copied().unwrap_or(0),
        };
        for segment in numbers {
            let about =
                |error: io::Error| failed(shown, &format!("opening segment {segment:08x}"), error);
            let found = Left::read(disk, store_id, segment).map_err(about)?;
            add(&sizes.segments, 1);
            add(&sizes.segment_bytes, found.file_len);
            survey.take(disk, store_id, segment, found, sizes, shown)?;
        }
        Ok(survey)
    }

    fn take(
        &mut self,
        disk: &dyn Disk,
        store_id: &StoreId,
        segment: u32,
        found: Left,
        sizes: &Sizes,
        shown: &str,
    ) -> Result<(), StoreError> {
        let records_start = u64::from(RECORDS_START);
        match found.condition {
            Condition::Newer(version) => Err(bad(
                shown,
                format_args!(
                    "segment {segment:08x} is of format {version}, and this program knows format {} only",
                    crate::format::FORMAT_VERSION
                ),
            )),
            Condition::Sealed(seal) => {
                add(&sizes.ended_bytes, seal.tail.saturating_sub(records_start));
                Ok(())
            }
            Condition::Unwritable => {
                tracing::error!(
                    segment = format_args!("{segment:08x}"),
                    "segment header is damaged; its records are read as before"
                );
                add(&sizes.ended_bytes, found.file_len);
                Ok(())
            }
            Condition::Open { seal_damaged } => {
                let name = segments::file_name(segment);
                let reopened = disk.open(&name, true).and_then(|file| {
                    recover(file, store_id, segment, found.file_len, seal_damaged)
                });
                match reopened {
                    Ok(Recovered::Clean(open)) => self.adopt(store_id, open, sizes),
                    Ok(Recovered::Ended { scan, new_len }) => {
                        sizes.end(&scan, found.file_len, new_len);
                        Ok(())
                    }
                    // What cannot be scanned or sealed is left as it is; its records are read as
                    // before, and the next open tries again.
                    Err(error) => {
                        tracing::error!(
                            segment = format_args!("{segment:08x}"),
                            %error,
                            "segment cannot be recovered, it is not written again"
                        );
                        add(&sizes.ended_bytes, found.file_len);
                        Ok(())
                    }
                }
            }
        }
    }

    /// Decides what a clean open segment is for: the last one with records is written on, one
    /// without is the spare, and any others are ended.
    fn adopt(
        &mut self,
        store_id: &StoreId,
        open: OpenSegment,
        sizes: &Sizes,
    ) -> Result<(), StoreError> {
        let ended = match (self.target.take(), open) {
            (None, open) => {
                self.target = Some(open);
                None
            }
            (Some(target), open) if open.records == 0 => {
                self.target = Some(target);
                self.spare.replace(open)
            }
            (Some(target), open) if target.records == 0 => {
                self.target = Some(open);
                self.spare.replace(target)
            }
            (Some(target), open) => {
                self.target = Some(open);
                Some(target)
            }
        };
        let Some(ended) = ended else {
            return Ok(());
        };
        let file_len = ended.end + BLOCK_LEN as u64;
        let scan = Scan {
            tail: ended.tail,
            records: ended.records,
            clean: true,
            used_end: ended.tail,
        };
        let new_len =
            end(&*ended.file, store_id, ended.segment, file_len, &scan).map_err(|error| {
                StoreError::io(
                    format_args!("sealing segment {:08x}", ended.segment),
                    &error,
                )
            })?;
        sizes.end(&scan, file_len, new_len);
        Ok(())
    }
}

impl Sizes {
    fn end(&self, scan: &Scan, file_len: u64, new_len: u64) {
        add(&self.ended_bytes, scan.tail - u64::from(RECORDS_START));
        self.segment_bytes
            .fetch_sub(file_len - new_len, Ordering::Relaxed);
    }
}

/// A segment file as it was found.
struct Left {
    file_len: u64,
    condition: Condition,
}

enum Condition {
    Sealed(Seal),
    Open {
        seal_damaged: bool,
    },
    /// Its header does not verify or disagrees with the file.
    Unwritable,
    Newer(u32),
}

impl Left {
    fn read(disk: &dyn Disk, store_id: &StoreId, segment: u32) -> io::Result<Left> {
        let name = segments::file_name(segment);
        disk.restrict(&name, Audience::Server)?;
        let file = disk.open(&name, false)?;
        let file_len = file.byte_len()?;
        let condition = Left::condition(&*file, file_len, store_id, segment)?;
        Ok(Left {
            file_len,
            condition,
        })
    }

    fn condition(
        file: &dyn DiskFile,
        file_len: u64,
        store_id: &StoreId,
        segment: u32,
    ) -> io::Result<Condition> {
        let least = u64::from(RECORDS_START) + BLOCK_LEN as u64;
        if file_len < least || !file_len.is_multiple_of(FILE_LEN_UNIT) {
            return Ok(Condition::Unwritable);
        }
        let header = match SegmentHeader::read(&block(file, 0)?, store_id, segment) {
            Found::UnknownVersion(version) => return Ok(Condition::Newer(version)),
            Found::Valid(header) => Some(header),
            Found::Absent | Found::Damaged => None,
        };
        let trailer = block(file, segments::records_end(file_len))?;
        Ok(match Seal::read(&trailer, store_id, segment) {
            Found::UnknownVersion(version) => Condition::Newer(version),
            Found::Valid(seal) => Condition::Sealed(seal),
            seal => match header {
                Some(header) if header.file_len == file_len => Condition::Open {
                    seal_damaged: seal == Found::Damaged,
                },
                _ => Condition::Unwritable,
            },
        })
    }
}

pub(crate) fn block(file: &dyn DiskFile, at: u64) -> io::Result<[u8; BLOCK_LEN]> {
    let mut block = [0u8; BLOCK_LEN];
    match file.read_at(&mut block, at)? {
        BLOCK_LEN => Ok(block),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

enum Recovered {
    /// Writing goes on in it.
    Clean(OpenSegment),
    /// It was sealed.
    Ended { scan: Scan, new_len: u64 },
}

fn recover(
    file: Arc<dyn DiskFile>,
    store_id: &StoreId,
    segment: u32,
    file_len: u64,
    seal_damaged: bool,
) -> io::Result<Recovered> {
    let records_end = segments::records_end(file_len);
    let scan = recover::scan(&*file, store_id, segment, records_end)?;
    // What was found may be in the page cache only, since the process that wrote it was killed: from
    // here on everything up to the tail is durable.
    file.sync_data()?;
    if scan.clean && !seal_damaged {
        return Ok(Recovered::Clean(OpenSegment {
            segment,
            file,
            tail: scan.tail,
            end: records_end,
            records: scan.records,
        }));
    }
    tracing::warn!(
        segment = format_args!("{segment:08x}"),
        tail = scan.tail,
        records = scan.records,
        "torn tail cut"
    );
    let new_len = end(&*file, store_id, segment, file_len, &scan)?;
    Ok(Recovered::Ended { scan, new_len })
}

/// Seals a segment behind everything that is in it and gives back the space after that; returns the
/// new length.
fn end(
    file: &dyn DiskFile,
    store_id: &StoreId,
    segment: u32,
    file_len: u64,
    scan: &Scan,
) -> io::Result<u64> {
    let needed = scan.used_end + BLOCK_LEN as u64;
    let new_len = needed.next_multiple_of(FILE_LEN_UNIT).min(file_len);
    let seal = Seal {
        store_id: *store_id,
        segment,
        tail: scan.tail,
        records: scan.records,
        recovered: !scan.clean,
    };
    file.write_at(&seal.to_block(), segments::records_end(new_len))?;
    file.sync_data()?;
    if new_len < file_len {
        // A crash before this leaves a longer file without a seal at its end: scanned again.
        file.set_len(new_len)?;
        file.sync_all()?;
    }
    Ok(new_len)
}
