//! Checks a JSON text without changing it.

use super::{MAX_JSON_DEPTH, scan};

/// `Some` when `input` (valid UTF-8) is strict JSON within the limits.
pub(super) fn check(input: &[u8]) -> Option<()> {
    let mut open_objects: Vec<bool> = Vec::new();
    let mut pos = scan::skip_whitespace(input, 0);
    loop {
        pos = match input.get(pos)? {
            b'"' => string_end(input, pos)?,
            b'-' | b'0'..=b'9' => scan::number_end(input, pos)?.0,
            bracket @ (b'{' | b'[') => {
                let is_object = *bracket == b'{';
                if open_objects.len() >= MAX_JSON_DEPTH {
                    return None;
                }
                let first = scan::skip_whitespace(input, pos + 1);
                if input.get(first)? == if is_object { &b'}' } else { &b']' } {
                    first + 1
                } else {
                    open_objects.push(is_object);
                    pos = if is_object {
                        key_end(input, first)?
                    } else {
                        first
                    };
                    continue;
                }
            }
            _ => scan::word_end(input, pos)?,
        };
        loop {
            pos = scan::skip_whitespace(input, pos);
            let Some(&is_object) = open_objects.last() else {
                return (pos == input.len()).then_some(());
            };
            match input.get(pos)? {
                b',' => {
                    pos = scan::skip_whitespace(input, pos + 1);
                    if is_object {
                        pos = key_end(input, pos)?;
                    }
                    break;
                }
                b'}' if is_object => {}
                b']' if !is_object => {}
                _ => return None,
            }
            open_objects.pop();
            pos += 1;
        }
    }
}

/// Where the value behind `"key":` begins.
fn key_end(input: &[u8], pos: usize) -> Option<usize> {
    if input.get(pos)? != &b'"' {
        return None;
    }
    let colon = scan::skip_whitespace(input, string_end(input, pos)?);
    (input.get(colon)? == &b':').then(|| scan::skip_whitespace(input, colon + 1))
}

/// Where the string ends whose opening quote is at `pos`.
fn string_end(input: &[u8], pos: usize) -> Option<usize> {
    let mut pos = pos + 1;
    loop {
        pos = scan::plain_run_end(input, pos);
        match input.get(pos)? {
            b'"' => return Some(pos + 1),
            b'\\' => {}
            _ => return None,
        }
        pos += match input.get(pos + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' => {
                scan::hex4(input, pos + 2)?;
                6
            }
            _ => return None,
        };
    }
}
