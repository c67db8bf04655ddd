//! Which literals may spell a value that looks like a reference.
//!
//! Such a value is offloaded whatever its length, so that it can never be read
//! back as anything else. The tests here see the source text alone and err on
//! the side of `true`: the caller decodes the value and decides.

use crate::plan::LiteralKind;
use crate::tables::Kind;

/// Source bytes within which an escape can hide a prefix.
const WINDOW: usize = 64;

/// Whether the literal may be reserved for a column of some kind.
pub(crate) fn may_begin(body: &[u8], literal: LiteralKind) -> bool {
    Kind::ALL
        .into_iter()
        .any(|kind| may_begin_kind(body, literal, kind))
}

/// Whether the literal may be reserved for a column of this kind.
pub(crate) fn may_begin_kind(body: &[u8], literal: LiteralKind, kind: Kind) -> bool {
    let window = &body[..body.len().min(WINDOW)];
    if literal == LiteralKind::Escape && window.contains(&b'\\') {
        return true;
    }
    match kind {
        Kind::Text | Kind::Varchar => body.starts_with(b"toast:"),
        Kind::Json => body.starts_with(b"\"toast:"),
        // Canonical text drops white space and decodes escapes: any string scalar.
        Kind::Jsonb => body.trim_ascii_start().starts_with(b"\""),
        Kind::Bytea => bytea_may_begin(body),
    }
}

/// The magic begins with F7, which no UTF-8 text holds unescaped.
fn bytea_may_begin(body: &[u8]) -> bool {
    match body.strip_prefix(b"\\x") {
        Some(hex) => matches!(hex.trim_ascii_start(), [b'f' | b'F', b'7', ..]),
        None => body.starts_with(b"\\367"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_seen_in_every_spelling() {
        let plain = |body: &str, kind| may_begin_kind(body.as_bytes(), LiteralKind::Plain, kind);
        assert!(plain("toast:AAAA", Kind::Text));
        assert!(plain("toast:", Kind::Varchar));
        assert!(!plain(" toast:", Kind::Text));
        assert!(!plain("Toast:", Kind::Text));
        assert!(plain("\"toast:x\"", Kind::Json));
        assert!(!plain(" \"toast:x\"", Kind::Json));
        assert!(plain(" \n\"toast:x\"", Kind::Jsonb));
        assert!(plain("\"\\u0074oast:x\"", Kind::Jsonb));
        assert!(!plain("{\"toast:\": 1}", Kind::Jsonb));
        assert!(plain("\\xf7544f4153540d0a00", Kind::Bytea));
        assert!(plain("\\x F7 54", Kind::Bytea));
        assert!(plain("\\367TOAST\\015\\012", Kind::Bytea));
        assert!(!plain("\\xf6", Kind::Bytea));
        let escape = |body: &str, kind| may_begin_kind(body.as_bytes(), LiteralKind::Escape, kind);
        assert!(escape("\\164oast:x", Kind::Text));
        assert!(escape("\\\\xf7544f", Kind::Bytea));
        assert!(!escape("plain", Kind::Text));
    }
}
