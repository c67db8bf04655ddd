//! Where the rows of a COPY FROM STDIN end, while their bytes come in pieces.
//!
//! Owns:       the state of the server's own scanner (`CopyReadLineText`) between two pieces.
//! Promises:   rows are cut where the server cuts them, whatever the pieces; where the server is going
//!             to refuse the data, or ignores what follows, the answer is [`Scan::Stop`] for good.
//! Cost:       each byte is looked at once.

use memchr::{memchr2, memchr3};

/// What has come so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scan {
    /// The first `len` bytes are a row, the last `line_end` of them its line end.
    Row {
        /// Bytes.
        len: usize,
        /// Bytes; 0 in a binary copy.
        line_end: usize,
    },
    /// The first `len` bytes stand before the first row of a binary copy.
    Preamble {
        /// Bytes.
        len: usize,
    },
    /// The row goes on.
    Incomplete,
    /// What comes from here on is the end marker, or not what the server takes.
    Stop,
}

/// Tells lines apart.
///
/// Between two calls the caller removes what was told to be a row from the front of `data`, and only
/// that, or what it says with [`LineScanner::drop_front`].
#[derive(Debug, Clone)]
pub struct LineScanner {
    /// Quote and escape of CSV.
    csv: Option<(u8, u8)>,
    line_end: LineEnd,
    /// Bytes of the row that were looked at.
    pos: usize,
    at_start: bool,
    in_quote: bool,
    after_escape: bool,
}

/// The line end that the first line had: the others must have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Unknown,
    Nl,
    Cr,
    CrNl,
}

impl LineScanner {
    /// For the text format.
    pub fn text() -> LineScanner {
        LineScanner {
            csv: None,
            line_end: LineEnd::Unknown,
            pos: 0,
            at_start: true,
            in_quote: false,
            after_escape: false,
        }
    }

    /// For CSV. Neither byte may be a line end, nor the quote a backslash.
    pub fn csv(quote: u8, escape: u8) -> LineScanner {
        LineScanner {
            csv: Some((quote, escape)),
            ..LineScanner::text()
        }
    }

    /// The byte that the server counts as a line within quotes.
    pub fn counted_in_quotes(&self) -> u8 {
        match self.line_end {
            LineEnd::Nl => b'\n',
            LineEnd::Unknown | LineEnd::Cr | LineEnd::CrNl => b'\r',
        }
    }

    /// `data` begins where the current row does.
    pub fn scan(&mut self, data: &[u8]) -> Scan {
        match self.csv {
            None => self.scan_text(data),
            Some((quote, escape)) => self.scan_csv(data, quote, escape),
        }
    }

    /// The first `len` bytes of an incomplete row are no longer part of `data`.
    pub fn drop_front(&mut self, len: usize) {
        self.pos = self.pos.saturating_sub(len);
        self.at_start &= len == 0;
    }

    /// How far an incomplete row was looked at.
    pub fn looked_at(&self) -> usize {
        self.pos
    }

    /// Whether `data`, behind which nothing comes, is a row without a line end.
    pub fn is_last_row(&self, data: &[u8]) -> bool {
        !data.is_empty() && !self.in_quote && !data.starts_with(br"\.") && self.pos == data.len()
    }

    fn scan_text(&mut self, data: &[u8]) -> Scan {
        loop {
            let Some(at) = memchr3(b'\n', b'\r', b'\\', &data[self.pos..]) else {
                self.pos = data.len();
                return Scan::Incomplete;
            };
            self.pos += at;
            match (data[self.pos], data.get(self.pos + 1)) {
                (b'\\', None) => return Scan::Incomplete,
                (b'\\', Some(b'.')) => return Scan::Stop,
                (b'\\', Some(_)) => self.pos += 2,
                (_, next) => return self.end_of_line(data[self.pos], next.copied()),
            }
        }
    }

    fn scan_csv(&mut self, data: &[u8], quote: u8, escape: u8) -> Scan {
        if self.at_start && self.pos == 0 {
            match data {
                [] | [b'\\'] | [b'\\', b'.'] => return Scan::Incomplete,
                [b'\\', b'.', b'\n' | b'\r', ..] => return Scan::Stop,
                _ => {}
            }
        }
        loop {
            let rest = &data[self.pos..];
            if !self.in_quote {
                let Some(at) = memchr3(quote, b'\n', b'\r', rest) else {
                    self.pos = data.len();
                    return Scan::Incomplete;
                };
                self.pos += at;
                if data[self.pos] != quote {
                    let next = data.get(self.pos + 1).copied();
                    return self.end_of_line(data[self.pos], next);
                }
                self.in_quote = true;
                self.pos += 1;
                continue;
            }
            let found = memchr2(quote, escape, rest);
            if found.unwrap_or(rest.len()) > 0 {
                self.after_escape = false;
            }
            let Some(at) = found else {
                self.pos = data.len();
                return Scan::Incomplete;
            };
            self.pos += at + 1;
            if rest[at] != quote {
                self.after_escape = !self.after_escape;
                continue;
            }
            self.in_quote = self.after_escape;
            self.after_escape = false;
        }
    }

    /// At a line end that is one: the next byte tells which.
    fn end_of_line(&mut self, byte: u8, next: Option<u8>) -> Scan {
        let line_end = match (byte, self.line_end, next) {
            (b'\n', LineEnd::Unknown | LineEnd::Nl, _) => {
                self.line_end = LineEnd::Nl;
                1
            }
            (b'\r', LineEnd::Unknown | LineEnd::CrNl, None) => return Scan::Incomplete,
            (b'\r', LineEnd::Unknown | LineEnd::CrNl, Some(b'\n')) => {
                self.line_end = LineEnd::CrNl;
                2
            }
            (b'\r', LineEnd::Unknown | LineEnd::Cr, _) => {
                self.line_end = LineEnd::Cr;
                1
            }
            _ => return Scan::Stop,
        };
        let len = std::mem::take(&mut self.pos) + line_end;
        self.at_start = true;
        Scan::Row { len, line_end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All rows of a stream that comes in pieces, and what is left.
    fn rows(mut scanner: LineScanner, pieces: &[&[u8]]) -> (Vec<Vec<u8>>, Vec<u8>, bool) {
        let (mut data, mut found) = (Vec::new(), Vec::new());
        for piece in pieces {
            data.extend_from_slice(piece);
            loop {
                match scanner.scan(&data) {
                    Scan::Row { len, .. } => found.push(data.drain(..len).collect()),
                    Scan::Incomplete => break,
                    Scan::Preamble { .. } => unreachable!("of binary copies only"),
                    Scan::Stop => return (found, data, true),
                }
            }
        }
        let last = scanner.is_last_row(&data);
        (found, data, last)
    }

    fn shown(scanner: LineScanner, data: &[u8]) -> String {
        let (rows, rest, flag) = rows(scanner, &[data]);
        let rows = rows.iter().map(|row| row.escape_ascii().to_string());
        let rows = rows.collect::<Vec<_>>().join("|");
        format!("{rows}|{}|{}", rest.escape_ascii(), u8::from(flag))
    }

    /// Line ends, escaped ones, mixed ones, and the end marker.
    #[test]
    fn cuts_text() {
        for (data, expected) in [
            (&b"a\nb\n"[..], r"a\n|b\n||0"),
            (b"a\r\nb\r\n", r"a\r\n|b\r\n||0"),
            (b"a\rb\rc", r"a\r|b\r|c|1"),
            (b"a\r", r"|a\r|0"),
            (b"a\\\nb\\\\\nc\\", r"a\\\nb\\\\\n|c\\|0"),
            (b"a\nb\rc\n", r"a\n|b\rc\n|1"),
            (b"a\r\nb\nc", r"a\r\n|b\nc|1"),
            (b"a\r\nb\rc", r"a\r\n|b\rc|1"),
            (b"a\n\\.\nb\n", r"a\n|\\.\nb\n|1"),
            (b"a\nb\\.\n", r"a\n|b\\.\n|1"),
            (b"a\\\\.\n", r"a\\\\.\n||0"),
        ] {
            assert_eq!(shown(LineScanner::text(), data), expected);
        }
    }

    /// Quotes, escapes that are quotes or not, and a marker that is data.
    #[test]
    fn cuts_csv() {
        for (escape, data, expected) in [
            (
                b'"',
                &b"a,\"b\n\"\"\nc\"\nd\n"[..],
                r#"a,\"b\n\"\"\nc\"\n|d\n||0"#,
            ),
            (
                b'\\',
                b"\"a\\\"\n\\\\\"\nb\n",
                r#"\"a\\\"\n\\\\\"\n|b\n||0"#,
            ),
            (b'\\', b"\\\"a\nb\"\n", r#"\\\"a\nb\"\n||0"#),
            (b'"', b"\\.x\n\\.\nb\n", r"\\.x\n|\\.\nb\n|1"),
            (b'"', b"\"a\r\nb\"\r\nc", r#"\"a\r\nb\"\r\n|c|1"#),
            (b'"', b"\"a\n", r#"|\"a\n|0"#),
            (b'"', b"\\.", r"|\\.|0"),
        ] {
            assert_eq!(shown(LineScanner::csv(b'"', escape), data), expected);
        }
    }

    proptest! {
        /// Pieces of any size give the rows that the whole gives.
        #[test]
        fn pieces_do_not_matter(
            data in "[a\"\\\\.\r\n,']{0,40}",
            cuts in proptest::collection::vec(0_usize..40, 0..6),
            csv: bool,
            escape in "[\"\\\\']",
        ) {
            let data = data.as_bytes();
            let scanner = if csv { LineScanner::csv(b'"', escape.as_bytes()[0]) } else { LineScanner::text() };
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(data.len())).collect();
            cuts.extend([0, data.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &data[cut[0]..cut[1]]).collect();
            let (found, rest, flag) = rows(scanner.clone(), &[data]);
            let (found_in_pieces, rest_of_pieces, flag_of_pieces) = rows(scanner, &pieces);
            prop_assert_eq!(&found, &found_in_pieces);
            prop_assert_eq!(flag, flag_of_pieces);
            // After a stop, what has not come yet is no longer taken in.
            prop_assert!(rest.starts_with(&rest_of_pieces));
        }

        /// Dropping the front of a row that is too long to keep does not move the row's end.
        #[test]
        fn fronts_may_go(start in "[a\"\\\\,]{1,20}", end in "[a\"\\\\\n]{0,20}", csv: bool) {
            let mut scanner = if csv { LineScanner::csv(b'"', b'"') } else { LineScanner::text() };
            let mut whole = scanner.clone();
            if scanner.scan(start.as_bytes()) == Scan::Incomplete {
                let looked_at = scanner.looked_at();
                scanner.drop_front(looked_at);
                let rest = [&start.as_bytes()[looked_at..], end.as_bytes()].concat();
                let all = [start.as_bytes(), end.as_bytes()].concat();
                let expected = match whole.scan(&all) {
                    Scan::Row { len, line_end } => Scan::Row { len: len - looked_at, line_end },
                    other => other,
                };
                prop_assert_eq!(scanner.scan(&rest), expected);
            }
        }
    }
}
