//! Numbers as `numeric_in` reads and `numeric_out` prints them.

/// Longest number that is looked at, in bytes. `numeric` takes 131,072 digits
/// before the point and 16,383 behind it.
pub(super) const MAX_LEN: usize = 4096;

/// Largest exponent that is written out, up or down.
const MAX_EXPONENT: i32 = 1000;

/// Whether `numeric` prints a number without exponent otherwise than written:
/// it knows no negative zero.
pub(super) fn is_negative_zero(token: &[u8]) -> bool {
    token.first() == Some(&b'-') && !token.iter().any(|b| matches!(b, b'1'..=b'9'))
}

/// Appends what `numeric` prints for `token`, a valid JSON number.
///
/// The number of digits behind the point is that of the token less the
/// exponent, at least 0, so no digit is ever rounded away. `None` when the
/// exponent is too large.
pub(super) fn print(token: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (negative, unsigned) = match token.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, token),
    };
    let (mantissa, exponent) = match unsigned.iter().position(|b| matches!(b, b'e' | b'E')) {
        Some(at) => (&unsigned[..at], parse_exponent(&unsigned[at + 1..])?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = match mantissa.iter().position(|&b| b == b'.') {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, &b""[..]),
    };
    let digits = [whole, fraction].concat();
    if negative && digits.iter().any(|&b| b != b'0') {
        out.push(b'-');
    }
    let point = whole.len() as i32 + exponent;
    let scale = (fraction.len() as i32 - exponent).max(0);
    let digit = |at: i32| {
        usize::try_from(at)
            .ok()
            .and_then(|at| digits.get(at).copied())
            .unwrap_or(b'0')
    };
    let before = out.len();
    out.extend((0..point).map(digit).skip_while(|&b| b == b'0'));
    if out.len() == before {
        out.push(b'0');
    }
    if scale > 0 {
        out.push(b'.');
        out.extend((point..point + scale).map(digit));
    }
    Some(())
}

fn parse_exponent(text: &[u8]) -> Option<i32> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let value = digits.iter().try_fold(0i32, |value, &b| {
        let value = value * 10 + i32::from(b - b'0');
        (value <= MAX_EXPONENT).then_some(value)
    })?;
    Some(if negative { -value } else { value })
}
