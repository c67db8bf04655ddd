//! What can be told of a text without parsing it.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use crate::plan::RowShape;
use crate::scan::{first_word, is_any_of};

/// Whether a prepared statement's result columns can differ between executions, by its first word.
/// What is not certain is `PerPortal`, which costs a Describe for each portal.
pub fn row_shape(text: &[u8]) -> RowShape {
    const FIXED: [&str; 8] = [
        "select", "insert", "update", "delete", "with", "values", "table", "merge",
    ];
    if is_any_of(first_word(text), &FIXED) {
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
