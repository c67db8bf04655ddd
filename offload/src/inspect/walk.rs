//! Reads every record of a segment, and says what verifies and what does not.
//!
//! Promises:   every byte of a segment is looked at. A record is reported at most once. What a writer
//!             is just writing is looked at again before it is called damage.

use std::io;
use std::time::Instant;

use super::condition::Look;
use super::{Chunk, Inspector, LOOK_AGAIN, Pace, SegmentState};
use crate::error::StoreError;
use crate::format::bytes::{all_zero, array_at};
use crate::format::record::{self, ALIGNMENT, HEADER_LEN};
use crate::format::segment::{BLOCK_LEN, RECORDS_START};
use crate::kind::Codec;
use crate::recover::Window;
use crate::store::segments;

/// How closely a walk looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Checksums.
    Checksums,
    /// Decompression, digests and, with the key, identities as well.
    Values,
}

/// What a walk comes upon.
#[derive(Debug)]
pub enum Finding<'a> {
    /// A record that verifies.
    Record(&'a Chunk),
    /// A record whose checksum is right and whose type, kind, codec or flags this program does not
    /// know: it could not be checked further.
    Newer(&'a Chunk),
    /// Bytes that do not verify.
    Damaged(&'a Damage),
    /// Bytes that did not verify when the segment was recovered already: what a cut write left, or
    /// damage from before. No record that verified then is missing.
    Remains(&'a Damage),
}

/// A stretch of a segment that does not verify.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Number of the segment.
    pub segment: u32,
    /// Where it starts.
    pub offset: u64,
    /// Bytes up to where it ends.
    pub len: u64,
    /// What was seen.
    pub seen: String,
}

/// What a walk found out about one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentReport {
    /// Its number.
    pub segment: u32,
    /// What it is.
    pub state: SegmentState,
    /// Length of the file.
    pub file_len: u64,
    /// End of the last record that verifies; of a segment that was not walked, by its seal.
    pub tail: u64,
    /// Records that verify; of a segment that was not walked, by its seal.
    pub records: u64,
    /// Bytes of their values.
    pub logical_bytes: u64,
    /// Bytes of their payloads.
    pub stored_bytes: u64,
    /// Records of a newer program among them.
    pub newer: u64,
    /// Stretches that do not verify.
    pub damaged: u64,
    /// Stretches that did not verify at recovery already.
    pub remains: u64,
    /// What is wrong with the file besides its records.
    pub faults: Vec<String>,
}

impl SegmentReport {
    fn new(segment: u32, look: &Look) -> SegmentReport {
        SegmentReport {
            segment,
            state: look.state,
            file_len: look.file_len,
            tail: u64::from(RECORDS_START),
            records: 0,
            logical_bytes: 0,
            stored_bytes: 0,
            newer: 0,
            damaged: 0,
            remains: 0,
            faults: look.faults.clone(),
        }
    }

    /// Bytes that records take.
    pub fn used_bytes(&self) -> u64 {
        self.tail.saturating_sub(RECORDS_START.into())
    }

    /// Nothing in it is damaged.
    pub fn is_sound(&self) -> bool {
        self.damaged == 0 && self.faults.is_empty()
    }
}

impl Inspector {
    /// Size and number of records: by its seal, or by a walk over checksums where there is none.
    ///
    /// # Errors
    /// `Io` when the file cannot be opened.
    pub fn survey(&self, segment: u32, pace: &mut Pace) -> Result<SegmentReport, StoreError> {
        let look = self.look(segment).map_err(|e| reading(segment, &e))?;
        match look.seal {
            Some(seal) => Ok(SegmentReport {
                tail: seal.tail,
                records: seal.records,
                ..SegmentReport::new(segment, &look)
            }),
            None => self.walk(segment, Depth::Checksums, pace, &mut |_| {}),
        }
    }

    /// Reads a whole segment. Beside a writer it covers what was there when it began.
    ///
    /// # Errors
    /// `Io` when the file cannot be opened; a failed read of it is a fault in the report.
    pub fn walk(
        &self,
        segment: u32,
        depth: Depth,
        pace: &mut Pace,
        visit: &mut dyn FnMut(Finding<'_>),
    ) -> Result<SegmentReport, StoreError> {
        let look = self.look(segment).map_err(|e| reading(segment, &e))?;
        let mut report = SegmentReport::new(segment, &look);
        if let SegmentState::UnknownVersion(_) = look.state {
            return Ok(report);
        }
        let file = self
            .open_segment(segment)
            .map_err(|e| reading(segment, &e))?;
        let (stop, end) = look.records_end();
        let mut walk = Walk {
            inspector: self,
            depth,
            window: Window::over_damage(&*file, end),
            paced: 0,
            pace,
            report: &mut report,
            visit,
        };
        if let Err(error) = walk.run(&look, stop) {
            report.damaged += 1;
            report.faults.push(format!("it cannot be read: {error}"));
        }
        Ok(report)
    }
}

fn reading(segment: u32, error: &io::Error) -> StoreError {
    StoreError::io(format_args!("reading segment {segment:08x}"), error)
}

struct Walk<'a> {
    inspector: &'a Inspector,
    depth: Depth,
    window: Window<'a>,
    /// Bytes read that the pace knows of.
    paced: u64,
    pace: &'a mut Pace,
    report: &'a mut SegmentReport,
    visit: &'a mut dyn FnMut(Finding<'_>),
}

/// Bytes that do not verify: from `start` to `stop`, first seen at `since`.
struct Gap {
    start: u64,
    stop: u64,
    since: Instant,
}

/// What stands at some offset.
enum Judged {
    Nothing,
    /// It verifies; the bytes that fill up its last eight may be other than zero.
    Record(Chunk, Padding),
    Newer(Chunk),
    /// The checksum is right and the content is not.
    Wrong(Chunk, String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Padding {
    Zero,
    Other,
}

const BLOCK: u64 = 4096;
const UNREADABLE: &str = "the disk cannot read it";
/// Gaps that are looked at again; a segment with more is not being written, but broken.
const MAX_UNSETTLED: usize = 1024;
/// Parts into which one gap is split, by what looks like the start of a record.
const MAX_PARTS: usize = 1024;

impl Walk<'_> {
    fn run(&mut self, look: &Look, stop: u64) -> io::Result<()> {
        let start = u64::from(RECORDS_START);
        let mut gaps = self.sweep(start, stop, look.seal.is_some())?;
        if look.seal.is_some_and(|seal| seal.recovered) {
            let seal_start = segments::records_end(look.file_len);
            gaps.extend(self.sweep(stop, seal_start, false)?);
        }
        let mut look_now = None;
        if look.seal.is_none() {
            gaps = self.settle(gaps)?;
            // It may have been sealed meanwhile, and shortened.
            if !gaps.is_empty() {
                look_now = self.inspector.look(self.report.segment).ok();
            }
        }
        let seal = look_now.as_ref().unwrap_or(look).seal;
        if look_now.is_some()
            && let Some(seal) = seal
        {
            gaps.retain(|gap| gap.start < seal.tail);
        }
        // A recovery that counted as many records as there are now has seen these bytes as they are.
        let known = seal.is_some_and(|s| s.recovered && s.records <= self.report.records);
        for gap in &gaps {
            self.report_gap(gap, known)?;
        }
        if let Some(seal) = look.seal {
            if seal.records != self.report.records {
                self.report.faults.push(format!(
                    "the seal says that {} records verify, and {} do",
                    seal.records, self.report.records
                ));
            }
            if !seal.recovered {
                self.check_unused(seal.tail, look.file_len)?;
            }
        }
        Ok(())
    }

    /// Visits the records that start in `start..stop`; gives the gaps between them. What is zero up
    /// to `stop` is a gap only if `full`: if records should stand there.
    fn sweep(&mut self, start: u64, stop: u64, full: bool) -> io::Result<Vec<Gap>> {
        let mut gaps = Vec::new();
        // Where a gap began, and where its last byte that is not zero ends.
        let mut gap: Option<(u64, u64)> = None;
        let since = Instant::now();
        let mut at = start;
        while at < stop {
            let judged = self.judge(at)?;
            if let Some(chunk) = judged.chunk() {
                if let Some((start, _)) = gap.take() {
                    gaps.push(Gap {
                        start,
                        stop: at,
                        since,
                    });
                }
                let len = chunk.footprint();
                self.take(judged)?;
                at += len;
                continue;
            }
            let step = (stop - at).min(ALIGNMENT as u64);
            let bytes = self.window.slice(at, step as usize)?;
            if !all_zero(bytes) {
                let (start, _) = gap.unwrap_or((at, at));
                at += step;
                gap = Some((start, at));
                continue;
            }
            gap.get_or_insert((at, at));
            let block_end = ((at / BLOCK + 1) * BLOCK).min(stop);
            let zero_block = all_zero(self.window.slice(at, (block_end - at) as usize)?);
            at = if zero_block { block_end } else { at + step };
            self.keep_pace();
        }
        if let Some((start, used_end)) = gap {
            let stop = if full { stop } else { used_end };
            if stop > start {
                gaps.push(Gap { start, stop, since });
            }
        }
        Ok(gaps)
    }

    /// Looks again at gaps until they are gone, or are older than a write takes.
    fn settle(&mut self, mut gaps: Vec<Gap>) -> io::Result<Vec<Gap>> {
        let settle = self.inspector.settle;
        if gaps.len() > MAX_UNSETTLED {
            return Ok(gaps);
        }
        let mut settled = Vec::new();
        while !gaps.is_empty() {
            std::thread::sleep(LOOK_AGAIN.min(settle));
            let mut left = Vec::new();
            for gap in gaps {
                self.window.forget();
                let mut again = self.sweep(gap.start, gap.stop, true)?;
                // What still starts where it did is as old as it was.
                if let Some(first) = again.first_mut()
                    && first.start == gap.start
                {
                    first.since = gap.since;
                }
                left.append(&mut again);
            }
            let (old, young): (Vec<Gap>, Vec<Gap>) = left
                .into_iter()
                .partition(|gap| gap.since.elapsed() >= settle);
            settled.extend(old);
            gaps = young;
        }
        settled.sort_unstable_by_key(|gap| gap.start);
        Ok(settled)
    }

    /// What stands at `at`.
    fn judge(&mut self, at: u64) -> io::Result<Judged> {
        let Ok(offset) = u32::try_from(at) else {
            return Ok(Judged::Nothing);
        };
        let segment = self.report.segment;
        let header = self.window.slice(at, HEADER_LEN)?;
        if header.len() < HEADER_LEN {
            return Ok(Judged::Nothing);
        }
        let header: [u8; HEADER_LEN] = array_at(header, 0);
        let Some(stored_len) = record::claimed_stored_len(&header, segment, offset) else {
            return Ok(Judged::Nothing);
        };
        let payload = self.window.slice(at + HEADER_LEN as u64, stored_len)?;
        let verifies = payload.len() == stored_len
            && record::verifies(&self.inspector.store_id, &header, payload);
        let record_end = at + (HEADER_LEN + stored_len) as u64;
        if !verifies || self.window.is_unreadable(at, record_end) {
            return Ok(Judged::Nothing);
        }
        let chunk = Chunk::new(segment, offset, &header);
        let judged = if chunk.address().is_none() {
            Judged::Newer(chunk)
        } else {
            match self.check_value(&chunk, at, stored_len)? {
                Ok(padding) => Judged::Record(chunk, padding),
                Err(seen) => Judged::Wrong(chunk, seen),
            }
        };
        self.keep_pace();
        Ok(judged)
    }

    /// Looks at the value and the padding of a record whose checksum is right; says what is wrong
    /// with the value.
    fn check_value(
        &mut self,
        chunk: &Chunk,
        at: u64,
        len: usize,
    ) -> io::Result<Result<Padding, String>> {
        if self.depth == Depth::Checksums {
            return Ok(Ok(Padding::Zero));
        }
        let padded = chunk.footprint() as usize - HEADER_LEN;
        let bytes = self.window.slice(at + HEADER_LEN as u64, padded)?;
        let (payload, padding) = bytes.split_at(len.min(bytes.len()));
        let key = self.inspector.key.as_ref().ok();
        Ok(chunk.value(key, payload).map(|_| {
            if all_zero(padding) {
                Padding::Zero
            } else {
                Padding::Other
            }
        }))
    }

    /// Counts and shows a record.
    fn take(&mut self, judged: Judged) -> io::Result<()> {
        let report = &mut *self.report;
        let Some(chunk) = judged.chunk() else {
            return Ok(());
        };
        report.records += 1;
        let end = u64::from(chunk.offset()) + chunk.footprint();
        report.tail = report.tail.max(end);
        report.stored_bytes += u64::from(chunk.stored_len());
        // The bytes of a value in pieces are counted with its pieces.
        if chunk.codec() != Some(Codec::Manifest) {
            report.logical_bytes += u64::from(chunk.logical_len());
        }
        match judged {
            Judged::Nothing => {}
            Judged::Record(chunk, padding) => {
                (self.visit)(Finding::Record(&chunk));
                if padding == Padding::Other {
                    report.damaged += 1;
                    let payload_end = HEADER_LEN as u64 + u64::from(chunk.stored_len());
                    (self.visit)(Finding::Damaged(&Damage {
                        segment: chunk.segment(),
                        offset: u64::from(chunk.offset()) + payload_end,
                        len: chunk.footprint() - payload_end,
                        seen: "the bytes behind a record, which verifies, are not zero".to_owned(),
                    }));
                }
            }
            Judged::Newer(chunk) => {
                report.newer += 1;
                (self.visit)(Finding::Newer(&chunk));
            }
            Judged::Wrong(chunk, seen) => {
                report.damaged += 1;
                (self.visit)(Finding::Damaged(&Damage {
                    segment: chunk.segment(),
                    offset: chunk.offset().into(),
                    len: chunk.footprint(),
                    seen,
                }));
            }
        }
        Ok(())
    }

    /// Reports a gap, in parts where records look to start in it.
    fn report_gap(&mut self, gap: &Gap, known: bool) -> io::Result<()> {
        self.window.forget();
        let mut part = (gap.start, self.seen_at(gap.start)?);
        let mut parts = 1;
        let mut at = gap.start + ALIGNMENT as u64;
        while at < gap.stop && parts < MAX_PARTS {
            if self.claims(at)? {
                let next = self.seen_at(at)?;
                let (offset, seen) = std::mem::replace(&mut part, (at, next));
                self.report_part(offset, at, seen, known);
                parts += 1;
            }
            at += ALIGNMENT as u64;
        }
        self.report_part(part.0, gap.stop, part.1, known);
        Ok(())
    }

    fn report_part(&mut self, offset: u64, stop: u64, seen: String, known: bool) {
        let damage = Damage {
            segment: self.report.segment,
            offset,
            len: stop - offset,
            seen,
        };
        if known {
            self.report.remains += 1;
            (self.visit)(Finding::Remains(&damage));
        } else {
            self.report.damaged += 1;
            (self.visit)(Finding::Damaged(&damage));
        }
    }

    /// Whether a header stands there that says it is of this place.
    fn claims(&mut self, at: u64) -> io::Result<bool> {
        let segment = self.report.segment;
        let header = self.window.slice(at, HEADER_LEN)?;
        Ok(header.len() == HEADER_LEN
            && u32::try_from(at).is_ok_and(|offset| {
                record::claimed_stored_len(&array_at(header, 0), segment, offset).is_some()
            }))
    }

    /// Why no record verifies there.
    fn seen_at(&mut self, at: u64) -> io::Result<String> {
        let segment = self.report.segment;
        let header = self.window.slice(at, HEADER_LEN)?;
        if header.len() < HEADER_LEN {
            return Ok("the segment ends in it".to_owned());
        }
        let header: [u8; HEADER_LEN] = array_at(header, 0);
        if self.window.is_unreadable(at, at + HEADER_LEN as u64) {
            return Ok(UNREADABLE.to_owned());
        }
        if all_zero(&header) {
            return Ok("only zero bytes where a record should be".to_owned());
        }
        if !header.starts_with(record::MAGIC) {
            return Ok("no record starts there".to_owned());
        }
        let Some((offset, stored_len)) = u32::try_from(at).ok().and_then(|offset| {
            record::claimed_stored_len(&header, segment, offset).map(|len| (offset, len))
        }) else {
            return Ok("the record header is not of this place".to_owned());
        };
        let payload = self.window.slice(at + HEADER_LEN as u64, stored_len)?;
        if payload.len() < stored_len {
            return Ok("the segment ends in its payload".to_owned());
        }
        let payload = payload.to_vec();
        if self
            .window
            .is_unreadable(at, at + (HEADER_LEN + stored_len) as u64)
        {
            return Ok(UNREADABLE.to_owned());
        }
        let store_id = &self.inspector.store_id;
        let chunk = Chunk::new(segment, offset, &header);
        Ok(match chunk.check_crc(store_id, &header, &payload) {
            Err(seen) => seen,
            // It came to verify since: a write that took longer than writes may take.
            Ok(()) => "it did not verify for a while".to_owned(),
        })
    }

    /// Between the last record and the seal nothing was ever written.
    fn check_unused(&mut self, tail: u64, file_len: u64) -> io::Result<()> {
        let file = self.inspector.open_segment(self.report.segment)?;
        let end = segments::records_end(file_len.max(BLOCK_LEN as u64));
        let mut window = Window::over_damage(&*file, end);
        let mut at = tail;
        while at < end {
            let len = (end - at).min(BLOCK * 16);
            if !all_zero(window.slice(at, len as usize)?) {
                let fault = "the unused bytes before the seal are not zero";
                self.report.faults.push(fault.to_owned());
                break;
            }
            at += len;
        }
        self.pace.add(window.bytes_read());
        Ok(())
    }

    fn keep_pace(&mut self) {
        let read = self.window.bytes_read();
        self.pace.add(read - self.paced);
        self.paced = read;
    }
}

impl Judged {
    fn chunk(&self) -> Option<&Chunk> {
        match self {
            Judged::Nothing => None,
            Judged::Record(chunk, _) | Judged::Newer(chunk) | Judged::Wrong(chunk, _) => {
                Some(chunk)
            }
        }
    }
}
