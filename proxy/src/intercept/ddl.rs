//! Statements that change the schema, told by their words alone. `true` proves nothing.

const WORDS: [&[u8]; 3] = [b"create", b"alter", b"drop"];

/// Whether a text begins with a statement that changes the schema.
pub(crate) fn begins_with_ddl(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    WORDS.iter().any(|word| begins_with(text, word))
}

/// Whether a part of a text holds a word that such a statement begins with.
pub(super) fn mentions_ddl(text: &[u8]) -> bool {
    let starts_word = |at: usize| at == 0 || !text[at - 1].is_ascii_alphanumeric();
    (0..text.len())
        .filter(|at| matches!(text[*at] | 0x20, b'a' | b'c' | b'd') && starts_word(*at))
        .any(|at| WORDS.iter().any(|word| begins_with(&text[at..], word)))
}

fn begins_with(text: &[u8], word: &[u8]) -> bool {
    let ends = |next: Option<&u8>| next.is_none_or(|byte| !byte.is_ascii_alphanumeric());
    text.get(..word.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(word))
        && ends(text.get(word.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole words in any case, at the start and anywhere.
    #[test]
    fn finds_whole_words() {
        assert!(begins_with_ddl(b" \n Create table t()"));
        assert!(begins_with_ddl(b"drop"));
        assert!(!begins_with_ddl(b"insert into t values ('create ')"));
        assert!(!begins_with_ddl(b"creates"));
        assert!(mentions_ddl(b"begin;ALTER table t"));
        assert!(!mentions_ddl(b"select recreate, alternate from droplets"));
        assert!(!mentions_ddl(b""));
    }
}
