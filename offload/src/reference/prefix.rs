//! Which client values must be offloaded because they look like references.

use super::{BINARY_MAGIC, TEXT_PREFIX};
use crate::kind::ValueKind;

/// Whether a client's value begins as a reference of its kind does. Such a value is always
/// offloaded, whatever its length, so that it can never be read back as anything else (S5).
///
/// `value` is text for text, varchar, json and jsonb, raw bytes for bytea. In JSON, white space may
/// stand before the string. jsonb rewrites `\u` escapes, so there the prefix may be spelled with
/// them; json keeps them and then does not begin like a reference.
pub fn begins_like_reference(kind: ValueKind, value: &[u8]) -> bool {
    match kind {
        ValueKind::Text | ValueKind::Varchar => value.starts_with(TEXT_PREFIX),
        ValueKind::Bytea => value.starts_with(BINARY_MAGIC),
        ValueKind::Json => {
            in_json_string(value).is_some_and(|string| string.starts_with(TEXT_PREFIX))
        }
        ValueKind::Jsonb => in_json_string(value).is_some_and(begins_escaped),
    }
}

/// What follows the opening quote, when the value is a JSON string.
fn in_json_string(value: &[u8]) -> Option<&[u8]> {
    let start = value
        .iter()
        .position(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))?;
    value[start..].strip_prefix(b"\"")
}

fn begins_escaped(mut string: &[u8]) -> bool {
    for expected in TEXT_PREFIX {
        let Some(rest) = strip_char(string, *expected) else {
            return false;
        };
        string = rest;
    }
    true
}

/// Takes one ASCII character off a JSON string, written as itself or as `\u00XX`.
fn strip_char(string: &[u8], expected: u8) -> Option<&[u8]> {
    if let Some(rest) = string.strip_prefix(&[expected]) {
        return Some(rest);
    }
    let digits = string.strip_prefix(b"\\u")?.get(..4)?;
    let code = std::str::from_utf8(digits).ok()?;
    // `from_str_radix` takes a sign, JSON does not.
    if code.starts_with('+') || u16::from_str_radix(code, 16).ok()? != u16::from(expected) {
        return None;
    }
    string.get(6..)
}
