//! Finds the end of a segment that was not sealed.
//!
//! Promises:   the tail is the end of the last record that verifies, wherever damage is before it.
//!             Nothing is written here.
//! Format:     docs/format/segment-v1.md, "Torn-tail rule"
//! Proof:      tests/recovery.rs

use std::io;

use crate::MAX_RECORD_LEN;
use crate::disk::DiskFile;
use crate::format::StoreId;
use crate::format::bytes::{all_zero, array_at};
use crate::format::record::{self, ALIGNMENT, HEADER_LEN};
use crate::format::segment::RECORDS_START;

/// What a scan of a segment's records region found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scan {
    /// End of the last record that verifies.
    pub(crate) tail: u64,
    /// Records that verify.
    pub(crate) records: u64,
    /// Records follow one another without a gap, and zero bytes follow them to the end.
    pub(crate) clean: bool,
    /// Every byte from here on is zero; at least `tail`.
    pub(crate) used_end: u64,
}

/// Scans the records of `segment` from the start of the records region up to `end`.
pub(crate) fn scan(
    file: &dyn DiskFile,
    store_id: &StoreId,
    segment: u32,
    end: u64,
) -> io::Result<Scan> {
    let start = u64::from(RECORDS_START);
    let mut window = Window::new(file, end);
    let mut found = Scan {
        tail: start,
        records: 0,
        clean: true,
        used_end: start,
    };
    let mut at = start;
    while at < end {
        if let Some(len) = record_len(&mut window, store_id, segment, at)? {
            found.clean &= at == found.tail;
            at += len;
            found.tail = at.min(end);
            found.used_end = found.used_end.max(found.tail);
            found.records += 1;
            continue;
        }
        let step = (end - at).min(ALIGNMENT as u64);
        if !all_zero(window.slice(at, step as usize)?) {
            found.clean = false;
            at += step;
            found.used_end = at;
            continue;
        }
        // Most of what is not a record is the zeroes of the unused rest: skip them in blocks.
        let block_end = (at / BLOCK + 1).saturating_mul(BLOCK).min(end);
        let zero_block = all_zero(window.slice(at, (block_end - at) as usize)?);
        at = if zero_block { block_end } else { at + step };
    }
    Ok(found)
}

const BLOCK: u64 = 4096;

/// The footprint of the record at `at`, if one verifies there.
fn record_len(
    window: &mut Window<'_>,
    store_id: &StoreId,
    segment: u32,
    at: u64,
) -> io::Result<Option<u64>> {
    let Ok(offset) = u32::try_from(at) else {
        return Ok(None);
    };
    let header = window.slice(at, HEADER_LEN)?;
    if header.len() < HEADER_LEN {
        return Ok(None);
    }
    let header: [u8; HEADER_LEN] = array_at(header, 0);
    let Some(stored_len) = record::claimed_stored_len(&header, segment, offset) else {
        return Ok(None);
    };
    let payload = window.slice(at + HEADER_LEN as u64, stored_len)?;
    if payload.len() < stored_len {
        return Ok(None);
    }
    let verified = record::verifies(store_id, &header, payload);
    Ok(verified.then(|| record::footprint(stored_len) as u64))
}

/// A view of the file that slides forward, so that a scan needs a fixed buffer.
pub(crate) struct Window<'a> {
    file: &'a dyn DiskFile,
    end: u64,
    start: u64,
    buffer: Vec<u8>,
    bytes_read: u64,
    on_error: OnError,
    unreadable: Vec<(u64, u64)>,
}

/// What a failed read does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnError {
    Fail,
    /// Every block that cannot be read shows as `UNREADABLE` bytes.
    Substitute,
}

/// Neither zero, which would look unused, nor part of a record's magic.
const UNREADABLE: u8 = 0xFF;

/// Enough for the longest record, several times over.
const WINDOW_LEN: usize = 4 << 20;
const _: () = assert!(WINDOW_LEN >= 2 * (HEADER_LEN + MAX_RECORD_LEN));

impl<'a> Window<'a> {
    /// Shows `file` up to `end`.
    pub(crate) fn new(file: &'a dyn DiskFile, end: u64) -> Window<'a> {
        Window {
            file,
            end,
            start: 0,
            buffer: Vec::new(),
            bytes_read: 0,
            on_error: OnError::Fail,
            unreadable: Vec::new(),
        }
    }

    /// As `new`, but blocks that the disk cannot read show as other bytes than zero, so that the
    /// blocks around them can still be looked at.
    pub(crate) fn over_damage(file: &'a dyn DiskFile, end: u64) -> Window<'a> {
        Window {
            on_error: OnError::Substitute,
            ..Window::new(file, end)
        }
    }

    /// Whether a block of `start..stop` could not be read, as far as the last slice showed it.
    pub(crate) fn is_unreadable(&self, start: u64, stop: u64) -> bool {
        let mut blocks = self.unreadable.iter();
        blocks.any(|(from, to)| *from < stop && *to > start)
    }

    /// Bytes read from the file so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// Reads anew from here on: somebody may have written to the file.
    pub(crate) fn forget(&mut self) {
        self.buffer.clear();
    }

    /// `len` bytes at `at`, fewer at the end of the region.
    pub(crate) fn slice(&mut self, at: u64, len: usize) -> io::Result<&[u8]> {
        let len = len.min(usize::try_from(self.end.saturating_sub(at)).unwrap_or(len));
        let held = at >= self.start && at + len as u64 <= self.start + self.buffer.len() as u64;
        if !held {
            self.fill(at)?;
        }
        let from = (at - self.start) as usize;
        let to = (from + len).min(self.buffer.len());
        Ok(&self.buffer[from..to])
    }

    fn fill(&mut self, at: u64) -> io::Result<()> {
        let len = self.end.saturating_sub(at).min(WINDOW_LEN as u64) as usize;
        self.buffer.resize(len, 0);
        self.start = at;
        self.unreadable.clear();
        let read = match self.file.read_at(&mut self.buffer, at) {
            Ok(read) => read,
            Err(_) if self.on_error == OnError::Substitute => self.fill_readable(at)?,
            Err(error) => {
                // Nothing in it may be taken for what is in the file.
                self.buffer.clear();
                return Err(error);
            }
        };
        self.buffer.truncate(read);
        self.bytes_read += read as u64;
        Ok(())
    }

    /// Fills the buffer block by block; returns the bytes up to the end of the file.
    fn fill_readable(&mut self, at: u64) -> io::Result<usize> {
        let file_len = self.file.byte_len()?;
        let len = file_len.saturating_sub(at).min(self.buffer.len() as u64) as usize;
        let mut done = 0;
        while done < len {
            let start = at + done as u64;
            let to_block_end = (BLOCK - start % BLOCK) as usize;
            let block = &mut self.buffer[done..len.min(done + to_block_end)];
            done += block.len();
            let stop = at + done as u64;
            if self.file.read_at(block, start).is_err() {
                block.fill(UNREADABLE);
                match self.unreadable.last_mut() {
                    Some(last) if last.1 == start => last.1 = stop,
                    _ => self.unreadable.push((start, stop)),
                }
            }
        }
        Ok(len)
    }
}
