//! UTF-8 validity and character counts.

use memchr::memchr;

/// Counts the characters of a text value.
///
/// `None` when `input` is not valid UTF-8, holds a NUL (Postgres refuses both
/// with 22021) or has 2^32 characters or more.
pub fn utf8_chars(input: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(input).ok()?;
    if memchr(0, input).is_some() {
        return None;
    }
    u32::try_from(text.chars().count()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters are counted, not bytes; what Postgres refuses gives `None`.
    #[test]
    fn counts_characters() {
        assert_eq!(utf8_chars(b""), Some(0));
        assert_eq!(utf8_chars(b"abc"), Some(3));
        assert_eq!(utf8_chars("a\u{e9}\u{20ac}\u{1f600}".as_bytes()), Some(4));
        assert_eq!(utf8_chars(b"a\0b"), None);
        assert_eq!(utf8_chars(b"\xc3"), None);
        assert_eq!(utf8_chars(b"\xc0\x80"), None);
        assert_eq!(utf8_chars(b"\xed\xa0\x80"), None);
        assert_eq!(utf8_chars(b"\xf4\x90\x80\x80"), None);
    }
}
