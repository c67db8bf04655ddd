//! CopyData of a COPY ... TO STDOUT: fields that are references become the values.
//!
//! The messages do not say of which types the fields are. A reference is a capability that verifies
//! by a keyed hash, so a whole field or array element that is one is resolved wherever it stands.

use std::borrow::Cow;
use std::sync::LazyLock;

use bytes::Bytes;
use memchr::memmem::Finder;
use toastrack_offload::{BINARY_MAGIC, Store, TEXT_PREFIX};
use toastrack_sql::CopyOut;
use toastrack_value::copy::{self, CsvFormat, TextFormat};
use toastrack_value::encoding::ClientEncoding;
use toastrack_wire::backend::CopyResponse;

use super::fields::{self, Found, Values};
use super::row::RowError;
use crate::catalog::Snapshot;
use crate::detoast::Detoaster;

/// The rows of one COPY ... TO STDOUT.
pub(crate) struct CopyRows {
    layout: CopyOut,
    binary: bool,
    /// The header of a binary copy stands before its first row.
    header_seen: bool,
}

/// What values are found with and written for.
pub(crate) struct CopyReader<'s> {
    pub(crate) store: &'s Store,
    pub(crate) detoaster: &'s Detoaster,
    pub(crate) encoding: ClientEncoding,
    pub(crate) catalog: &'s Snapshot,
}

/// A row with values in place of references, and how many there are.
pub(crate) type ResolvedRow = (Vec<u8>, u64);

impl CopyRows {
    /// `response` is the body of the CopyOutResponse.
    pub(crate) fn new(layout: CopyOut, response: &[u8]) -> CopyRows {
        let binary = CopyResponse::parse(response).is_ok_and(|copy| copy.overall_format == 1);
        CopyRows {
            layout,
            binary,
            header_seen: false,
        }
    }

    /// The row with its values; None when it holds no reference.
    pub(crate) async fn resolve(
        &mut self,
        row: &[u8],
        reader: &CopyReader<'_>,
    ) -> Result<Option<ResolvedRow>, RowError> {
        let header = self.header_len(row);
        let found = if may_hold_reference(row) || self.binary {
            self.find(row, header, reader)
        } else {
            return Ok(None);
        };
        if found.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut values = Values::new();
        let mut count = 0;
        for reference in found.iter().flatten().flat_map(Found::references) {
            let value = reader
                .detoaster
                .get(reference)
                .await
                .map_err(RowError::Store)?;
            values.insert(reference.identity(), value);
            count += 1;
        }
        let row = if self.binary {
            self.write_binary(row, header, &found, &values, reader)?
        } else {
            self.write_text(row, &found, &values, reader)?
        };
        Ok(Some((row, count)))
    }

    /// Bytes of the header of a binary copy that stand before this row.
    fn header_len(&mut self, row: &[u8]) -> usize {
        const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
        const EXTENSION_LEN_AT: usize = SIGNATURE.len() + 4;
        if !self.binary || std::mem::replace(&mut self.header_seen, true) {
            return 0;
        }
        let extension = row.get(EXTENSION_LEN_AT..).and_then(<[u8]>::first_chunk);
        match extension {
            Some(len) if row.starts_with(SIGNATURE) => {
                EXTENSION_LEN_AT + 4 + u32::from_be_bytes(*len) as usize
            }
            _ => 0,
        }
    }

    /// What each field holds, in order.
    fn find(&self, row: &[u8], header: usize, reader: &CopyReader<'_>) -> Vec<Option<Found>> {
        let find = |field: Option<&[u8]>| {
            fields::find_untyped(reader.store, reader.catalog, self.binary, field?)
        };
        if self.binary {
            return copy::split_binary(after(row, header)).map(find).collect();
        }
        let (line, _) = copy::split_line_end(row);
        self.text_fields(line)
            .map(|field| find(field.value.as_deref()))
            .collect()
    }

    fn text_fields<'r>(&'r self, line: &'r [u8]) -> Box<dyn Iterator<Item = copy::Field<'r>> + 'r> {
        let CopyOut {
            csv,
            delimiter,
            null,
            ..
        } = &self.layout;
        if *csv {
            // A row that the server wrote has no open quote.
            Box::new(copy::split_csv(line, self.csv()).map_while(Result::ok))
        } else {
            Box::new(copy::split_text(
                line,
                TextFormat {
                    delimiter: *delimiter,
                    null,
                },
            ))
        }
    }

    fn csv(&self) -> CsvFormat<'_> {
        let CopyOut {
            delimiter,
            null,
            quote,
            escape,
            ..
        } = &self.layout;
        CsvFormat {
            delimiter: *delimiter,
            quote: *quote,
            escape: *escape,
            null,
        }
    }

    fn write_text(
        &self,
        row: &[u8],
        found: &[Option<Found>],
        values: &Values,
        reader: &CopyReader<'_>,
    ) -> Result<Vec<u8>, RowError> {
        let (line, line_end) = copy::split_line_end(row);
        let mut out =
            Vec::with_capacity(row.len() + values.values().map(Bytes::len).sum::<usize>());
        for (index, field) in self.text_fields(line).enumerate() {
            if index > 0 {
                out.push(self.layout.delimiter);
            }
            let (Some(Some(found_here)), Some(original)) = (found.get(index), &field.value) else {
                out.extend_from_slice(&line[field.range]);
                continue;
            };
            let value = fields::written(found_here, original, values, reader.encoding)?;
            let quoted = self.is_quoted_for_itself(&line[field.range], original);
            self.write_field(&value, quoted, found.len() == 1, &mut out);
        }
        out.extend_from_slice(line_end);
        Ok(out)
    }

    /// Whether the server put quotes around a reference that needs none, and so would around any value
    /// of the column (FORCE_QUOTE).
    fn is_quoted_for_itself(&self, field: &[u8], reference: &[u8]) -> bool {
        if !self.layout.csv || field.first() != Some(&self.layout.quote) {
            return false;
        }
        let mut unforced = Vec::with_capacity(field.len());
        copy::write_csv(reference, self.csv(), false, false, &mut unforced);
        unforced.first() != Some(&self.layout.quote)
    }

    fn write_field(&self, value: &[u8], quoted: bool, only_column: bool, out: &mut Vec<u8>) {
        if self.layout.csv {
            let quoted = quoted || self.layout.force_quote_all;
            copy::write_csv(value, self.csv(), quoted, only_column, out);
        } else {
            copy::write_text(value, self.layout.delimiter, out);
        }
    }

    fn write_binary(
        &self,
        row: &[u8],
        header: usize,
        found: &[Option<Found>],
        values: &Values,
        reader: &CopyReader<'_>,
    ) -> Result<Vec<u8>, RowError> {
        // The header and the number of fields stay.
        let mut out = row[..header + 2].to_vec();
        for (field, found) in copy::split_binary(after(row, header)).zip(found) {
            let value: Option<Cow<'_, [u8]>> = match (field, found) {
                (Some(field), Some(found)) => {
                    Some(fields::written(found, field, values, reader.encoding)?)
                }
                (field, _) => field.map(Cow::Borrowed),
            };
            copy::write_binary(value.as_deref(), &mut out);
        }
        Ok(out)
    }
}

/// The row behind what stands before the first one of a copy.
fn after(row: &[u8], header: usize) -> &[u8] {
    row.get(header..).unwrap_or_default()
}

/// One search for each spelling spares most rows a closer look.
fn may_hold_reference(row: &[u8]) -> bool {
    static SPELLINGS: LazyLock<[Finder<'static>; 4]> = LazyLock::new(|| {
        let hex = toastrack_value::bytea::encode_hex(BINARY_MAGIC);
        [
            Finder::new(TEXT_PREFIX).into_owned(),
            Finder::new(BINARY_MAGIC).into_owned(),
            Finder::new(&hex[2..]).into_owned(),
            Finder::new(br"367TOAST").into_owned(),
        ]
    });
    SPELLINGS
        .iter()
        .any(|spelling| spelling.find(row).is_some())
}
