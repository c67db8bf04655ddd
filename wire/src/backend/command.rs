//! How a command ends and how a copy begins.

use crate::error::{Direction, EncodeError, MessageError};
use crate::formats::Formats;
use crate::frame::tag::backend::{COMMAND_COMPLETE, READY_FOR_QUERY};
use crate::reader::Reader;
use crate::writer::OpenFrame;

/// A CommandComplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandComplete<'a> {
    /// The command tag, such as `INSERT 0 1`.
    pub tag: &'a [u8],
}

impl<'a> CommandComplete<'a> {
    /// Reads a CommandComplete body.
    ///
    /// # Errors
    /// When the first NUL is not the last byte.
    pub fn parse(body: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader::new("CommandComplete", body);
        let tag = reader.cstr("command tag")?;
        reader.end()?;
        Ok(Self { tag })
    }

    /// The row count that ends the tag; `None` for a command that counts no rows.
    #[must_use]
    pub fn rows(&self) -> Option<u64> {
        let last = self.tag.rsplit(|byte| *byte == b' ').next()?;
        // `parse` alone would take a sign as well.
        if last.len() == self.tag.len() || !last.iter().all(u8::is_ascii_digit) {
            return None;
        }
        std::str::from_utf8(last).ok()?.parse().ok()
    }
}

/// Writes a CommandComplete.
///
/// # Errors
/// `ZeroByte` in the tag, `TooLong` for libpq.
pub fn encode_command_complete(out: &mut Vec<u8>, tag: &[u8]) -> Result<(), EncodeError> {
    let expected = tag.len() + 1;
    let mut frame = OpenFrame::begin(out, Direction::Backend, COMMAND_COMPLETE, expected)?;
    frame.push_cstr("command tag", tag)?;
    frame.finish();
    Ok(())
}

/// The transaction status of a ReadyForQuery body: `I` idle, `T` in a transaction, `E` in a
/// failed one.
///
/// # Errors
/// When the body is not exactly one of these bytes.
pub fn ready_for_query_status(body: &[u8]) -> Result<u8, MessageError> {
    let mut reader = Reader::new("ReadyForQuery", body);
    let status = reader.u8("the transaction status")?;
    reader.end()?;
    match status {
        b'I' | b'T' | b'E' => Ok(status),
        _ => Err(MessageError::TransactionStatus { status }),
    }
}

/// Writes a ReadyForQuery; `status` as in [`ready_for_query_status`].
pub fn encode_ready_for_query(out: &mut Vec<u8>, status: u8) {
    out.extend_from_slice(&[READY_FOR_QUERY, 0, 0, 0, 5, status]);
}

/// A CopyInResponse, CopyOutResponse or CopyBothResponse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyResponse<'a> {
    /// 0 when the stream is text (lines), 1 when it is binary.
    pub overall_format: u8,
    /// One code for each column.
    pub column_formats: Formats<'a>,
}

impl<'a> CopyResponse<'a> {
    /// Reads the body of one of the three.
    ///
    /// # Errors
    /// When the body is not exactly one.
    pub fn parse(body: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader::new("CopyResponse", body);
        let overall_format = reader.u8("the overall format")?;
        let column_formats = reader.formats("the column formats")?;
        reader.end()?;
        Ok(Self {
            overall_format,
            column_formats,
        })
    }

    /// How many columns a row has.
    #[must_use]
    pub fn column_count(&self) -> usize {
        self.column_formats.count()
    }
}

#[cfg(test)]
mod tests;
