//! What a segment file is, from its length, its header and its seal.

use std::io;
use std::time::{Duration, Instant};

use super::{Inspector, LOOK_AGAIN};
use crate::disk::DiskFile;
use crate::format::bytes::all_zero;
use crate::format::segment::{BLOCK_LEN, FILE_LEN_UNIT, Found, RECORDS_START, Seal, SegmentHeader};
use crate::store::open::block;
use crate::store::segments;

/// What became of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentState {
    /// It takes records, or would if the store were open.
    Open,
    /// It takes no more.
    Sealed {
        /// By recovery: there may be bytes in it that never verified.
        recovered: bool,
    },
    /// Its header, its seal or its length is not what it should be.
    Damaged,
    /// A newer program wrote it.
    UnknownVersion(u32),
}

/// A segment file as it stands, records aside.
pub(super) struct Look {
    pub(super) state: SegmentState,
    pub(super) file_len: u64,
    pub(super) header: Option<SegmentHeader>,
    /// The whole region of the header is as it should be.
    pub(super) header_whole: bool,
    pub(super) seal: Option<Seal>,
    /// What is wrong with it.
    pub(super) faults: Vec<String>,
}

impl Look {
    /// Before which offset records can start, and where they can end.
    pub(super) fn records_end(&self) -> (u64, u64) {
        let seal_start = self.file_len.saturating_sub(BLOCK_LEN as u64);
        match (self.seal, self.state) {
            // Recovery may have left bytes behind the last record that verified.
            (Some(seal), _) if seal.recovered => (seal.tail, seal_start),
            (Some(seal), _) => (seal.tail, seal.tail),
            (None, SegmentState::Open) => (seal_start, seal_start),
            // What would be the seal may be the end of a record, in a file that was cut.
            (None, _) => (seal_start, self.file_len),
        }
    }
}

/// A seal is one small write: it is whole by then.
const SEAL_WRITTEN: Duration = Duration::from_millis(200);

impl Inspector {
    /// Looks at a segment file; one that is just being sealed or shortened is looked at again.
    pub(super) fn look(&self, segment: u32) -> io::Result<Look> {
        let began = Instant::now();
        loop {
            let file = self.open_segment(segment)?;
            let look = self.look_at(&*file, segment);
            let unsettled = match &look {
                Ok(look) => look.state == SegmentState::Damaged && look.header.is_some(),
                Err(error) => error.kind() == io::ErrorKind::UnexpectedEof,
            };
            if !unsettled || began.elapsed() >= self.settle.min(SEAL_WRITTEN) {
                return look;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    pub(super) fn look_at(&self, file: &dyn DiskFile, segment: u32) -> io::Result<Look> {
        let file_len = file.byte_len()?;
        let mut look = Look {
            state: SegmentState::Damaged,
            file_len,
            header: None,
            header_whole: false,
            seal: None,
            faults: Vec::new(),
        };
        let least = u64::from(RECORDS_START) + BLOCK_LEN as u64;
        if file_len < BLOCK_LEN as u64 {
            look.faults
                .push(format!("the file is {file_len} bytes long"));
            return Ok(look);
        }
        let header = match block(file, 0) {
            Ok(header) => SegmentHeader::read(&header, &self.store_id, segment),
            Err(error) => look.unreadable("header", error)?,
        };
        match header {
            Found::Valid(header) => look.header = Some(header),
            Found::UnknownVersion(version) => return Ok(look.newer(version)),
            Found::Absent => look.faults.push("the header is zero".to_owned()),
            Found::Damaged => look
                .faults
                .push("the header does not verify as this store's and this segment's".to_owned()),
        }
        if file_len < least || !file_len.is_multiple_of(FILE_LEN_UNIT) {
            look.faults.push(format!(
                "the file is {file_len} bytes long, which no whole segment is"
            ));
            return Ok(look);
        }
        let mut rest = vec![0u8; RECORDS_START as usize - BLOCK_LEN];
        if file.read_at(&mut rest, BLOCK_LEN as u64).is_err() {
            // Not zero, and the fault is noted already.
            rest.fill(0xFF);
        }
        look.header_whole = look.header.is_some() && all_zero(&rest);
        if !all_zero(&rest) {
            look.faults
                .push("the bytes behind the header are not zero".to_owned());
        }
        let seal = match block(file, segments::records_end(file_len)) {
            Ok(trailer) => Seal::read(&trailer, &self.store_id, segment),
            Err(error) => look.unreadable("seal", error)?,
        };
        match seal {
            Found::Valid(seal) if fits(&seal, file_len) => look.seal = Some(seal),
            Found::UnknownVersion(version) => return Ok(look.newer(version)),
            Found::Valid(_) => look
                .faults
                .push("the seal says that records go on behind it".to_owned()),
            Found::Damaged => look.faults.push("the seal does not verify".to_owned()),
            Found::Absent => match look.header {
                Some(header) if header.file_len != file_len => look.faults.push(format!(
                    "the file is {file_len} bytes long, was made with {}, and has no seal",
                    header.file_len
                )),
                _ => {}
            },
        }
        look.state = match (&look.seal, look.header) {
            _ if !look.faults.is_empty() => SegmentState::Damaged,
            (Some(seal), Some(_)) => SegmentState::Sealed {
                recovered: seal.recovered,
            },
            _ => SegmentState::Open,
        };
        Ok(look)
    }
}

fn fits(seal: &Seal, file_len: u64) -> bool {
    let region = u64::from(RECORDS_START)..=segments::records_end(file_len);
    region.contains(&seal.tail) && seal.tail.is_multiple_of(8)
}

impl Look {
    /// A part that the disk cannot read is damaged; a file that was shortened meanwhile is not.
    fn unreadable<T>(&mut self, what: &str, error: io::Error) -> io::Result<Found<T>> {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return Err(error);
        }
        self.faults
            .push(format!("the {what} cannot be read: {error}"));
        Ok(Found::Damaged)
    }

    fn newer(mut self, version: u32) -> Look {
        self.state = SegmentState::UnknownVersion(version);
        self.faults = vec![format!(
            "it is of format {version}, and this program knows format {} only",
            crate::format::FORMAT_VERSION
        )];
        self
    }
}
