//! A batch's memory, laid out as a direct write wants it.
//!
//! Promises: `as_slice` starts at an address that is a multiple of [`BLOCK`]; the allocation is made
//!           once and never grows.

use crate::MAX_VALUE_LEN;
use crate::disk::BLOCK;
use crate::format::record;

/// Fixed memory that is filled from its start and used again.
pub(crate) struct Buffer {
    /// One block longer than what is used, so that an aligned start can be chosen.
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

/// Bytes of one buffer, at most. Large enough for the longest record behind a block that is rewritten.
pub(crate) const BUFFER_LEN: usize = 2 << 20;
const _: () = assert!(BUFFER_LEN >= BLOCK + record::footprint(MAX_VALUE_LEN));
const _: () = assert!(BUFFER_LEN.is_multiple_of(BLOCK));

/// Bytes of one buffer of a store with segments of this length. No more than a segment is needed: a
/// record is shorter than one by more than the block before it.
pub(crate) fn buffer_len(segment_len_bytes: u64) -> usize {
    usize::try_from(segment_len_bytes).map_or(BUFFER_LEN, |len| len.min(BUFFER_LEN))
}

impl Buffer {
    /// `len` is a multiple of [`BLOCK`].
    pub(crate) fn new(len: usize) -> Buffer {
        let memory = vec![0u8; len + BLOCK];
        let start = memory.as_ptr().addr().wrapping_neg() % BLOCK;
        Buffer {
            memory,
            start,
            len: 0,
        }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Whether `more` bytes fit.
    pub(crate) fn fits(&self, more: usize) -> bool {
        more <= self.memory.len() - BLOCK - self.len
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// The next `len` bytes, to be overwritten: what they are is left over. They must fit.
    pub(crate) fn extend(&mut self, len: usize) -> &mut [u8] {
        debug_assert!(self.fits(len));
        let from = self.start + self.len;
        self.len += len;
        &mut self.memory[from..from + len]
    }

    /// Fills the last block with zero bytes.
    pub(crate) fn pad(&mut self) {
        let padding = self.len.next_multiple_of(BLOCK) - self.len;
        self.extend(padding).fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: blocks start at multiples of their length in memory, padding is zero whatever the
    /// buffer was used for before, and the last byte can be used.
    #[test]
    fn blocks_are_aligned_and_padded() {
        let mut buffers = [64 << 10, 128 << 10, BUFFER_LEN].map(Buffer::new);
        for buffer in &mut buffers {
            assert_eq!(buffer.as_slice().as_ptr().addr() % BLOCK, 0);
            let len = buffer.memory.len() - BLOCK;
            buffer.extend(len).fill(7);
            assert!(buffer.fits(0) && !buffer.fits(1));
            buffer.pad();
            assert_eq!(buffer.len(), len);
            buffer.clear();
            buffer.extend(BLOCK + 1).fill(9);
            buffer.pad();
            assert_eq!(buffer.len(), 2 * BLOCK);
            assert_eq!(buffer.as_slice()[BLOCK..=BLOCK + 1], [9, 0]);
            assert!(buffer.as_slice()[BLOCK + 1..].iter().all(|b| *b == 0));
        }
    }
}
