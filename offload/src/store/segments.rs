//! Segment files: their names, making a new one, ending one.
//!
//! Invariants: G1 a segment gets its name only when it is whole: full length, zeroed, headed, synced.
//!             G2 a sealed segment is never written again.
//! Format:     docs/format/segment-v1.md

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::disk::{Audience, Disk, DiskFile};
use crate::format::StoreId;
use crate::format::segment::{BLOCK_LEN, RECORDS_START, Seal, SegmentHeader};

/// The folder of segments.
pub(crate) const FOLDER: &str = "segments";

pub(crate) fn file_name(segment: u32) -> String {
    format!("{FOLDER}/{segment:08x}.seg")
}

fn draft_name(segment: u32) -> String {
    format!("{FOLDER}/{segment:08x}.tmp")
}

/// What a name in the folder stands for.
pub(crate) enum Name {
    Segment(u32),
    /// A segment that was being made.
    Draft,
    Foreign,
}

pub(crate) fn read_name(name: &str) -> Name {
    let Some((digits, extension)) = name.split_once('.') else {
        return Name::Foreign;
    };
    let lower_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if digits.len() != 8 || !digits.bytes().all(lower_hex) {
        return Name::Foreign;
    }
    match (extension, u32::from_str_radix(digits, 16)) {
        ("seg", Ok(segment)) if segment > 0 => Name::Segment(segment),
        ("tmp", Ok(_)) => Name::Draft,
        _ => Name::Foreign,
    }
}

/// A segment that takes records.
pub(crate) struct OpenSegment {
    pub(crate) segment: u32,
    pub(crate) file: Arc<dyn DiskFile>,
    /// Where the next record goes.
    pub(crate) tail: u64,
    /// End of the records region.
    pub(crate) end: u64,
    /// Records up to `tail`.
    pub(crate) records: u64,
}

impl OpenSegment {
    pub(crate) fn room(&self) -> u64 {
        self.end - self.tail
    }
}

/// End of the records region of a segment of this length.
pub(crate) fn records_end(file_len: u64) -> u64 {
    file_len - BLOCK_LEN as u64
}

/// Makes segment `segment`, ready to be written (G1). Stops with `Interrupted` when `stop` is set.
pub(crate) fn make(
    disk: &dyn Disk,
    store_id: &StoreId,
    segment: u32,
    file_len: u64,
    stop: &AtomicBool,
) -> io::Result<OpenSegment> {
    let draft = draft_name(segment);
    let made = fill(disk, &draft, store_id, segment, file_len, stop).and_then(|file| {
        disk.rename(&draft, &file_name(segment))?;
        disk.sync_dir(FOLDER)?;
        Ok(file)
    });
    match made {
        Ok(file) => Ok(OpenSegment {
            segment,
            file,
            tail: u64::from(RECORDS_START),
            end: records_end(file_len),
            records: 0,
        }),
        Err(error) => {
            // A draft that stays is removed at the next open.
            let _ = disk.remove(&draft);
            Err(error)
        }
    }
}

fn fill(
    disk: &dyn Disk,
    draft: &str,
    store_id: &StoreId,
    segment: u32,
    file_len: u64,
    stop: &AtomicBool,
) -> io::Result<Arc<dyn DiskFile>> {
    const CHUNK: u64 = 1 << 20;
    let file = disk.create(draft, Audience::Server)?;
    file.allocate(file_len)?;
    let zeroes = vec![0u8; CHUNK as usize];
    let mut at = 0;
    while at < file_len {
        if stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = CHUNK.min(file_len - at);
        file.write_at(&zeroes[..len as usize], at)?;
        at += len;
    }
    let header = SegmentHeader {
        store_id: *store_id,
        segment,
        file_len,
    };
    file.write_at(&header.to_block(), 0)?;
    file.sync_all()?;
    Ok(file)
}

/// Writes the seal of a full segment whose records are all durable.
pub(crate) fn seal(
    store_id: &StoreId,
    segment: u32,
    file: &dyn DiskFile,
    tail: u64,
    records: u64,
    end: u64,
) -> io::Result<()> {
    let seal = Seal {
        store_id: *store_id,
        segment,
        tail,
        records,
        recovered: false,
    };
    file.write_at(&seal.to_block(), end)?;
    file.sync_data()
}
