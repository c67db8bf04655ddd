//! Records on their way to the disk.

use std::sync::Arc;

use super::buffer::Buffer;
use super::segments::OpenSegment;
use crate::disk::{BLOCK, DiskFile};
use crate::format::bytes::put;
use crate::format::record::{self, HEADER_LEN};
use crate::reference::Address;

/// Records that one `pwrite` and one `fdatasync` make durable.
///
/// It is written in whole blocks. The first block may begin with records of batches before, which
/// are written again as they are: `buffer` starts with them. Zero bytes fill up the last block.
pub(crate) struct Batch {
    pub(crate) ticket: u64,
    pub(crate) segment: u32,
    pub(crate) file: Arc<dyn DiskFile>,
    /// Where its first record goes in the file.
    pub(crate) start: u64,
    /// What is written to the file from `block_start` on.
    pub(crate) buffer: Buffer,
    /// Bytes of its own records.
    pub(crate) len: usize,
    /// Records of its own.
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
        put(
            buffer.extend(segment.tail_block.len()),
            0,
            &segment.tail_block,
        );
        Batch {
            ticket,
            segment: segment.segment,
            file: Arc::clone(&segment.file),
            start: segment.tail,
            buffer,
            len: 0,
            records: 0,
            seal: None,
        }
    }

    /// Where `buffer` goes in the file: the start of the block of `start`.
    pub(crate) fn block_start(&self) -> u64 {
        self.start - self.shared() as u64
    }

    /// Bytes of records before this batch that stand in its first block.
    pub(crate) fn shared(&self) -> usize {
        (self.start % BLOCK as u64) as usize
    }

    /// Room for a record of `footprint` bytes, which must fit the buffer.
    pub(crate) fn extend(&mut self, footprint: usize) -> &mut [u8] {
        self.len += footprint;
        self.records += 1;
        self.buffer.extend(footprint)
    }

    /// Takes no more records: makes it whole blocks, and tells its segment what the next batch has
    /// to write again.
    pub(crate) fn finish(&mut self, segment: &mut OpenSegment) {
        let end = self.buffer.len();
        segment.tail_block.clear();
        let last_block = &self.buffer.as_slice()[end - end % BLOCK..];
        segment.tail_block.extend_from_slice(last_block);
        self.buffer.pad();
    }

    /// The record of `address`, without its padding, if it is in this batch.
    pub(crate) fn record(&self, address: &Address) -> Option<Vec<u8>> {
        if address.segment != self.segment {
            return None;
        }
        let at = u64::from(address.offset).checked_sub(self.start)?;
        let records = &self.buffer.as_slice()[self.shared()..][..self.len];
        let rest = records.get(usize::try_from(at).ok()?..)?;
        record::check_header(rest.first_chunk::<HEADER_LEN>()?, address).ok()?;
        Some(
            rest.get(..HEADER_LEN + address.stored_len as usize)?
                .to_vec(),
        )
    }
}
