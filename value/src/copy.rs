//! Fields of COPY rows.
//!
//! Owns:       nothing; functions over one row.
//! Promises:   writers give what `COPY TO` writes for a client whose encoding keeps
//!             ASCII bytes for ASCII; splitters read what `COPY FROM` reads.
//! Fails:      splitting a text row cannot fail; a CSV row with an open quote does.
//! Proof:      tests/oracle

mod binary;
mod csv;
mod rows;
mod text;

use std::borrow::Cow;
use std::ops::Range;

pub use binary::{BinaryScanner, split_binary, write_binary};
pub use csv::{CsvFields, CsvFormat, OpenQuote, split_csv, write_csv};
pub use rows::{LineScanner, Scan};
pub use text::{TextFields, TextFormat, split_text, write_text};

/// One field of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field<'a> {
    /// Where it stands in the row, quotes and escapes included.
    pub range: Range<usize>,
    /// Its value; `None` for NULL. Escapes may give bytes that Postgres then refuses
    /// in the encoding at hand.
    pub value: Option<Cow<'a, [u8]>>,
}

/// Splits a row from its line end (`\n`, `\r\n` or `\r`; empty when there is none).
pub fn split_line_end(row: &[u8]) -> (&[u8], &[u8]) {
    let len = match row {
        [.., b'\r', b'\n'] => 2,
        [.., b'\n' | b'\r'] => 1,
        _ => 0,
    };
    row.split_at(row.len() - len)
}
