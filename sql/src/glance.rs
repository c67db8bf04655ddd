//! What can be told of a text without parsing it.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use crate::plan::RowShape;

/// Whether a prepared statement's result columns can differ between executions, by its first word.
/// What is not certain is `PerPortal`, which costs a Describe for each portal.
pub fn row_shape(text: &[u8]) -> RowShape {
    let start = skip_blank(text);
    let is_word_byte = |byte: &&u8| byte.is_ascii_alphabetic();
    let word = &start[..start.iter().take_while(is_word_byte).count()];
    const FIXED: [&[u8]; 8] = [
        b"select", b"insert", b"update", b"delete", b"with", b"values", b"table", b"merge",
    ];
    if FIXED.iter().any(|fixed| fixed.eq_ignore_ascii_case(word)) {
        RowShape::Fixed
    } else {
        RowShape::PerPortal
    }
}

/// Whether running the text may change what the names of prepared statements mean: it says
/// DEALLOCATE or DISCARD, somewhere. `true` proves nothing.
pub fn changes_names(text: &[u8]) -> bool {
    static WORDS: LazyLock<AhoCorasick> = LazyLock::new(|| {
        AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(["deallocate", "discard"])
            .expect("two short patterns build")
    });
    WORDS.is_match(text)
}

/// The text behind blanks, comments and opening parentheses.
fn skip_blank(mut text: &[u8]) -> &[u8] {
    loop {
        text = match text {
            [
                b' ' | b'\t' | b'\n' | b'\r' | b'\x0b' | b'\x0c' | b'(' | b';',
                rest @ ..,
            ] => rest,
            [b'-', b'-', rest @ ..] => {
                let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                &rest[end.unwrap_or(rest.len())..]
            }
            [b'/', b'*', rest @ ..] => skip_comment(rest),
            _ => return text,
        }
    }
}

/// The text behind a comment whose start was taken; comments nest.
fn skip_comment(mut text: &[u8]) -> &[u8] {
    let mut depth = 1;
    while depth > 0 {
        text = match text {
            [b'/', b'*', rest @ ..] => {
                depth += 1;
                rest
            }
            [b'*', b'/', rest @ ..] => {
                depth -= 1;
                rest
            }
            [_, rest @ ..] => rest,
            [] => return text,
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First words behind everything that may stand before them.
    #[test]
    fn finds_the_first_word() {
        for (text, expected) in [
            ("select 1", RowShape::Fixed),
            (
                "  -- a comment\n /* and /* another */ */ ((SELECT 1))",
                RowShape::Fixed,
            ),
            ("WITH x AS (SELECT 1) SELECT * FROM x", RowShape::Fixed),
            ("insert into t values (1) returning *", RowShape::Fixed),
            ("fetch all from c", RowShape::PerPortal),
            ("EXECUTE p", RowShape::PerPortal),
            ("explain select 1", RowShape::PerPortal),
            ("selectx", RowShape::PerPortal),
            ("/* open", RowShape::PerPortal),
            ("", RowShape::PerPortal),
        ] {
            assert_eq!(row_shape(text.as_bytes()), expected, "{text}");
        }
    }

    /// The words in any case, anywhere.
    #[test]
    fn notices_words_that_change_names() {
        assert!(changes_names(b"Deallocate all"));
        assert!(changes_names(b"select 1; DISCARD ALL"));
        assert!(!changes_names(b"select disc, card from deal"));
    }
}
