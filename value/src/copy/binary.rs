//! COPY in binary format.
//!
//! Source: <https://www.postgresql.org/docs/15/sql-copy.html>, "Binary Format".

use super::Scan;

/// Tells the rows of a binary copy apart; to be used like
/// [`LineScanner`](super::LineScanner).
#[derive(Debug, Clone)]
pub struct BinaryScanner {
    state: State,
    /// Bytes of the row that were looked at; may be ahead of what has come.
    pos: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The header is yet to come.
    Header,
    /// In the header, whose length is known.
    InHeader,
    /// Before the number of fields.
    Count,
    /// In a row of which so many fields are left.
    Fields(u16),
}

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// Signature, flags, and the length of the extension.
const HEADER_LEN: usize = SIGNATURE.len() + 4 + 4;
/// A reader that does not know one of these must give up; the first says that rows have OIDs.
const CRITICAL_FLAGS: u32 = 0xffff_0000;

impl Default for BinaryScanner {
    fn default() -> BinaryScanner {
        BinaryScanner {
            state: State::Header,
            pos: 0,
        }
    }
}

impl BinaryScanner {
    /// `data` begins where the current row does.
    pub fn scan(&mut self, data: &[u8]) -> Scan {
        loop {
            match self.state {
                State::Header => {
                    let Some(header) = data.first_chunk::<HEADER_LEN>() else {
                        return Scan::Incomplete;
                    };
                    let Some(extension) = extension_len(header) else {
                        return Scan::Stop;
                    };
                    self.pos = HEADER_LEN + extension;
                    self.state = State::InHeader;
                }
                State::InHeader => {
                    if data.len() < self.pos {
                        return Scan::Incomplete;
                    }
                    let len = self.next_row();
                    return Scan::Preamble { len };
                }
                State::Count => {
                    let Some(count) = data.first_chunk() else {
                        return Scan::Incomplete;
                    };
                    let Ok(count) = u16::try_from(i16::from_be_bytes(*count)) else {
                        return Scan::Stop;
                    };
                    self.pos = 2;
                    self.state = State::Fields(count);
                }
                State::Fields(0) => {
                    if data.len() < self.pos {
                        return Scan::Incomplete;
                    }
                    let len = self.next_row();
                    return Scan::Row { len, line_end: 0 };
                }
                State::Fields(left) => {
                    let rest = data.get(self.pos..).unwrap_or_default();
                    let Some(len) = rest.first_chunk() else {
                        return Scan::Incomplete;
                    };
                    match i32::from_be_bytes(*len) {
                        -1 => self.pos += 4,
                        len => match usize::try_from(len) {
                            Ok(len) => self.pos += 4 + len,
                            Err(_) => return Scan::Stop,
                        },
                    }
                    self.state = State::Fields(left - 1);
                }
            }
        }
    }

    /// The first `len` bytes of an incomplete row are no longer part of `data`; at most
    /// [`BinaryScanner::looked_at`].
    pub fn drop_front(&mut self, len: usize) {
        self.pos = self.pos.saturating_sub(len);
    }

    /// How far an incomplete row was looked at; may be more than has come.
    pub fn looked_at(&self) -> usize {
        self.pos
    }

    fn next_row(&mut self) -> usize {
        self.state = State::Count;
        std::mem::take(&mut self.pos)
    }
}

/// The length of the header's extension; `None` where the server refuses the header.
fn extension_len(header: &[u8; HEADER_LEN]) -> Option<usize> {
    let (flags, len) = header.strip_prefix(SIGNATURE)?.split_first_chunk()?;
    if u32::from_be_bytes(*flags) & CRITICAL_FLAGS != 0 {
        return None;
    }
    usize::try_from(i32::from_be_bytes(*len.first_chunk()?)).ok()
}

/// The fields of a row. Ends early where the row is not laid out as one.
pub fn split_binary(row: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let (count, mut rest) = match row.split_first_chunk() {
        Some((count, rest)) => (i16::from_be_bytes(*count).max(0), rest),
        None => (0, row),
    };
    (0..count).map_while(move |_| {
        let (len, after) = rest.split_first_chunk()?;
        let Ok(len) = usize::try_from(i32::from_be_bytes(*len)) else {
            rest = after;
            return Some(None);
        };
        let (field, after) = after.split_at_checked(len)?;
        rest = after;
        Some(Some(field))
    })
}

/// Appends a field. It must be shorter than 2 GiB.
pub fn write_binary(field: Option<&[u8]>, out: &mut Vec<u8>) {
    let len = field.map_or(-1, |field| i32::try_from(field.len()).unwrap_or(i32::MAX));
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(field.unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(flags: u32, extension: &[u8]) -> Vec<u8> {
        let len = extension.len() as u32;
        [
            SIGNATURE,
            &flags.to_be_bytes(),
            &len.to_be_bytes(),
            extension,
        ]
        .concat()
    }

    fn row(fields: &[Option<&[u8]>]) -> Vec<u8> {
        let mut row = (fields.len() as i16).to_be_bytes().to_vec();
        for field in fields {
            write_binary(*field, &mut row);
        }
        row
    }

    /// Header with an extension, rows, trailer; cut at every offset.
    #[test]
    fn cuts_rows_at_every_offset() {
        let preamble = header(1, b"ext");
        let rows = [
            row(&[Some(b"a"), None, Some(b"")]),
            row(&[]),
            row(&[Some(&[0xff; 9])]),
        ];
        let trailer = [0xff, 0xff, b'x'];
        let stream = [&preamble[..], &rows.concat(), &trailer].concat();
        for cut in 0..=stream.len() {
            let mut scanner = BinaryScanner::default();
            let (mut data, mut found, mut stopped) = (Vec::new(), Vec::new(), false);
            for piece in [&stream[..cut], &stream[cut..]] {
                data.extend_from_slice(piece);
                loop {
                    match scanner.scan(&data) {
                        Scan::Row { len, .. } | Scan::Preamble { len } => {
                            found.push(data.drain(..len).collect::<Vec<u8>>());
                        }
                        Scan::Incomplete => break,
                        Scan::Stop => {
                            stopped = true;
                            break;
                        }
                    }
                }
            }
            assert!(stopped);
            assert_eq!(found[0], preamble);
            assert_eq!(found[1..], rows);
            assert!(trailer.starts_with(&data) || data == trailer);
        }
        let fields: Vec<_> = split_binary(&rows[0]).collect();
        assert_eq!(fields, [Some(&b"a"[..]), None, Some(b"")]);
    }

    /// What the server refuses stops the scan.
    #[test]
    fn stops_where_the_server_does() {
        for data in [
            &b"PGCOPY\n\xff\r\n\x01\0\0\0\0\0\0\0\0"[..],
            &header(1 << 16, b""),
            &[SIGNATURE, &[0; 4], &[0xff; 4]].concat(),
        ] {
            assert_eq!(BinaryScanner::default().scan(data), Scan::Stop);
        }
        let mut scanner = BinaryScanner::default();
        assert_eq!(scanner.scan(&header(0, b"")), Scan::Preamble { len: 19 });
        assert_eq!(
            scanner.clone().scan(&[0, 1, 0xff, 0xff, 0xff, 0xfe]),
            Scan::Stop
        );
        assert_eq!(scanner.scan(&[0x80, 0]), Scan::Stop);
    }

    proptest! {
        /// No stream panics, and a row is never longer than what has come.
        #[test]
        fn never_panics(data: Vec<u8>) {
            let mut scanner = BinaryScanner { state: State::Count, pos: 0 };
            if let Scan::Row { len, .. } = scanner.scan(&data) {
                prop_assert!(len <= data.len());
                prop_assert!(split_binary(&data[..len]).count() <= len);
            }
        }
    }
}
