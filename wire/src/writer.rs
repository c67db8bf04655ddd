//! Writes one frame behind what the output already holds.
//!
//! Promises: a frame stands whole in the output or not at all; a limit is checked before bytes
//!           are copied, so a refused message costs no memory.

use crate::error::{Direction, EncodeError};
use crate::frame;

/// Writes a message of any tag with a body that is given as it stands.
///
/// # Errors
/// `TooLong` when the body exceeds the limit of that tag; a tag that the direction does not have
/// has the limit 0.
pub fn encode_frame(
    out: &mut Vec<u8>,
    direction: Direction,
    tag: u8,
    body: &[u8],
) -> Result<(), EncodeError> {
    let mut frame = OpenFrame::begin(out, direction, tag, body.len())?;
    frame.push(body)?;
    frame.finish();
    Ok(())
}

/// A frame whose length is not known yet. Dropped unfinished, it leaves no trace.
#[derive(Debug)]
pub(crate) struct OpenFrame<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    limit: usize,
    tag: u8,
    finished: bool,
}

impl<'o> OpenFrame<'o> {
    /// Room for `expected_body` bytes is made at once.
    pub(crate) fn begin(
        out: &'o mut Vec<u8>,
        direction: Direction,
        tag: u8,
        expected_body: usize,
    ) -> Result<Self, EncodeError> {
        let frame = Self::open(out, direction, tag);
        frame.check_room(expected_body)?;
        frame.out.reserve(expected_body);
        Ok(frame)
    }

    /// A frame that holds two bytes so far; there is no message without room for them.
    #[inline]
    pub(crate) fn begin_with(
        out: &'o mut Vec<u8>,
        direction: Direction,
        tag: u8,
        first: [u8; 2],
    ) -> Self {
        let frame = Self::open(out, direction, tag);
        frame.out.extend_from_slice(&first);
        frame
    }

    #[inline]
    fn open(out: &'o mut Vec<u8>, direction: Direction, tag: u8) -> Self {
        let start = out.len();
        out.extend_from_slice(&[tag, 0, 0, 0, 0]);
        Self {
            out,
            start,
            limit: frame::length_limit(direction, tag).unwrap_or(0) as usize,
            tag,
            finished: false,
        }
    }

    /// Value the length field would have now.
    fn length(&self) -> usize {
        self.out.len() - self.start - 1
    }

    /// Refuses `more` bytes that would not fit, before anybody produces them.
    #[inline]
    fn check_room(&self, more: usize) -> Result<(), EncodeError> {
        let length = self.length().saturating_add(more);
        if length <= self.limit {
            Ok(())
        } else {
            Err(EncodeError::TooLong {
                tag: self.tag,
                length,
                limit: self.limit,
            })
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.check_room(bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// A string and its NUL.
    pub(crate) fn push_cstr(
        &mut self,
        field: &'static str,
        text: &[u8],
    ) -> Result<(), EncodeError> {
        if let Some(at) = memchr::memchr(0, text) {
            return Err(EncodeError::ZeroByte { field, at });
        }
        self.push(text)?;
        self.push(&[0])
    }

    /// A 16-bit count.
    pub(crate) fn push_count(
        &mut self,
        field: &'static str,
        count: usize,
    ) -> Result<(), EncodeError> {
        let short = u16::try_from(count).map_err(|_| EncodeError::TooMany { field, count })?;
        self.push(&short.to_be_bytes())
    }

    /// A 16-bit count and that many format codes.
    pub(crate) fn push_formats(
        &mut self,
        field: &'static str,
        codes: impl ExactSizeIterator<Item = i16>,
    ) -> Result<(), EncodeError> {
        self.push_count(field, codes.len())?;
        for code in codes {
            self.push(&code.to_be_bytes())?;
        }
        Ok(())
    }

    /// The length of a value that follows, for which there is room within the limit. No memory
    /// is taken for it yet: the bytes are not here.
    #[inline]
    pub(crate) fn push_value_length(&mut self, len: usize) -> Result<(), EncodeError> {
        self.check_room(len.saturating_add(4))?;
        // The limit keeps every length below 2^31.
        self.out.extend_from_slice(&(len as u32).to_be_bytes());
        Ok(())
    }

    /// A value behind its length.
    #[inline]
    pub(crate) fn push_value(&mut self, value: &[u8]) -> Result<(), EncodeError> {
        self.push_value_length(value.len())?;
        self.out.extend_from_slice(value);
        Ok(())
    }

    /// NULL: a length of -1 and no bytes.
    #[inline]
    pub(crate) fn push_null(&mut self) -> Result<(), EncodeError> {
        self.push(&(-1i32).to_be_bytes())
    }

    /// Writes the length; the frame stays.
    #[inline]
    pub(crate) fn finish(mut self) {
        let length = (self.length() as u32).to_be_bytes();
        self.out[self.start + 1..][..4].copy_from_slice(&length);
        self.finished = true;
    }
}

impl Drop for OpenFrame<'_> {
    #[inline]
    fn drop(&mut self) {
        if !self.finished {
            self.out.truncate(self.start);
        }
    }
}

#[cfg(test)]
mod tests;
