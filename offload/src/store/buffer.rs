//! A batch's memory.

use crate::MAX_RECORD_LEN;
use crate::format::record;

/// Fixed memory that is filled from its start and used again; it never grows.
pub(crate) struct Buffer {
    memory: Vec<u8>,
    len: usize,
}

/// Bytes of one buffer, at most. Large enough for the longest record.
pub(crate) const BUFFER_LEN: usize = 2 << 20;
const _: () = assert!(BUFFER_LEN >= record::footprint(MAX_RECORD_LEN));

/// Bytes of one buffer of a store with segments of this length: no more than a segment is needed.
pub(crate) fn buffer_len(segment_len_bytes: u64) -> usize {
    usize::try_from(segment_len_bytes).map_or(BUFFER_LEN, |len| len.min(BUFFER_LEN))
}

impl Buffer {
    pub(crate) fn new(len: usize) -> Buffer {
        Buffer {
            memory: vec![0u8; len],
            len: 0,
        }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.memory[..self.len]
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether `more` bytes fit.
    pub(crate) fn fits(&self, more: usize) -> bool {
        more <= self.memory.len() - self.len
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// The next `len` bytes, to be overwritten: what they are is left over. They must fit.
    pub(crate) fn extend(&mut self, len: usize) -> &mut [u8] {
        debug_assert!(self.fits(len));
        let from = self.len;
        self.len += len;
        &mut self.memory[from..from + len]
    }
}
