//! The store's files, read by what docs/format says and by nothing of the store's own code.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use crate::model::Table;
use crate::values::Column;
use crate::wire::JSONB_VERSION;

/// Where records start in a segment.
pub(crate) const RECORDS_START: u64 = 4096;
pub(crate) const RECORD_HEADER: u64 = 80;
pub(crate) const RECORD_MAGIC: &[u8; 4] = b"TRC1";
const SEAL: usize = 64;

/// Where a reference points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Address {
    pub(crate) segment: u32,
    pub(crate) offset: u64,
    pub(crate) stored_len: u64,
}

impl Address {
    /// Where the record ends, its padding included.
    pub(crate) fn end(&self) -> u64 {
        (self.offset + RECORD_HEADER + self.stored_len).next_multiple_of(8)
    }

    /// Reads a field as it stands in the row; `None` when it is no reference.
    fn of(column: Column, field: &[u8]) -> Option<Address> {
        let fields = match column {
            Column::Body => decoded(field.strip_prefix(b"toast:")?)?,
            Column::Data => {
                let text = field.strip_prefix(&[JSONB_VERSION])?;
                decoded(text.strip_prefix(b"\"toast:")?.strip_suffix(b"\"")?)?
            }
            Column::Raw => field.strip_prefix(b"\xf7TOAST\r\n")?.to_vec(),
        };
        if fields.len() != 42 {
            return None;
        }
        let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|n| fields[at + n]));
        Some(Address {
            segment: number(2),
            offset: number(6).into(),
            stored_len: number(10).into(),
        })
    }
}

fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
}

/// Every reference of a table that was read from the server itself, and how many values stand in
/// the rows.
pub(crate) fn references(table: &Table) -> (Vec<Address>, u64) {
    let mut found = Vec::new();
    let mut inline = 0;
    for row in table.values() {
        for (column, field) in Column::ALL.into_iter().zip(&row.fields) {
            match field.as_ref().map(|field| Address::of(column, &field.0)) {
                Some(Some(address)) => found.push(address),
                Some(None) => inline += 1,
                None => {}
            }
        }
    }
    (found, inline)
}

/// For each segment, where the last record ends that a row refers to.
pub(crate) fn floors(references: &[Address]) -> BTreeMap<u32, u64> {
    let mut floors = BTreeMap::new();
    for address in references {
        let floor = floors.entry(address.segment).or_insert(RECORDS_START);
        *floor = address.end().max(*floor);
    }
    floors
}

/// A segment file's last bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seal {
    /// End of the last record that verified.
    pub(crate) tail: u64,
    /// Written by recovery, for something that does not verify.
    pub(crate) recovered: bool,
}

/// A segment file, whole.
#[derive(Clone)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
}

impl Segment {
    pub(crate) fn read(store: &Path, number: u32) -> Segment {
        let path = store.join(format!("segments/{number:08x}.seg"));
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Segment {
            number,
            path,
            bytes,
        }
    }

    pub(crate) fn seal(&self) -> Option<Seal> {
        let trailer = &self.bytes[self.bytes.len().checked_sub(SEAL)?..];
        trailer.starts_with(b"TOASTEND").then(|| Seal {
            tail: u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|n| trailer[32 + n])),
            recovered: trailer[48] & 1 == 1,
        })
    }

    /// Whether the record of `address` begins where it should, and all of it is in the file.
    pub(crate) fn holds(&self, address: &Address) -> bool {
        let start = address.offset as usize;
        let Some(record) = self.bytes.get(start..address.end() as usize) else {
            return false;
        };
        let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|n| record[at + n]));
        record.starts_with(RECORD_MAGIC)
            && u64::from(number(8)) == address.stored_len
            && number(40) == self.number
            && u64::from(number(44)) == address.offset
    }

    /// Where the region of records ends.
    pub(crate) fn records_end(&self) -> u64 {
        (self.bytes.len() - SEAL) as u64
    }

    /// Every byte from here on is zero, in steps of 8.
    pub(crate) fn used_end(&self) -> u64 {
        let records = &self.bytes[..self.bytes.len() - SEAL];
        let last = records.iter().rposition(|byte| *byte != 0);
        last.map_or(0, |at| at as u64 + 1)
            .next_multiple_of(8)
            .max(RECORDS_START)
    }
}

/// The numbers of all segments, in order.
pub(crate) fn numbers(store: &Path) -> Vec<u32> {
    let entries = fs::read_dir(store.join("segments")).unwrap();
    let mut numbers: Vec<u32> = entries
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            u32::from_str_radix(name.strip_suffix(".seg")?, 16).ok()
        })
        .collect();
    numbers.sort_unstable();
    numbers
}
