//! CopyData of a COPY ... FROM STDIN: large fields become references as they stream.
//!
//! Promises:   the same rows at the same places, and every byte that is not of an offloaded field as it
//!             came (S6). What Postgres would not take as it is (a bad escape, bad JSON, too many
//!             fields, what stands behind the end marker) goes on unchanged, for Postgres to judge (S2, S5).
//! Invariants: at most [`LONGEST_ROW`] and one message are held; longer rows pass inline (S7).

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use memchr::memchr_iter;
use parking_lot::Mutex;
use toastrack_offload::Ticket;
use toastrack_sql::{CopyFormat, CopyInLayout};
use toastrack_value::copy::{
    self, BinaryScanner, CsvFormat, Field, LineScanner, Scan, TextFormat, split_binary,
    write_binary,
};

use super::bind::spelled;
use super::copy_lines::CopyLines;
use super::prepare::Sink;
use crate::catalog::Column;

/// Where the rows of a COPY go. Certain, since types do not protect them (S1).
pub(crate) struct CopyTarget {
    /// The table's bare name.
    pub(crate) table: String,
    /// One for each field of a row; None for a column that is not offloaded.
    pub(crate) columns: Vec<Option<Arc<Column>>>,
    pub(crate) layout: CopyInLayout,
    /// The server has ended the copy: what still comes is ignored.
    pub(crate) ended: AtomicBool,
    pub(crate) lines: Mutex<CopyLines>,
}

/// The rows of one COPY ... FROM STDIN.
pub(crate) struct CopyInRows {
    target: Arc<CopyTarget>,
    scanner: Scanner,
    /// The start of a row that is not complete.
    pending: Vec<u8>,
    /// The header line is yet to come.
    header: bool,
    passing: Passing,
    /// The client's number of the last whole line.
    line: u64,
}

enum Scanner {
    Lines(LineScanner),
    Binary(BinaryScanner),
}

/// What goes without a look.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passing {
    Nothing,
    /// The rest of a row that is too long.
    Row,
    /// Everything.
    All,
}

/// What is to be sent on.
#[derive(Default)]
pub(crate) struct Passed {
    /// As the client sent it.
    pub(crate) original: Vec<u8>,
    /// With references in place of values, durable once the ticket is; None when nothing was replaced.
    pub(crate) changed: Option<(Vec<u8>, Ticket)>,
    /// To be set if the original goes after all.
    pub(crate) restored: Arc<AtomicBool>,
}

/// A longer row is not worth its memory.
const LONGEST_ROW: usize = 8 * 1024 * 1024;
/// An emptied buffer keeps at most this much room.
const KEPT_CAPACITY: usize = 256 * 1024;

impl CopyInRows {
    pub(crate) fn new(target: Arc<CopyTarget>) -> CopyInRows {
        let scanner = match target.layout.format {
            CopyFormat::Text => Scanner::Lines(LineScanner::text()),
            CopyFormat::Csv { quote, escape } => Scanner::Lines(LineScanner::csv(quote, escape)),
            CopyFormat::Binary => Scanner::Binary(BinaryScanner::default()),
        };
        let header = target.layout.header && target.layout.format != CopyFormat::Binary;
        CopyInRows {
            target,
            scanner,
            pending: Vec::new(),
            header,
            passing: Passing::Nothing,
            line: 0,
        }
    }

    pub(crate) fn target(&self) -> &CopyTarget {
        &self.target
    }

    /// Takes in the next bytes of the stream; gives back what is complete.
    pub(crate) fn feed(&mut self, bytes: &[u8], sink: &Sink<'_>) -> Passed {
        let mut passed = Passed::default();
        if self.passing == Passing::All {
            passed.pass(bytes);
            return passed;
        }
        if self.pending.is_empty() {
            let taken = self.rows_of(bytes, sink, &mut passed);
            self.pending.extend_from_slice(&bytes[taken..]);
        } else {
            let mut data = std::mem::take(&mut self.pending);
            data.extend_from_slice(bytes);
            let taken = self.rows_of(&data, sink, &mut passed);
            data.drain(..taken);
            data.shrink_to(KEPT_CAPACITY);
            self.pending = data;
        }
        passed
    }

    /// The client says that nothing more comes; what is left may be a row without a line end.
    pub(crate) fn finish(&mut self, sink: &Sink<'_>) -> Passed {
        let mut passed = Passed::default();
        let rest = std::mem::take(&mut self.pending);
        let is_row = self.passing == Passing::Nothing
            && !self.header
            && matches!(&self.scanner, Scanner::Lines(lines) if lines.is_last_row(&rest));
        if is_row {
            let counted = self.counted_in_quotes();
            self.line += 1 + lines_in(&rest, counted);
            self.row(&rest, 0, counted, sink, &mut passed);
        } else {
            passed.pass(&rest);
        }
        self.passing = Passing::All;
        passed
    }

    /// What is left goes as it came.
    pub(crate) fn break_off(&mut self) -> Vec<u8> {
        self.passing = Passing::All;
        std::mem::take(&mut self.pending)
    }

    /// Passes the rows at the front of `data`; gives the number of bytes taken.
    fn rows_of(&mut self, data: &[u8], sink: &Sink<'_>, passed: &mut Passed) -> usize {
        let mut taken = 0;
        loop {
            let rest = &data[taken..];
            let counted = self.counted_in_quotes();
            let scan = match &mut self.scanner {
                Scanner::Lines(lines) => lines.scan(rest),
                Scanner::Binary(binary) => binary.scan(rest),
            };
            match scan {
                Scan::Row { len, line_end } => {
                    let (row, content) = (&rest[..len], len - line_end);
                    self.line += 1 + lines_in(&row[..content], counted);
                    let whole = std::mem::replace(&mut self.passing, Passing::Nothing);
                    if std::mem::take(&mut self.header) || whole == Passing::Row {
                        passed.pass(row);
                    } else {
                        self.row(row, line_end, counted, sink, passed);
                    }
                    taken += len;
                }
                Scan::Preamble { len } => {
                    self.passing = Passing::Nothing;
                    passed.pass(&rest[..len]);
                    taken += len;
                }
                Scan::Incomplete => break,
                Scan::Stop => {
                    self.passing = Passing::All;
                    passed.pass(rest);
                    return data.len();
                }
            }
        }
        if data.len() - taken > LONGEST_ROW {
            self.passing = Passing::Row;
        }
        if self.passing == Passing::Row {
            let counted = self.counted_in_quotes();
            let rest = &data[taken..];
            let len = self.scanner.drop_front(rest.len());
            self.line += lines_in(&rest[..len], counted);
            passed.pass(&rest[..len]);
            taken += len;
        }
        taken
    }

    /// The byte that the server counts as a line within a row.
    fn counted_in_quotes(&self) -> Option<u8> {
        match &self.scanner {
            Scanner::Lines(lines) if self.is_csv() => Some(lines.counted_in_quotes()),
            _ => None,
        }
    }

    fn is_csv(&self) -> bool {
        matches!(self.target.layout.format, CopyFormat::Csv { .. })
    }

    /// Passes a whole row, in which `counted` was counted as lines.
    fn row(
        &mut self,
        row: &[u8],
        line_end: usize,
        counted: Option<u8>,
        sink: &Sink<'_>,
        passed: &mut Passed,
    ) {
        let target = Arc::clone(&self.target);
        let content = &row[..row.len() - line_end];
        match target.layout.format {
            CopyFormat::Binary => binary_row(&target, row, sink, passed),
            CopyFormat::Text => {
                let format = TextFormat {
                    delimiter: target.layout.delimiter,
                    null: &target.layout.null,
                };
                let fields = copy::split_text(content, format);
                self.text_row(row, fields, counted, sink, passed);
            }
            CopyFormat::Csv { .. } => {
                let fields: Result<Vec<Field<'_>>, _> =
                    copy::split_csv(content, csv_format(&target.layout)).collect();
                match fields {
                    Ok(fields) => self.text_row(row, fields.into_iter(), counted, sink, passed),
                    Err(_) => passed.pass(row),
                }
            }
        }
    }

    fn text_row<'r>(
        &mut self,
        row: &'r [u8],
        fields: impl Iterator<Item = Field<'r>>,
        counted: Option<u8>,
        sink: &Sink<'_>,
        passed: &mut Passed,
    ) {
        let target = Arc::clone(&self.target);
        // One field more tells a row with too many of them.
        let fields: Vec<Field<'_>> = fields.take(target.columns.len() + 1).collect();
        if fields.len() != target.columns.len() {
            return passed.pass(row);
        }
        let mut out = Vec::new();
        let (mut from, mut lost, mut ticket) = (0, 0, None);
        for (field, column) in fields.into_iter().zip(&target.columns) {
            let (Some(value), Some(column)) = (&field.value, column) else {
                continue;
            };
            let source = &row[field.range.clone()];
            if target.layout.means_otherwise(source) || target.layout.means_otherwise(value) {
                continue;
            }
            let Some(put) = sink.offload(column, value, false, false) else {
                continue;
            };
            ticket = ticket.max(Some(put.ticket));
            out.extend_from_slice(&row[from..field.range.start]);
            write_field(&spelled(&put, false), &target.layout, &mut out);
            lost += lines_in(source, counted);
            from = field.range.end;
        }
        let Some(ticket) = ticket else {
            return passed.pass(row);
        };
        out.extend_from_slice(&row[from..]);
        if lost > 0 {
            let mut lines = target.lines.lock();
            lines.push(self.line, lost, &passed.restored);
        }
        passed.replace(row, &out, ticket);
    }
}

impl Scanner {
    /// Forgets what was looked at of a row that is passed on in parts, of which `have` bytes are there;
    /// gives the number of bytes forgotten.
    fn drop_front(&mut self, have: usize) -> usize {
        match self {
            Scanner::Lines(lines) => {
                let len = lines.looked_at().min(have);
                lines.drop_front(len);
                len
            }
            Scanner::Binary(binary) => {
                let len = binary.looked_at().min(have);
                binary.drop_front(len);
                len
            }
        }
    }
}

impl Passed {
    fn pass(&mut self, bytes: &[u8]) {
        self.original.extend_from_slice(bytes);
        if let Some((changed, _)) = &mut self.changed {
            changed.extend_from_slice(bytes);
        }
    }

    fn replace(&mut self, row: &[u8], by: &[u8], ticket: Ticket) {
        let original = &self.original;
        let (changed, last) = self
            .changed
            .get_or_insert_with(|| (original.clone(), ticket));
        changed.extend_from_slice(by);
        *last = ticket.max(*last);
        self.original.extend_from_slice(row);
    }
}

/// What a field may stand for instead of its value.
trait Marked {
    /// Whether a field is, or with an option may be, NULL or the column's default.
    fn means_otherwise(&self, field: &[u8]) -> bool;
}

impl Marked for CopyInLayout {
    fn means_otherwise(&self, field: &[u8]) -> bool {
        field == self.null || self.default.as_deref() == Some(field)
    }
}

fn binary_row(target: &CopyTarget, row: &[u8], sink: &Sink<'_>, passed: &mut Passed) {
    let fields: Vec<Option<&[u8]>> = split_binary(row).collect();
    if fields.len() != target.columns.len() {
        return passed.pass(row);
    }
    let puts: Vec<_> = fields
        .iter()
        .zip(&target.columns)
        .map(|(field, column)| sink.offload(column.as_ref()?, (*field)?, true, false))
        .collect();
    let Some(ticket) = puts.iter().flatten().map(|put| put.ticket).max() else {
        return passed.pass(row);
    };
    let mut out = row[..2].to_vec();
    for (field, put) in fields.into_iter().zip(&puts) {
        match put {
            Some(put) => write_binary(Some(&spelled(put, true)), &mut out),
            None => write_binary(field, &mut out),
        }
    }
    passed.replace(row, &out, ticket);
}

fn write_field(value: &[u8], layout: &CopyInLayout, out: &mut Vec<u8>) {
    match layout.format {
        CopyFormat::Csv { .. } => copy::write_csv(value, csv_format(layout), false, false, out),
        _ => copy::write_text(value, layout.delimiter, out),
    }
}

fn csv_format(layout: &CopyInLayout) -> CsvFormat<'_> {
    let (quote, escape) = match layout.format {
        CopyFormat::Csv { quote, escape } => (quote, escape),
        _ => (b'"', b'"'),
    };
    CsvFormat {
        delimiter: layout.delimiter,
        quote,
        escape,
        null: &layout.null,
    }
}

fn lines_in(bytes: &[u8], counted: Option<u8>) -> u64 {
    counted.map_or(0, |byte| memchr_iter(byte, bytes).count() as u64)
}
