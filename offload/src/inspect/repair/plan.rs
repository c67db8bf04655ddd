//! Decides what a repair does. Changes nothing.

use std::collections::BTreeSet;

use super::super::condition::Look;
use super::super::{Chunk, Depth, Finding, Inspector, Pace, SegmentState};
use super::{Mend, NewSeal, Plan, Repair, Step};
use crate::error::StoreError;
use crate::format::bytes::array_at;
use crate::format::record::{self, HEADER_LEN};
use crate::format::segment::{BLOCK_LEN, FILE_LEN_UNIT, Found, MAX_FILE_LEN, RECORDS_START, Seal};
use crate::format::superblock;
use crate::key::Identity;
use crate::store::open::{block, read_small};
use crate::store::segments;

/// What verifies in one segment, and what does not.
#[derive(Default)]
struct Inventory {
    /// Offset and footprint of each record, ascending.
    records: Vec<(u32, u64)>,
    /// Start and end of what does not verify.
    gaps: Vec<(u64, u64)>,
    faults: Vec<String>,
}

/// A copy of our store may be of a time after which ours was restored from an older one and went on.
/// Then another record may stand at the same place. A damaged header does not say for certain which
/// one it was, but more than half of an identity does not change by damage that leaves the rest of the
/// header alone.
const OTHER_IDENTITY_BYTES: usize = 9;

impl Repair {
    /// Walks the store, and the copy where there is one, and says what there is to do.
    ///
    /// # Errors
    /// `Io` when a folder or a file cannot be opened.
    pub fn plan(&self, pace: &mut Pace) -> Result<Plan, StoreError> {
        let ours = self.inspector.list()?;
        let mut plan = Plan::default();
        for name in &self.lost {
            if self.is_lost(name)? {
                plan.steps.push(Step::CopyFile { name });
            }
        }
        for name in ours.foreign {
            plan.steps.push(Step::Quarantine {
                name,
                seen: "its name is not a segment's".to_owned(),
            });
        }
        let present: BTreeSet<u32> = ours.segments.into_iter().collect();
        let mut numbers = present.clone();
        if let Some(copy) = &self.copy {
            numbers.extend(copy.list()?.segments);
        }
        for segment in numbers {
            if present.contains(&segment) {
                self.plan_segment(segment, pace, &mut plan)?;
            } else if self.in_copy(segment, pace)?.is_some() {
                plan.steps.push(Step::CopySegment { segment });
            }
        }
        Ok(plan)
    }

    /// Whether a file differs from the copy's, which is the one that belongs there.
    fn is_lost(&self, name: &str) -> Result<bool, StoreError> {
        let Some(copy) = &self.copy else {
            return Ok(false);
        };
        let theirs = read_small(&*copy.disk, name, superblock::MAX_LEN)
            .map_err(|error| StoreError::io(format_args!("reading {name}"), &error))?;
        let ours = read_small(&*self.inspector.disk, name, superblock::MAX_LEN);
        Ok(ours.ok() != Some(theirs))
    }

    fn plan_segment(
        &self,
        segment: u32,
        pace: &mut Pace,
        plan: &mut Plan,
    ) -> Result<(), StoreError> {
        let look = self.inspector.look(segment).map_err(|error| {
            StoreError::io(format_args!("reading segment {segment:08x}"), &error)
        })?;
        let left = |plan: &mut Plan, what: &str| {
            plan.left.push(format!("segment {segment:08x}: {what}"));
        };
        if let SegmentState::UnknownVersion(_) = look.state {
            left(plan, &look.faults.join("; "));
            return Ok(());
        }
        let mut inventory = Inventory::of(&self.inspector, segment, pace)?;
        if let Some(tail) = self.tail_before_more(segment, &look)? {
            inventory.cut_gaps(tail);
        }
        if let Some(fault) = unreadable(&inventory) {
            left(plan, fault);
            return Ok(());
        }
        if look.header.is_none() && look.seal.is_none() && inventory.records.is_empty() {
            plan.steps.push(Step::Quarantine {
                name: format!("{segment:08x}.seg"),
                seen: format!("no record in it verifies; {}", look.faults.join("; ")),
            });
            plan.steps.push(match self.in_copy(segment, pace)? {
                Some(_) => Step::CopySegment { segment },
                None => Step::Reserve { segment },
            });
            return Ok(());
        }
        let restored = match self.in_copy(segment, pace)? {
            Some(theirs) => self.missing(segment, &inventory, &theirs, plan)?,
            None => Vec::new(),
        };
        let uncovered = inventory.uncovered(&restored);
        for (start, stop) in &uncovered {
            left(
                plan,
                &format!("{} bytes at {start} do not verify", stop - start),
            );
        }
        let mend = Mend {
            segment,
            header: !look.header_whole,
            seal: inventory.new_seal(&look, &restored, &uncovered),
            restored,
        };
        if mend.header || mend.seal.is_some() || !mend.restored.is_empty() {
            plan.steps.push(Step::Mend(mend));
        }
        Ok(())
    }

    /// Where records end in a segment that has its seal where it was made to be, and more behind it.
    fn tail_before_more(&self, segment: u32, look: &Look) -> Result<Option<u64>, StoreError> {
        let made_with = look.header.map(|header| header.file_len);
        let Some(made_with) = made_with.filter(|len| look.seal.is_none() && *len < look.file_len)
        else {
            return Ok(None);
        };
        let trailer = self
            .inspector
            .open_segment(segment)
            .and_then(|file| block(&*file, segments::records_end(made_with)))
            .map_err(|error| {
                StoreError::io(format_args!("reading segment {segment:08x}"), &error)
            })?;
        match Seal::read(&trailer, &self.inspector.store_id, segment) {
            Found::Valid(seal) if seal.tail <= segments::records_end(made_with) => {
                Ok(Some(seal.tail))
            }
            _ => Ok(None),
        }
    }

    /// The records that verify in the copy of a segment; `None` when there are none.
    fn in_copy(&self, segment: u32, pace: &mut Pace) -> Result<Option<Inventory>, StoreError> {
        let Some(copy) = &self.copy else {
            return Ok(None);
        };
        if copy.list()?.segments.binary_search(&segment).is_err() {
            return Ok(None);
        }
        let theirs = Inventory::of(copy, segment, pace)?;
        Ok((!theirs.records.is_empty()).then_some(theirs))
    }

    /// The records of the copy that ours lacks.
    fn missing(
        &self,
        segment: u32,
        ours: &Inventory,
        theirs: &Inventory,
        plan: &mut Plan,
    ) -> Result<Vec<(u32, u64)>, StoreError> {
        let mut missing = Vec::new();
        for (offset, len) in &theirs.records {
            if ours.holds(*offset, *len) {
                continue;
            }
            if ours.overlaps(*offset, *len) || self.was_another(segment, *offset)? {
                plan.left.push(format!(
                    "segment {segment:08x}: the copy has another record at {offset}"
                ));
                continue;
            }
            missing.push((*offset, *len));
        }
        Ok(missing)
    }

    /// Whether what is left of our record is not a damaged form of the copy's.
    fn was_another(&self, segment: u32, offset: u32) -> Result<bool, StoreError> {
        let (Some(ours), Some(copy)) = (
            claimed_identity(&self.inspector, segment, offset)?,
            &self.copy,
        ) else {
            return Ok(false);
        };
        let Some(theirs) = claimed_identity(copy, segment, offset)? else {
            return Ok(false);
        };
        let differing = ours.0.iter().zip(theirs.0).filter(|(a, b)| **a != *b);
        Ok(differing.count() >= OTHER_IDENTITY_BYTES)
    }
}

fn unreadable(inventory: &Inventory) -> Option<&str> {
    let faults = inventory.faults.iter();
    faults
        .map(String::as_str)
        .find(|fault| fault.starts_with("it cannot be read"))
}

/// The identity in a header that says it is of this place.
fn claimed_identity(
    store: &Inspector,
    segment: u32,
    offset: u32,
) -> Result<Option<Identity>, StoreError> {
    let mut header = [0u8; HEADER_LEN];
    let read = store
        .open_segment(segment)
        .and_then(|file| file.read_at(&mut header, offset.into()))
        .map_err(|error| StoreError::io(format_args!("reading segment {segment:08x}"), &error))?;
    let whole = read == HEADER_LEN;
    let claims = record::claimed_stored_len(&array_at(&header, 0), segment, offset).is_some();
    Ok((whole && claims).then(|| record::fields(&header).identity))
}

impl Inventory {
    fn of(store: &Inspector, segment: u32, pace: &mut Pace) -> Result<Inventory, StoreError> {
        let mut found = Inventory::default();
        let mut padding = Vec::new();
        let mut visit = |finding: Finding<'_>| match finding {
            Finding::Record(chunk) | Finding::Newer(chunk) => found.records.push(place(chunk)),
            Finding::Damaged(damage) | Finding::Remains(damage) => {
                padding.push((damage.offset, damage.offset + damage.len));
            }
        };
        let report = store.walk(segment, Depth::Values, pace, &mut visit)?;
        found.records.sort_unstable();
        found.faults = report.faults;
        // What stands behind the payload of a record that verifies belongs to that record.
        padding.retain(|(start, stop)| !found.overlaps_bytes(*start, *stop));
        found.gaps = padding;
        Ok(found)
    }

    /// Forgets what does not verify behind `tail`, unless a record stands there too.
    fn cut_gaps(&mut self, tail: u64) {
        if self.overlaps_bytes(tail, u64::MAX) {
            return;
        }
        self.gaps.retain(|gap| gap.0 < tail);
        for gap in &mut self.gaps {
            gap.1 = gap.1.min(tail);
        }
    }

    fn holds(&self, offset: u32, len: u64) -> bool {
        self.records.binary_search(&(offset, len)).is_ok()
    }

    fn overlaps(&self, offset: u32, len: u64) -> bool {
        self.overlaps_bytes(offset.into(), u64::from(offset) + len)
    }

    fn overlaps_bytes(&self, start: u64, stop: u64) -> bool {
        let next = self
            .records
            .partition_point(|(at, _)| u64::from(*at) < stop);
        next.checked_sub(1)
            .and_then(|last| self.records.get(last))
            .is_some_and(|(at, len)| u64::from(*at) + len > start)
    }

    /// What of the gaps restored records do not cover.
    fn uncovered(&self, restored: &[(u32, u64)]) -> Vec<(u64, u64)> {
        let mut left = Vec::new();
        for (start, stop) in &self.gaps {
            let mut at = *start;
            for (offset, len) in restored {
                let (from, to) = (u64::from(*offset), u64::from(*offset) + len);
                if to <= at || from >= *stop {
                    continue;
                }
                if from > at {
                    left.push((at, from));
                }
                at = to;
            }
            if at < *stop {
                left.push((at, *stop));
            }
        }
        left
    }

    /// The seal that a segment needs when this is done; `None` when what it has is right.
    fn new_seal(
        &self,
        look: &Look,
        restored: &[(u32, u64)],
        uncovered: &[(u64, u64)],
    ) -> Option<NewSeal> {
        let records = (self.records.len() + restored.len()) as u64;
        let ends = self.records.iter().chain(restored);
        let tail = ends
            .map(|(at, len)| u64::from(*at) + len)
            .max()
            .unwrap_or(u64::from(RECORDS_START));
        let used_end = uncovered.iter().map(|gap| gap.1).fold(tail, u64::max);
        let whole = |used_end: u64| {
            (used_end + BLOCK_LEN as u64)
                .next_multiple_of(FILE_LEN_UNIT)
                .min(MAX_FILE_LEN)
        };
        let seal = NewSeal {
            tail,
            records,
            recovered: !uncovered.is_empty(),
            file_len: whole(used_end),
        };
        match look.seal {
            // Fewer records than it says are what it is there to show.
            Some(old) if records <= old.records && tail <= old.tail => None,
            Some(old) => Some(NewSeal {
                tail: tail.max(old.tail),
                recovered: seal.recovered || old.recovered,
                file_len: whole(used_end.max(old.tail)).max(look.file_len),
                ..seal
            }),
            None if look.state == SegmentState::Open && uncovered.is_empty() => None,
            None => Some(seal),
        }
    }
}

fn place(chunk: &Chunk) -> (u32, u64) {
    (chunk.offset(), chunk.footprint())
}
