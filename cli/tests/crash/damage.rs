//! What a power cut can leave behind the last record that was acknowledged, and a little more.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use crate::random::Random;
use crate::segments::{RECORD_HEADER, RECORD_MAGIC, RECORDS_START, Segment};

/// A way to damage an unsealed segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Damage {
    /// The last bytes that were written did not arrive.
    LostEnd,
    /// Of each sector that was written it is chance whether it arrived.
    LostSectors,
    /// Bytes of something else.
    Garbage,
    /// A record that has arrived up to its middle.
    HalfRecord,
    /// A whole record of another place.
    StaleCopy,
    /// The file ends early.
    ShortFile,
}

/// What was done to a segment.
#[derive(Clone, Debug)]
pub(crate) struct Damaged {
    pub(crate) damage: Damage,
    pub(crate) number: u32,
    /// Nothing before this was touched.
    pub(crate) floor: u64,
    /// Something is left that is neither a record nor zero: recovery has to seal the segment.
    pub(crate) certain: bool,
}

const SECTOR: usize = 512;

impl Damage {
    pub(crate) fn any(random: &mut Random) -> Damage {
        match random.below(100) {
            0..=19 => Damage::LostEnd,
            20..=39 => Damage::LostSectors,
            40..=59 => Damage::Garbage,
            60..=79 => Damage::HalfRecord,
            80..=93 => Damage::StaleCopy,
            _ => Damage::ShortFile,
        }
    }

    /// Changes a segment from `floor` on; `None` when there is nothing this can be done to.
    pub(crate) fn apply(
        self,
        segment: &Segment,
        floor: u64,
        random: &mut Random,
    ) -> Option<Damaged> {
        let used_end = segment.used_end().max(floor);
        let records_end = segment.records_end();
        let (at, bytes) = match self {
            Damage::LostEnd => {
                let at = random.within(floor, used_end);
                (at, vec![0; usize::try_from(used_end - at).unwrap()])
            }
            Damage::LostSectors => {
                let mut bytes = segment.bytes[floor as usize..used_end as usize].to_vec();
                let mut start = 0;
                while start < bytes.len() {
                    let end = bytes
                        .len()
                        .min(start + SECTOR - (floor as usize + start) % SECTOR);
                    if random.percent(50) {
                        bytes[start..end].fill(0);
                    }
                    start = end;
                }
                (floor, bytes)
            }
            Damage::Garbage => {
                let at = random.within(floor, used_end + 4096);
                let mut bytes = vec![0; random.within(64, 8192) as usize];
                random.fill(&mut bytes);
                (at, bytes)
            }
            Damage::HalfRecord => (used_end, half_record(segment.number, used_end, random)),
            Damage::StaleCopy => (used_end, first_record(segment)?),
            Damage::ShortFile => {
                let file = OpenOptions::new().write(true).open(&segment.path).unwrap();
                let len = segment.bytes.len() as u64;
                file.set_len(random.within(floor, len)).unwrap();
                return Some(Damaged {
                    damage: self,
                    number: segment.number,
                    floor,
                    certain: false,
                });
            }
        };
        let wanted = bytes.len() as u64;
        if bytes.is_empty() || at + wanted > records_end {
            return None;
        }
        let file = OpenOptions::new().write(true).open(&segment.path).unwrap();
        file.write_all_at(&bytes, at).unwrap();
        Some(Damaged {
            damage: self,
            number: segment.number,
            floor,
            certain: matches!(
                self,
                Damage::Garbage | Damage::HalfRecord | Damage::StaleCopy
            ),
        })
    }
}

/// A header that is right but for its checksum, and half of the payload it announces.
fn half_record(segment: u32, offset: u64, random: &mut Random) -> Vec<u8> {
    let len = random.within(100, 60_000) as u32;
    let mut record = vec![0; RECORD_HEADER as usize + len as usize];
    let arrived = record.len() - len as usize / 2;
    random.fill(&mut record[..arrived]);
    record[..4].copy_from_slice(RECORD_MAGIC);
    for (at, number) in [
        (8, len),
        (12, len),
        (16, len),
        (40, segment),
        (44, offset as u32),
    ] {
        record[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    record[20..24].copy_from_slice(&[1, 5, 0, 0]);
    record[48..80].fill(0);
    record
}

/// The first record of the segment, if there is one.
fn first_record(segment: &Segment) -> Option<Vec<u8>> {
    let record = &segment.bytes[RECORDS_START as usize..];
    if !record.starts_with(RECORD_MAGIC) {
        return None;
    }
    let stored_len = u32::from_le_bytes([8, 9, 10, 11].map(|n| record[n]));
    let len = RECORD_HEADER as usize + stored_len as usize;
    record.get(..len).map(<[u8]>::to_vec)
}
