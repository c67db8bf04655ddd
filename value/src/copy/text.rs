//! COPY in text format.

use std::borrow::Cow;

use memchr::memchr2;

use super::Field;

/// The options of `COPY (FORMAT text)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextFormat<'a> {
    /// One ASCII byte.
    pub delimiter: u8,
    /// How NULL is written.
    pub null: &'a [u8],
}

impl Default for TextFormat<'_> {
    fn default() -> Self {
        TextFormat {
            delimiter: b'\t',
            null: b"\\N",
        }
    }
}

/// Appends a value as `CopyAttributeOutText` does.
pub fn write_text(value: &[u8], delimiter: u8, out: &mut Vec<u8>) {
    out.reserve(value.len());
    let mut rest = value;
    while let Some(at) = rest
        .iter()
        .position(|&b| matches!(b, 8..=13 | b'\\') || b == delimiter)
    {
        let escaped = match rest[at] {
            8 => b'b',
            b'\t' => b't',
            b'\n' => b'n',
            11 => b'v',
            12 => b'f',
            b'\r' => b'r',
            other => other,
        };
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(&[b'\\', escaped]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// Splits a row in text format, without its line end, into its fields.
pub fn split_text<'a>(row: &'a [u8], format: TextFormat<'a>) -> TextFields<'a> {
    TextFields {
        row,
        next: Some(0),
        format,
    }
}

/// See [`split_text`].
#[derive(Debug, Clone)]
pub struct TextFields<'a> {
    row: &'a [u8],
    /// Where the next field begins; `None` at the end.
    next: Option<usize>,
    format: TextFormat<'a>,
}

impl<'a> Iterator for TextFields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let start = self.next?;
        let mut pos = start;
        let mut has_escapes = false;
        let end = loop {
            let Some(at) = memchr2(self.format.delimiter, b'\\', &self.row[pos..]) else {
                self.next = None;
                break self.row.len();
            };
            pos += at;
            if self.row[pos] == self.format.delimiter {
                self.next = Some(pos + 1);
                break pos;
            }
            has_escapes = true;
            pos = (pos + 2).min(self.row.len());
        };
        let source = &self.row[start..end];
        let value = if source == self.format.null {
            None
        } else if has_escapes {
            Some(Cow::Owned(unescape(source)))
        } else {
            Some(Cow::Borrowed(source))
        };
        Some(Field {
            range: start..end,
            value,
        })
    }
}

/// Undoes the escapes of a field; a backslash at its very end is dropped.
fn unescape(source: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let behind = &rest[at + 1..];
        let Some(&first) = behind.first() else {
            return out;
        };
        let (byte, len) = match first {
            b'0'..=b'7' => {
                let (value, len) = number(behind, 8, 3);
                (value as u8, len)
            }
            b'x' => match number(&behind[1..], 16, 2) {
                (_, 0) => (b'x', 1),
                (value, len) => (value as u8, len + 1),
            },
            b'b' => (8, 1),
            b'f' => (12, 1),
            b'n' => (b'\n', 1),
            b'r' => (b'\r', 1),
            b't' => (b'\t', 1),
            b'v' => (11, 1),
            other => (other, 1),
        };
        out.push(byte);
        rest = &behind[len..];
    }
    out.extend_from_slice(rest);
    out
}

/// Reads up to `most` digits; gives the number and how many there were.
fn number(text: &[u8], radix: u32, most: usize) -> (u32, usize) {
    text.iter()
        .take(most)
        .map_while(|b| char::from(*b).to_digit(radix))
        .fold((0, 0), |(value, len), digit| {
            (value * radix + digit, len + 1)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values<'a>(row: &'a [u8], format: TextFormat<'a>) -> Vec<Option<Vec<u8>>> {
        split_text(row, format)
            .map(|field| field.value.map(Cow::into_owned))
            .collect()
    }

    /// The escapes of the manual, and the ones that are none.
    #[test]
    fn splits_and_decodes() {
        let some = |value: &[u8]| Some(value.to_vec());
        assert_eq!(
            values(
                b"x\\ty\\\\z\\n\\x41\\101\\q\t\\N\t\tNULL",
                TextFormat::default()
            ),
            [some(b"x\ty\\z\nAAq"), None, some(b""), some(b"NULL")]
        );
        assert_eq!(
            values(
                b"a\\|b|\\xg|\\x4|\\18|\\777|c\\",
                TextFormat {
                    delimiter: b'|',
                    null: b""
                }
            ),
            [
                some(b"a|b"),
                some(b"xg"),
                some(b"\x04"),
                some(b"\x018"),
                some(b"\xff"),
                some(b"c")
            ]
        );
        assert_eq!(values(b"", TextFormat::default()), [some(b"")]);
        assert_eq!(
            values(
                b"\t",
                TextFormat {
                    delimiter: b'\t',
                    null: b""
                }
            ),
            [None, None]
        );
    }

    /// Ranges cover the fields as written.
    #[test]
    fn tells_ranges() {
        let ranges: Vec<_> = split_text(b"a\\\tb\tc\t", TextFormat::default())
            .map(|field| field.range)
            .collect();
        assert_eq!(ranges, [0..4, 5..6, 7..7]);
    }

    proptest! {
        /// What is written is read back as it was.
        #[test]
        fn round_trips(fields in proptest::collection::vec(any::<Vec<u8>>(), 1..5), delimiter in "[\t|,A\x01]") {
            let delimiter = delimiter.as_bytes()[0];
            let mut row = Vec::new();
            for (index, field) in fields.iter().enumerate() {
                if index > 0 {
                    row.push(delimiter);
                }
                write_text(field, delimiter, &mut row);
            }
            let expected: Vec<_> = fields.into_iter().map(Some).collect();
            prop_assert_eq!(values(&row, TextFormat { delimiter, null: b"\\N" }), expected);
        }

        /// No row panics.
        #[test]
        fn never_panics(row: Vec<u8>, escapes in "[\\\\x0-9n\t]{0,12}") {
            let _ = split_text(&row, TextFormat::default()).count();
            let _ = split_text(escapes.as_bytes(), TextFormat::default()).count();
        }
    }
}
