//! Reads the fields of one message body in order and checks that nothing is left.

use crate::error::MessageError;
use crate::formats::Formats;

/// A cursor over a body. Every error names the message it belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    message: &'static str,
    body: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(message: &'static str, body: &'a [u8]) -> Self {
        Self {
            message,
            body,
            rest: body,
        }
    }

    /// Bytes read so far.
    #[inline]
    pub(crate) fn at(&self) -> usize {
        self.body.len() - self.rest.len()
    }

    /// Everything not read yet.
    pub(crate) fn remaining(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(crate) fn take(
        &mut self,
        len: usize,
        field: &'static str,
    ) -> Result<&'a [u8], MessageError> {
        match self.rest.split_at_checked(len) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(self.truncated(field, len)),
        }
    }

    #[inline]
    fn chunk<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], MessageError> {
        match self.rest.split_first_chunk() {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(*taken)
            }
            None => Err(self.truncated(field, N)),
        }
    }

    #[cold]
    fn truncated(&self, field: &'static str, needed: usize) -> MessageError {
        MessageError::Truncated {
            message: self.message,
            field,
            needed,
            left: self.rest.len(),
        }
    }

    #[inline]
    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, MessageError> {
        let [byte] = self.chunk(field)?;
        Ok(byte)
    }

    /// Counts are unsigned, as `pq_getmsgint(msg, 2)` reads them.
    #[inline]
    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, MessageError> {
        self.chunk(field).map(u16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn i16(&mut self, field: &'static str) -> Result<i16, MessageError> {
        self.chunk(field).map(i16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, MessageError> {
        self.chunk(field).map(u32::from_be_bytes)
    }

    #[inline]
    pub(crate) fn i32(&mut self, field: &'static str) -> Result<i32, MessageError> {
        self.chunk(field).map(i32::from_be_bytes)
    }

    /// A string, without the NUL that ends it.
    #[inline]
    pub(crate) fn cstr(&mut self, field: &'static str) -> Result<&'a [u8], MessageError> {
        let Some(end) = memchr::memchr(0, self.rest) else {
            return Err(MessageError::Unterminated {
                message: self.message,
                field,
            });
        };
        let text = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Ok(text)
    }

    /// A 16-bit count and that many format codes.
    #[inline]
    pub(crate) fn formats(&mut self, field: &'static str) -> Result<Formats<'a>, MessageError> {
        let count = self.u16(field)?;
        self.take(usize::from(count) * 2, field).map(Formats::new)
    }

    /// Checks that the body is used up.
    #[inline]
    pub(crate) fn end(self) -> Result<(), MessageError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(MessageError::Trailing {
                message: self.message,
                left: self.rest.len(),
            })
        }
    }
}
