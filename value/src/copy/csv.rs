//! COPY in CSV format.

use std::borrow::Cow;

use memchr::memchr2;

use super::Field;

/// The options of `COPY (FORMAT csv)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsvFormat<'a> {
    /// One ASCII byte.
    pub delimiter: u8,
    /// One ASCII byte.
    pub quote: u8,
    /// One ASCII byte; the quote itself by default.
    pub escape: u8,
    /// How NULL is written, unquoted.
    pub null: &'a [u8],
}

impl Default for CsvFormat<'_> {
    fn default() -> Self {
        CsvFormat {
            delimiter: b',',
            quote: b'"',
            escape: b'"',
            null: b"",
        }
    }
}

/// A quoted field that does not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unterminated quoted field at byte {offset}")]
pub struct OpenQuote {
    /// Bytes from the start of the row.
    pub offset: usize,
}

/// Appends a value as `CopyAttributeOutCSV` does.
///
/// `only_column` says that the row has no other column: then `\.` is quoted.
pub fn write_csv(
    value: &[u8],
    format: CsvFormat<'_>,
    force_quote: bool,
    only_column: bool,
    out: &mut Vec<u8>,
) {
    let CsvFormat {
        delimiter,
        quote,
        escape,
        null,
    } = format;
    let must_quote = force_quote
        || value == null
        || (only_column && value == b"\\.")
        || value
            .iter()
            .any(|&b| b == delimiter || b == quote || b == b'\n' || b == b'\r');
    out.reserve(value.len() + 2);
    if !must_quote {
        out.extend_from_slice(value);
        return;
    }
    out.push(quote);
    let mut rest = value;
    while let Some(at) = memchr2(quote, escape, rest) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(&[escape, rest[at]]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(quote);
}

/// Splits a row in CSV format, without its line end, into its fields. Ends after
/// the first error.
pub fn split_csv<'a>(row: &'a [u8], format: CsvFormat<'a>) -> CsvFields<'a> {
    CsvFields {
        row,
        next: Some(0),
        format,
    }
}

/// See [`split_csv`].
#[derive(Debug, Clone)]
pub struct CsvFields<'a> {
    row: &'a [u8],
    /// Where the next field begins; `None` at the end.
    next: Option<usize>,
    format: CsvFormat<'a>,
}

impl<'a> Iterator for CsvFields<'a> {
    type Item = Result<Field<'a>, OpenQuote>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.next.take()?;
        Some(self.field(start))
    }
}

impl<'a> CsvFields<'a> {
    fn field(&mut self, start: usize) -> Result<Field<'a>, OpenQuote> {
        let CsvFormat {
            delimiter,
            quote,
            null,
            ..
        } = self.format;
        let mut value = Cow::Borrowed(&b""[..]);
        let mut pos = start;
        let mut saw_quote = false;
        let end = loop {
            let rest = &self.row[pos..];
            let Some(at) = memchr2(delimiter, quote, rest) else {
                append(&mut value, rest);
                break self.row.len();
            };
            append(&mut value, &rest[..at]);
            pos += at;
            if self.row[pos] == delimiter {
                self.next = Some(pos + 1);
                break pos;
            }
            saw_quote = true;
            pos = self
                .quoted(pos + 1, &mut value)
                .ok_or(OpenQuote { offset: pos })?;
        };
        let is_null = !saw_quote && &self.row[start..end] == null;
        Ok(Field {
            range: start..end,
            value: (!is_null).then_some(value),
        })
    }

    /// Reads the quoted part whose content begins at `pos`; gives the byte behind
    /// its closing quote.
    fn quoted(&self, mut pos: usize, value: &mut Cow<'a, [u8]>) -> Option<usize> {
        let CsvFormat { quote, escape, .. } = self.format;
        loop {
            let rest = &self.row[pos..];
            let at = memchr2(quote, escape, rest)?;
            append(value, &rest[..at]);
            // The escape comes first: by default it is the quote itself.
            let escaped = rest
                .get(at + 1)
                .filter(|&&next| rest[at] == escape && (next == escape || next == quote));
            if escaped.is_some() {
                append(value, &rest[at + 1..at + 2]);
                pos += at + 2;
            } else if rest[at] == quote {
                return Some(pos + at + 1);
            } else {
                append(value, &rest[at..=at]);
                pos += at + 1;
            }
        }
    }
}

/// Appends a part of the row, borrowing while there is only one.
fn append<'a>(value: &mut Cow<'a, [u8]>, part: &'a [u8]) {
    if value.is_empty() {
        *value = Cow::Borrowed(part);
    } else if !part.is_empty() {
        value.to_mut().extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(row: &[u8], format: CsvFormat<'_>) -> Result<Vec<Option<Vec<u8>>>, OpenQuote> {
        split_csv(row, format)
            .map(|field| Ok(field?.value.map(Cow::into_owned)))
            .collect()
    }

    /// Quotes begin and end anywhere; NULL is never quoted.
    #[test]
    fn splits_and_decodes() {
        let some = |value: &[u8]| Some(value.to_vec());
        assert_eq!(
            values(b"a,\"b,\"\"c\"\"\",,\"\",x\"y,\"z", CsvFormat::default()),
            Ok(vec![
                some(b"a"),
                some(b"b,\"c\""),
                None,
                some(b""),
                some(b"xy,z")
            ])
        );
        let backslash = CsvFormat {
            escape: b'\\',
            null: b"NULL",
            ..CsvFormat::default()
        };
        assert_eq!(
            values(b"\"a\\\"\\\\\\n\",NULL,\"NULL\",\\\"b\"", backslash),
            Ok(vec![some(b"a\"\\\\n"), None, some(b"NULL"), some(b"\\b")])
        );
        assert_eq!(
            values(b"a,\"b\"\"", CsvFormat::default()),
            Err(OpenQuote { offset: 2 })
        );
    }

    /// What forces quotes, one reason each.
    #[test]
    fn quotes_where_needed() {
        let write = |value: &[u8], force, only| {
            let mut out = Vec::new();
            write_csv(value, CsvFormat::default(), force, only, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        };
        assert_eq!(write(b"a b", false, true), "a b");
        assert_eq!(write(b"", false, false), "\"\"");
        assert_eq!(write(b"a", true, false), "\"a\"");
        assert_eq!(write(b"a,b", false, false), "\"a,b\"");
        assert_eq!(write(b"a\"b", false, false), "\"a\"\"b\"");
        assert_eq!(write(b"a\rb", false, false), "\"a\rb\"");
        assert_eq!(write(b"\\.", false, true), "\"\\.\"");
        assert_eq!(write(b"\\.", false, false), "\\.");
    }

    proptest! {
        /// What is written is read back as it was.
        #[test]
        fn round_trips(
            fields in proptest::collection::vec(proptest::option::of("[a\",;'\\\\\n\r.N]{0,8}"), 1..5),
            force: bool,
            escape in "[\"'\\\\]",
        ) {
            let format = CsvFormat { delimiter: b';', escape: escape.as_bytes()[0], null: b"N", ..CsvFormat::default() };
            let mut row = Vec::new();
            for (index, field) in fields.iter().enumerate() {
                if index > 0 {
                    row.push(b';');
                }
                match field {
                    Some(value) => write_csv(value.as_bytes(), format, force, fields.len() == 1, &mut row),
                    None => row.push(b'N'),
                }
            }
            let expected: Vec<_> = fields.into_iter().map(|field| field.map(String::into_bytes)).collect();
            prop_assert_eq!(values(&row, format), Ok(expected));
        }

        /// No row panics.
        #[test]
        fn never_panics(row in "[a\",\\\\]{0,16}", escape in "[\"\\\\]") {
            let format = CsvFormat { escape: escape.as_bytes()[0], ..CsvFormat::default() };
            let _ = split_csv(row.as_bytes(), format).count();
        }
    }
}
