//! DataRow: the values of one row, read, written, and copied with some of them replaced.

use crate::error::{Direction, EncodeError, MessageError};
use crate::fields::{self, Fields};
use crate::frame::tag::backend::DATA_ROW;
use crate::writer::OpenFrame;

/// A DataRow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataRow<'a> {
    count: usize,
    /// The body behind the column count.
    values: &'a [u8],
}

impl<'a> DataRow<'a> {
    /// Reads a DataRow body. Every length in it is checked once, here.
    ///
    /// # Errors
    /// When the body is not exactly a DataRow.
    #[inline]
    pub fn parse(body: &'a [u8]) -> Result<Self, MessageError> {
        let Some((count, values)) = body.split_first_chunk() else {
            return Err(MessageError::Truncated {
                message: "DataRow",
                field: "the column count",
                needed: 2,
                left: body.len(),
            });
        };
        let count = usize::from(u16::from_be_bytes(*count));
        let rest = fields::check("DataRow", values, count, |_, _| ())?;
        if !rest.is_empty() {
            return Err(MessageError::Trailing {
                message: "DataRow",
                left: rest.len(),
            });
        }
        Ok(Self { count, values })
    }

    /// How many columns there are.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the row has no columns at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The values in order, `None` for NULL.
    #[must_use]
    #[inline]
    pub fn fields(&self) -> Fields<'a> {
        Fields::checked(self.values, self.count)
    }

    /// Writes this row with the values for which `replace` gives bytes, and everything else byte
    /// for byte (S6). `replace` is asked once for each column, in order.
    ///
    /// # Errors
    /// `TooLong` when the row would exceed what a server could send.
    pub fn encode_with<'r>(
        &self,
        out: &mut Vec<u8>,
        replace: impl FnMut(usize) -> Option<&'r [u8]>,
    ) -> Result<(), EncodeError> {
        let expected = 2 + self.values.len();
        let mut frame = OpenFrame::begin(out, Direction::Backend, DATA_ROW, expected)?;
        frame.push_count("columns", self.count)?;
        fields::splice(&mut frame, self.values, self.count, replace)?;
        frame.finish();
        Ok(())
    }
}

/// Writes one DataRow behind what the output holds.
///
/// Dropped before [`RowWriter::finish`], it leaves the output as it was.
#[derive(Debug)]
pub struct RowWriter<'o> {
    frame: OpenFrame<'o>,
    announced: u16,
    written: u16,
    /// Length of the value that is being written in pieces, and how much of it is there.
    open: Option<(usize, usize)>,
}

impl<'o> RowWriter<'o> {
    /// Begins a row of `columns` values.
    #[must_use]
    pub fn begin(out: &'o mut Vec<u8>, columns: u16) -> Self {
        let first = columns.to_be_bytes();
        Self {
            frame: OpenFrame::begin_with(out, Direction::Backend, DATA_ROW, first),
            announced: columns,
            written: 0,
            open: None,
        }
    }

    /// Writes NULL.
    ///
    /// # Errors
    /// See [`RowWriter::field`].
    #[inline]
    pub fn null(&mut self) -> Result<(), EncodeError> {
        self.next_column()?;
        self.frame.push_null()
    }

    /// Writes a value.
    ///
    /// # Errors
    /// `TooLong` when the row would exceed 1 GiB, `ColumnCount` when it has all its columns,
    /// `PieceLength` when pieces of the value before are missing.
    #[inline]
    pub fn field(&mut self, value: &[u8]) -> Result<(), EncodeError> {
        self.next_column()?;
        self.frame.push_value(value)
    }

    /// Begins a value of `len` bytes, to be given to [`RowWriter::piece`].
    ///
    /// # Errors
    /// See [`RowWriter::field`]; the limit is checked here, before any piece is there.
    pub fn begin_field(&mut self, len: usize) -> Result<(), EncodeError> {
        self.next_column()?;
        self.frame.push_value_length(len)?;
        self.open = Some((len, 0));
        Ok(())
    }

    /// Adds bytes to the value that [`RowWriter::begin_field`] began.
    ///
    /// # Errors
    /// `PieceLength` when the value would get longer than announced, or none was begun.
    pub fn piece(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        let (announced, before) = self.open.unwrap_or((0, 0));
        let written = before.saturating_add(bytes.len());
        if written > announced {
            return Err(EncodeError::PieceLength { announced, written });
        }
        self.frame.push(bytes)?;
        self.open = Some((announced, written));
        Ok(())
    }

    /// Writes the length of the row; it now stands in the output.
    ///
    /// # Errors
    /// `ColumnCount` when columns are missing, `PieceLength` when pieces of the last one are. The
    /// output is then as it was before the row.
    pub fn finish(self) -> Result<(), EncodeError> {
        self.check_pieces()?;
        if self.written != self.announced {
            return Err(EncodeError::ColumnCount {
                announced: self.announced,
                written: usize::from(self.written),
            });
        }
        self.frame.finish();
        Ok(())
    }

    #[inline]
    fn next_column(&mut self) -> Result<(), EncodeError> {
        self.check_pieces()?;
        if self.written == self.announced {
            return Err(EncodeError::ColumnCount {
                announced: self.announced,
                written: usize::from(self.written) + 1,
            });
        }
        self.open = None;
        self.written += 1;
        Ok(())
    }

    #[inline]
    fn check_pieces(&self) -> Result<(), EncodeError> {
        match self.open {
            Some((announced, written)) if written != announced => {
                Err(EncodeError::PieceLength { announced, written })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
