//! Records on their way to the disk.

use std::sync::Arc;

use super::buffer::Buffer;
use super::segments::OpenSegment;
use crate::disk::DiskFile;
use crate::format::record::{self, HEADER_LEN};
use crate::reference::Address;

/// Records that one `pwrite` and one `fdatasync` make durable.
pub(crate) struct Batch {
    pub(crate) ticket: u64,
    pub(crate) segment: u32,
    pub(crate) file: Arc<dyn DiskFile>,
    /// Where its first record goes in the file.
    pub(crate) start: u64,
    /// Its records, one behind the other.
    pub(crate) buffer: Buffer,
    pub(crate) records: u64,
    /// Set in the last batch of a full segment.
    pub(crate) seal: Option<SealJob>,
}

/// A segment that gets its seal when the batch that carries this is durable.
pub(crate) struct SealJob {
    pub(crate) segment: u32,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) tail: u64,
    pub(crate) records: u64,
    pub(crate) end: u64,
}

impl Batch {
    /// An empty batch that goes to `segment` at its tail.
    pub(crate) fn begin(ticket: u64, segment: &OpenSegment, mut buffer: Buffer) -> Batch {
        buffer.clear();
        Batch {
            ticket,
            segment: segment.segment,
            file: Arc::clone(&segment.file),
            start: segment.tail,
            buffer,
            records: 0,
            seal: None,
        }
    }

    /// Room for a record of `footprint` bytes, which must fit the buffer.
    pub(crate) fn extend(&mut self, footprint: usize) -> &mut [u8] {
        self.records += 1;
        self.buffer.extend(footprint)
    }

    /// The record of `address`, without its padding, if it is in this batch.
    pub(crate) fn record(&self, address: &Address) -> Option<Vec<u8>> {
        if address.segment != self.segment {
            return None;
        }
        let at = u64::from(address.offset).checked_sub(self.start)?;
        let rest = self.buffer.as_slice().get(usize::try_from(at).ok()?..)?;
        record::check_header(rest.first_chunk::<HEADER_LEN>()?, address).ok()?;
        Some(
            rest.get(..HEADER_LEN + address.stored_len as usize)?
                .to_vec(),
        )
    }
}
