//! The characters that a string literal stands for.

use std::borrow::Cow;

use memchr::{memchr_iter, memchr2, memmem};

/// Why a literal was not decoded. It does not follow that Postgres refuses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotDecoded {
    /// No plain, `E` or dollar-quoted literal, or more than one token.
    #[error("not a plain, escape or dollar-quoted string literal")]
    NotALiteral,
    /// An escape that Postgres refuses, whose meaning depends on version, settings
    /// or encoding (`\'`, `\v`, anything that gives a NUL or a character outside
    /// ASCII), or that is malformed.
    #[error("doubtful escape at byte {offset}")]
    DoubtfulEscape {
        /// Bytes from the start of the token.
        offset: usize,
    },
}

/// Decodes one string literal as it stands in the text: `'..'` (with
/// `standard_conforming_strings` on), `E'..'` or `$tag$..$tag$`.
///
/// The result is in the encoding of the text.
///
/// # Errors
/// [`NotDecoded`] for every other token, for a literal continued on the next line,
/// and for doubtful escapes.
pub fn decode_literal(token: &[u8]) -> Result<Cow<'_, [u8]>, NotDecoded> {
    match token {
        [b'\'', content @ .., b'\''] => decode_plain(content),
        [b'e' | b'E', b'\'', content @ .., b'\''] => decode_escapes(content),
        [b'$', ..] => decode_dollar(token),
        _ => Err(NotDecoded::NotALiteral),
    }
}

fn decode_plain(content: &[u8]) -> Result<Cow<'_, [u8]>, NotDecoded> {
    let mut quotes = memchr_iter(b'\'', content);
    let mut out: Option<Vec<u8>> = None;
    let mut copied = 0;
    while let Some(at) = quotes.next() {
        if quotes.next() != Some(at + 1) {
            return Err(NotDecoded::NotALiteral);
        }
        let out = out.get_or_insert_with(|| Vec::with_capacity(content.len()));
        out.extend_from_slice(&content[copied..=at]);
        copied = at + 2;
    }
    Ok(match out {
        None => Cow::Borrowed(content),
        Some(mut out) => {
            out.extend_from_slice(&content[copied..]);
            Cow::Owned(out)
        }
    })
}

fn decode_escapes(content: &[u8]) -> Result<Cow<'_, [u8]>, NotDecoded> {
    let Some(first) = memchr2(b'\'', b'\\', content) else {
        return Ok(Cow::Borrowed(content));
    };
    let mut out = Vec::with_capacity(content.len());
    out.extend_from_slice(&content[..first]);
    let mut pos = first;
    while pos < content.len() {
        let (byte, next) = escape_at(content, pos)?;
        out.push(byte);
        let end = memchr2(b'\'', b'\\', &content[next..]).map_or(content.len(), |at| next + at);
        out.extend_from_slice(&content[next..end]);
        pos = end;
    }
    Ok(Cow::Owned(out))
}

/// Decodes the character at `pos` of the content of an `E` string; gives its byte
/// and where the next one begins. `pos` is inside `content`.
pub(super) fn escape_at(content: &[u8], pos: usize) -> Result<(u8, usize), NotDecoded> {
    // The token begins with `E'`.
    let doubtful = NotDecoded::DoubtfulEscape { offset: pos + 2 };
    let rest = &content[pos..];
    let (code, len) = match rest {
        [b'\'', b'\'', ..] => (u32::from(b'\''), 2),
        [b'\'', ..] => return Err(NotDecoded::NotALiteral),
        [b'\\', b'0'..=b'7', ..] => digits(&rest[1..], 8, 1..=3, 1).ok_or(doubtful)?,
        [b'\\', b'x', ..] => digits(&rest[2..], 16, 1..=2, 2).ok_or(doubtful)?,
        [b'\\', b'u', ..] => digits(&rest[2..], 16, 4..=4, 2).ok_or(doubtful)?,
        [b'\\', b'U', ..] => digits(&rest[2..], 16, 8..=8, 2).ok_or(doubtful)?,
        [b'\\', escaped, ..] => {
            let byte = match escaped {
                b'b' => 8,
                b'f' => 12,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                // `\'` depends on backslash_quote, `\v` on the version.
                b'\'' | b'v' => return Err(doubtful),
                other => *other,
            };
            return Ok((byte, pos + 2));
        }
        [b'\\'] => return Err(NotDecoded::NotALiteral),
        _ => return Ok((content[pos], pos + 1)),
    };
    match u8::try_from(code) {
        Ok(byte @ 1..=0x7f) => Ok((byte, pos + len)),
        _ => Err(doubtful),
    }
}

/// Reads as many digits as `count` allows; gives the number and `prefix` plus the
/// digits read.
fn digits(
    text: &[u8],
    radix: u32,
    count: std::ops::RangeInclusive<usize>,
    prefix: usize,
) -> Option<(u32, usize)> {
    let mut value = 0u32;
    let mut len = 0;
    while len < *count.end()
        && let Some(digit) = text.get(len).and_then(|b| char::from(*b).to_digit(radix))
    {
        value = value.checked_mul(radix)?.checked_add(digit)?;
        len += 1;
    }
    count.contains(&len).then_some((value, prefix + len))
}

fn decode_dollar(token: &[u8]) -> Result<Cow<'_, [u8]>, NotDecoded> {
    let open = super::scan::dollar_tag_len(token).ok_or(NotDecoded::NotALiteral)?;
    let (tag, behind) = token.split_at(open);
    let close = memmem::find(behind, tag).ok_or(NotDecoded::NotALiteral)?;
    if close + open != behind.len() {
        return Err(NotDecoded::NotALiteral);
    }
    Ok(Cow::Borrowed(&behind[..close]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Literals that Postgres reads in one way only.
    #[test]
    fn decodes() {
        let cases: &[(&[u8], &[u8])] = &[
            (b"''", b""),
            (b"'a''b'", b"a'b"),
            (b"''''", b"'"),
            (b"'a\\nb\nc'", b"a\\nb\nc"),
            (b"'\xe9'", b"\xe9"),
            (b"E''", b""),
            (b"e'it''s'", b"it's"),
            (b"E'\\b\\f\\n\\r\\t\\\\\\q\\\n'", b"\x08\x0c\n\r\t\\q\n"),
            (b"E'\\101\\1011\\7z\\x41g\\x7'", b"AA1\x07zAg\x07"),
            (b"E'\\u0041\\U00000042'", b"AB"),
            (b"E'\xc3\xa9\\\xc3\xa9'", b"\xc3\xa9\xc3\xa9"),
            (b"$$$$", b""),
            (b"$$it's \\$$", b"it's \\"),
            (b"$a_1$x$a$ $$ $a_1$", b"x$a$ $$ "),
            (b"$\xc3\xa9$x$\xc3\xa9$", b"x"),
        ];
        for (token, value) in cases {
            assert_eq!(decode_literal(token).as_deref(), Ok(*value), "{token:?}");
        }
    }

    /// Everything else is left to Postgres.
    #[test]
    fn refuses() {
        let cases: &[&[u8]] = &[
            b"",
            b"'",
            b"a",
            b"'a'b'",
            b"'a'\n'b'",
            b"'a' ",
            b"U&'a'",
            b"N'a'",
            b"B'1'",
            b"X'1f'",
            b"E'",
            b"E'\\'",
            b"E'\\''",
            b"E'a'b'",
            b"E'\\v'",
            b"E'\\0'",
            b"E'\\x00'",
            b"E'\\x'",
            b"E'\\xg'",
            b"E'\\200'",
            b"E'\\501'",
            b"E'\\xe9'",
            b"E'\\u00e9'",
            b"E'\\u004'",
            b"E'\\U0000004'",
            b"E'\\ud83d\\ude00'",
            b"E'\\Uffffffff'",
            b"$",
            b"$$",
            b"$a$",
            b"$1$x$1$",
            b"$a$x$b$",
            b"$a$x$a$y$a$",
            b"$$a$$b",
        ];
        for token in cases {
            assert!(decode_literal(token).is_err(), "{token:?}");
        }
    }

    proptest! {
        /// No token panics.
        #[test]
        fn never_panics(token in "[Ee]?['$\\\\a-fuUx0-9\u{e9}\n]{0,16}'?") {
            let _ = decode_literal(token.as_bytes());
        }
    }
}
