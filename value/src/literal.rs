//! String literals in SQL text: decode, quote, and find the long ones.
//!
//! Owns:       nothing; functions over the text of a query.
//! Promises:   tokens are those of PostgreSQL's scan.l with
//!             `standard_conforming_strings` on, in any encoding in which ASCII
//!             bytes are always ASCII characters.
//! Fails:      what is doubtful is not decoded; where the text stops being certain
//!             the scanner stops.
//! Proof:      tests/oracle

mod decode;
mod scan;

pub use decode::{NotDecoded, decode_literal};
pub use scan::{LiteralKind, LiteralToken, LongLiterals, long_literals};

/// Writes `value` as a literal, as Postgres' `quote_literal` does: quotes doubled,
/// and an `E` string when it holds a backslash, so that the result does not depend
/// on `standard_conforming_strings`.
pub fn quote_literal(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len() + 3);
    if value.contains(&b'\\') {
        out.push(b'E');
    }
    out.push(b'\'');
    for &byte in value {
        if matches!(byte, b'\'' | b'\\') {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The three shapes of `quote_literal`.
    #[test]
    fn quotes() {
        assert_eq!(quote_literal(b"toast:Ab_-"), b"'toast:Ab_-'");
        assert_eq!(quote_literal(b"it's"), b"'it''s'");
        assert_eq!(quote_literal(b"\\xf7"), b"E'\\\\xf7'");
    }

    proptest! {
        /// What is quoted is one literal and decodes to what it was.
        #[test]
        fn quoting_round_trips(value in "[^\0]{0,20}") {
            let quoted = quote_literal(value.as_bytes());
            let tokens: Vec<_> = long_literals(&quoted, 0, &[]).collect();
            prop_assert_eq!(tokens.len(), 1);
            prop_assert_eq!(tokens[0].range.clone(), 0..quoted.len());
            let decoded = decode_literal(&quoted);
            prop_assert_eq!(decoded.as_deref(), Ok(value.as_bytes()));
        }
    }
}
