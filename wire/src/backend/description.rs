//! RowDescription and ParameterDescription, with the places of their type OIDs.
//!
//! The proxy shows plain types where the server says `toastrack.*`: it patches the OIDs in
//! place and forwards the rest as it came (S6).

use crate::error::MessageError;
use crate::reader::Reader;

/// Bytes of a column behind its name.
const COLUMN_LEN: usize = 18;

/// A RowDescription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowDescription<'a> {
    body: &'a [u8],
    count: usize,
}

impl<'a> RowDescription<'a> {
    /// Reads a RowDescription body.
    ///
    /// # Errors
    /// When the body is not exactly a RowDescription.
    pub fn parse(body: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader::new("RowDescription", body);
        let count = usize::from(reader.u16("the column count")?);
        for _ in 0..count {
            reader.cstr("column name")?;
            reader.take(COLUMN_LEN, "a column")?;
        }
        reader.end()?;
        Ok(Self { body, count })
    }

    /// How many columns there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the result has no columns at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Column `i`, counted from 0; `None` beyond the last. Cost: one step for each column before.
    #[must_use]
    pub fn field(&self, i: usize) -> Option<FieldView<'a>> {
        self.fields().nth(i)
    }

    /// The columns in order.
    pub fn fields(&self) -> impl Iterator<Item = FieldView<'a>> + use<'a> {
        let mut reader = Reader::new("RowDescription", self.body);
        let checked = reader.u16("the column count").is_ok();
        let count = if checked { self.count } else { 0 };
        (0..count).map_while(move |_| FieldView::read(&mut reader).ok())
    }
}

/// One column of a [`RowDescription`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldView<'a> {
    /// Name of the column.
    pub name: &'a [u8],
    /// OID of its table; 0 when it is no column of a table.
    pub table_oid: u32,
    /// Attribute number in that table; 0 when it is no column of a table.
    pub column: i16,
    /// OID of its type.
    pub type_oid: u32,
    /// Bytes of the type; negative when they vary.
    pub type_len: i16,
    /// Modifier of the type; -1 when there is none.
    pub type_modifier: i32,
    /// 0 for text, 1 for binary; 0 also where it is not known yet.
    pub format: i16,
    /// Byte index of `type_oid` in the body, for [`patch_oid`].
    pub type_oid_at: usize,
}

impl<'a> FieldView<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, MessageError> {
        let name = reader.cstr("column name")?;
        let table_oid = reader.u32("a table OID")?;
        let column = reader.i16("a column number")?;
        let type_oid_at = reader.at();
        Ok(Self {
            name,
            table_oid,
            column,
            type_oid: reader.u32("a type OID")?,
            type_len: reader.i16("a type length")?,
            type_modifier: reader.i32("a type modifier")?,
            format: reader.i16("a format")?,
            type_oid_at,
        })
    }
}

/// A ParameterDescription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterDescription<'a> {
    types: &'a [u8],
}

/// Bytes before the first type OID.
const TYPES_AT: usize = 2;

impl<'a> ParameterDescription<'a> {
    /// Reads a ParameterDescription body.
    ///
    /// # Errors
    /// When the body is not exactly a ParameterDescription.
    pub fn parse(body: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader::new("ParameterDescription", body);
        let count = reader.u16("the parameter count")?;
        let types = reader.take(usize::from(count) * 4, "the parameter types")?;
        reader.end()?;
        Ok(Self { types })
    }

    /// How many parameters there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.types.len() / 4
    }

    /// Whether the statement takes no parameters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// The type OID of parameter `i`, counted from 0; `None` beyond the last.
    #[must_use]
    pub fn type_oid(&self, i: usize) -> Option<u32> {
        let oid = self.types.get(i * 4..)?.first_chunk()?;
        Some(u32::from_be_bytes(*oid))
    }

    /// The type OIDs in order, each behind its byte index in the body, for [`patch_oid`].
    pub fn types(&self) -> impl ExactSizeIterator<Item = (usize, u32)> + use<'a> {
        self.types.chunks_exact(4).enumerate().map(|(i, oid)| {
            let oid = u32::from_be_bytes([oid[0], oid[1], oid[2], oid[3]]);
            (TYPES_AT + 4 * i, oid)
        })
    }
}

/// Writes `oid` over the four bytes at `at` of a body, an index that one of the views gave.
///
/// Returns whether `body` reaches that far; when it does not, nothing is written.
#[must_use]
pub fn patch_oid(body: &mut [u8], at: usize, oid: u32) -> bool {
    let Some(place) = body.get_mut(at..).and_then(<[u8]>::first_chunk_mut) else {
        return false;
    };
    *place = oid.to_be_bytes();
    true
}

#[cfg(test)]
mod tests;
