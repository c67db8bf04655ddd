//! The text of bytea values, as `byteain` reads and `byteaout` prints it.

use faster_hex::{hex_decode, hex_encode};

/// Why a text was not decoded. It does not follow that Postgres refuses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotBytea {
    /// Something else than pairs of hexadecimal digits behind `\x`.
    #[error("not pairs of hexadecimal digits")]
    NotHex,
    /// A backslash that begins neither `\\` nor `\ooo`.
    #[error("invalid escape at byte {offset}")]
    Escape {
        /// Bytes from the start of the text.
        offset: usize,
    },
    /// A byte outside ASCII, whose meaning depends on the client's encoding, or
    /// a NUL.
    #[error("byte outside ascii at byte {offset}")]
    NotAscii {
        /// Bytes from the start of the text.
        offset: usize,
    },
}

/// Decodes bytea input text: hex format (`\x..`) or escape format.
///
/// # Errors
/// [`NotBytea`] for what Postgres refuses, and for raw bytes outside ASCII in
/// escape format.
pub fn decode(text: &[u8]) -> Result<Vec<u8>, NotBytea> {
    match text.strip_prefix(b"\\x") {
        Some(digits) => decode_hex(digits),
        None => decode_escape(text),
    }
}

fn decode_hex(digits: &[u8]) -> Result<Vec<u8>, NotBytea> {
    let mut out = vec![0; digits.len() / 2];
    if digits.len().is_multiple_of(2) && hex_decode(digits, &mut out).is_ok() {
        return Ok(out);
    }
    // Postgres allows whitespace between pairs, not within one.
    out.clear();
    let mut rest = digits;
    while let Some((&first, behind)) = rest.split_first() {
        if matches!(first, b' ' | b'\n' | b'\t' | b'\r') {
            rest = behind;
            continue;
        }
        let (&second, behind) = behind.split_first().ok_or(NotBytea::NotHex)?;
        let digit = |b: u8| char::from(b).to_digit(16).ok_or(NotBytea::NotHex);
        out.push((digit(first)? << 4 | digit(second)?) as u8);
        rest = behind;
    }
    Ok(out)
}

fn decode_escape(text: &[u8]) -> Result<Vec<u8>, NotBytea> {
    if let Some(offset) = text.iter().position(|b| *b == 0 || !b.is_ascii()) {
        return Err(NotBytea::NotAscii { offset });
    }
    let mut out = Vec::with_capacity(text.len());
    let mut pos = 0;
    while let Some(at) = memchr::memchr(b'\\', &text[pos..]) {
        out.extend_from_slice(&text[pos..pos + at]);
        pos += at;
        match &text[pos + 1..] {
            [b'\\', ..] => {
                out.push(b'\\');
                pos += 2;
            }
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                pos += 4;
            }
            _ => return Err(NotBytea::Escape { offset: pos }),
        }
    }
    out.extend_from_slice(&text[pos..]);
    Ok(out)
}

/// Bytes of the hex format of a value of `len` bytes, `\x` included.
pub fn hex_len(len: usize) -> usize {
    2 + 2 * len
}

/// Bytes of the escape format of `value`.
pub fn escape_len(value: &[u8]) -> usize {
    value
        .iter()
        .map(|&byte| match byte {
            b'\\' => 2,
            0x20..=0x7e => 1,
            _ => 4,
        })
        .sum()
}

/// Appends `value` as `bytea_output = hex` prints it.
pub fn write_hex(value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"\\x");
    let start = out.len();
    out.resize(start + 2 * value.len(), 0);
    hex_encode(value, &mut out[start..]).expect("the destination holds two digits a byte");
}

/// Appends `value` as `bytea_output = escape` prints it.
pub fn write_escape(value: &[u8], out: &mut Vec<u8>) {
    out.reserve(value.len());
    for &byte in value {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x20..=0x7e => out.push(byte),
            _ => out.extend_from_slice(&[
                b'\\',
                b'0' + (byte >> 6),
                b'0' + (byte >> 3 & 7),
                b'0' + (byte & 7),
            ]),
        }
    }
}

/// As [`write_hex`], into a new buffer.
pub fn encode_hex(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(hex_len(value.len()));
    write_hex(value, &mut out);
    out
}

/// As [`write_escape`], into a new buffer.
pub fn encode_escape(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(escape_len(value));
    write_escape(value, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rules of `byteain`, one case each.
    #[test]
    fn decodes_by_the_rules_of_byteain() {
        let ok: &[(&[u8], &[u8])] = &[
            (b"", b""),
            (b"\\x", b""),
            (b"\\x00ffAb", b"\x00\xff\xab"),
            (b"\\x 00 \n\tff\r ", b"\x00\xff"),
            (b"abc", b"abc"),
            (b"a\\\\b\\000\\377", b"a\\b\x00\xff"),
        ];
        for (text, value) in ok {
            assert_eq!(decode(text).as_deref(), Ok(*value), "{text:?}");
        }
        let refused: &[(&[u8], NotBytea)] = &[
            (b"\\x0", NotBytea::NotHex),
            (b"\\x0 0", NotBytea::NotHex),
            (b"\\xzz", NotBytea::NotHex),
            (b"\\x00\x0b00", NotBytea::NotHex),
            (b"\\X00", NotBytea::Escape { offset: 0 }),
            (b"a\\400", NotBytea::Escape { offset: 1 }),
            (b"a\\", NotBytea::Escape { offset: 1 }),
            (b"\xc3\xa9", NotBytea::NotAscii { offset: 0 }),
            (b"a\0", NotBytea::NotAscii { offset: 1 }),
        ];
        for (text, error) in refused {
            assert_eq!(decode(text), Err(*error), "{text:?}");
        }
    }

    proptest! {
        /// Both formats give the value back, and the lengths are told right.
        #[test]
        fn round_trips(value: Vec<u8>) {
            let hex = encode_hex(&value);
            let escape = encode_escape(&value);
            prop_assert_eq!(hex.len(), hex_len(value.len()));
            prop_assert_eq!(escape.len(), escape_len(&value));
            prop_assert_eq!(decode(&hex), Ok(value.clone()));
            prop_assert_eq!(decode(&escape), Ok(value));
        }

        /// No text panics.
        #[test]
        fn never_panics(text in "(\\\\x)?[\\\\0-9a-fx \n\u{e9}]{0,20}") {
            let _ = decode(text.as_bytes());
        }
    }
}
