//! Lists of nullable values, each behind its own 32-bit length: DataRow columns, Bind parameters.

use crate::error::{EncodeError, MessageError};
use crate::writer::OpenFrame;

/// The length that stands for NULL.
const NULL: i32 = -1;

/// Walks values that were checked when their message was parsed. `None` is NULL.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Fields<'a> {
    /// `raw` begins with `left` values that [`check`] has accepted.
    pub(crate) fn checked(raw: &'a [u8], left: usize) -> Self {
        Self { rest: raw, left }
    }

    /// What follows the values taken so far.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Option<&'a [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let (length, rest) = self.rest.split_first_chunk()?;
        let length = i32::from_be_bytes(*length);
        let Ok(length) = usize::try_from(length) else {
            self.rest = rest;
            return Some(None);
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        Some(Some(value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Fields<'_> {}

/// Checks `count` values at the start of `raw` and returns what follows them.
///
/// `seen(i, bytes)` is told how many bytes are left where value `i` begins.
#[inline]
pub(crate) fn check<'a>(
    message: &'static str,
    raw: &'a [u8],
    count: usize,
    mut seen: impl FnMut(usize, usize),
) -> Result<&'a [u8], MessageError> {
    let mut rest = raw;
    for index in 0..count {
        seen(index, rest.len());
        let Some((length, after)) = rest.split_first_chunk() else {
            return Err(MessageError::Truncated {
                message,
                field: "a field length",
                needed: 4,
                left: rest.len(),
            });
        };
        let length = i32::from_be_bytes(*length);
        if length == NULL {
            rest = after;
            continue;
        }
        rest = usize::try_from(length)
            .ok()
            .and_then(|length| after.get(length..))
            .ok_or(MessageError::FieldLength {
                message,
                index,
                length,
                left: after.len(),
            })?;
    }
    Ok(rest)
}

/// Copies `count` checked values from `raw`, putting in what `replace` gives for an index; the
/// runs between replacements are copied whole.
pub(crate) fn splice<'r>(
    frame: &mut OpenFrame<'_>,
    raw: &[u8],
    count: usize,
    mut replace: impl FnMut(usize) -> Option<&'r [u8]>,
) -> Result<(), EncodeError> {
    let mut fields = Fields::checked(raw, count);
    let mut copied = raw;
    for index in 0..count {
        let before = copied.len() - fields.rest().len();
        fields.next();
        if let Some(value) = replace(index) {
            frame.push(&copied[..before])?;
            frame.push_value(value)?;
            copied = fields.rest();
        }
    }
    frame.push(&copied[..copied.len() - fields.rest().len()])
}

#[cfg(test)]
mod tests;
