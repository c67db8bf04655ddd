//! Finds the ends of tokens.

/// Skips the four kinds of JSON whitespace from `pos`; returns where it ends.
#[inline]
pub(super) fn skip_whitespace(input: &[u8], mut pos: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = input.get(pos) {
        pos += 1;
    }
    pos
}

/// Where the run of bytes that need no care inside a string ends: at a quote, a
/// backslash, a control byte or the end of the input.
#[inline]
pub(super) fn plain_run_end(input: &[u8], mut pos: usize) -> usize {
    // Most strings are short: two words first, then blocks that the compiler
    // turns into vector instructions.
    for _ in 0..2 {
        match word_at(input, pos) {
            Some(word) => {
                let mask = special_bytes(word);
                if mask != 0 {
                    return pos + first_byte(mask);
                }
                pos += 8;
            }
            None => return plain_run_end_bytewise(input, pos),
        }
    }
    while let Some(block) = input.get(pos..).and_then(|rest| rest.first_chunk::<32>()) {
        let special = block.iter().fold(false, |any, &b| {
            any | (b < 0x20) | (b == b'"') | (b == b'\\')
        });
        if special {
            break;
        }
        pos += 32;
    }
    while let Some(word) = word_at(input, pos) {
        let mask = special_bytes(word);
        if mask != 0 {
            return pos + first_byte(mask);
        }
        pos += 8;
    }
    plain_run_end_bytewise(input, pos)
}

fn plain_run_end_bytewise(input: &[u8], mut pos: usize) -> usize {
    while let Some(&b) = input.get(pos) {
        if b < 0x20 || b == b'"' || b == b'\\' {
            break;
        }
        pos += 1;
    }
    pos
}

#[inline]
fn word_at(input: &[u8], pos: usize) -> Option<u64> {
    input
        .get(pos..)?
        .first_chunk::<8>()
        .map(|bytes| u64::from_le_bytes(*bytes))
}

/// High bit set in the byte of each quote, backslash or control byte.
///
/// A borrow may set bits above a byte that is set rightly, never below one, so
/// that the lowest set bit is exact.
#[inline]
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (control | (quote.wrapping_sub(ONES) & !quote) | (backslash.wrapping_sub(ONES) & !backslash))
        & HIGH
}

#[inline]
fn first_byte(mask: u64) -> usize {
    (mask.trailing_zeros() / 8) as usize
}

/// The value of four hexadecimal digits at `pos`.
pub(super) fn hex4(input: &[u8], pos: usize) -> Option<u32> {
    let digits = input.get(pos..)?.first_chunk::<4>()?;
    digits.iter().try_fold(0, |value, &digit| {
        Some(value << 4 | char::from(digit).to_digit(16)?)
    })
}

/// Decodes the `\uXXXX` at `pos` (its backslash), with its second half when it is
/// a surrogate pair. Returns the character and where the escape ends; `None` for
/// what jsonb refuses.
pub(super) fn unicode_escape(input: &[u8], pos: usize) -> Option<(char, usize)> {
    let first = hex4(input, pos + 2)?;
    if first == 0 {
        return None;
    }
    if let Some(c) = char::from_u32(first) {
        return Some((c, pos + 6));
    }
    // `char` excludes exactly the surrogates.
    if first >= 0xdc00 || input.get(pos + 6..pos + 8)? != b"\\u" {
        return None;
    }
    let second = hex4(input, pos + 8)?;
    if !(0xdc00..0xe000).contains(&second) {
        return None;
    }
    let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    Some((char::from_u32(code)?, pos + 12))
}

/// Where a number ends that begins at `start`, and whether it has an exponent.
pub(super) fn number_end(input: &[u8], start: usize) -> Option<(usize, bool)> {
    let mut pos = start;
    if input.get(pos) == Some(&b'-') {
        pos += 1;
    }
    pos = match input.get(pos)? {
        b'0' => pos + 1,
        b'1'..=b'9' => skip_digits(input, pos + 1),
        _ => return None,
    };
    if input.get(pos) == Some(&b'.') {
        pos = some_digits(input, pos + 1)?;
    }
    if !matches!(input.get(pos), Some(b'e' | b'E')) {
        return Some((pos, false));
    }
    pos += 1;
    if matches!(input.get(pos), Some(b'+' | b'-')) {
        pos += 1;
    }
    Some((some_digits(input, pos)?, true))
}

#[inline]
fn skip_digits(input: &[u8], mut pos: usize) -> usize {
    while matches!(input.get(pos), Some(b'0'..=b'9')) {
        pos += 1;
    }
    pos
}

fn some_digits(input: &[u8], pos: usize) -> Option<usize> {
    let end = skip_digits(input, pos);
    (end > pos).then_some(end)
}

/// Where `true`, `false` or `null` at `pos` ends. What follows is for the caller
/// to check: only whitespace, a comma or a closing bracket may.
#[inline]
pub(super) fn word_end(input: &[u8], pos: usize) -> Option<usize> {
    let rest = input.get(pos..)?;
    [&b"true"[..], b"false", b"null"]
        .into_iter()
        .find(|word| rest.starts_with(word))
        .map(|word| pos + word.len())
}
