//! Applies edits to a text and maps error positions back.

use crate::plan::Edit;

/// Maps positions in an edited text back to the original text.
///
/// Positions are as in the `P` field of an `ErrorResponse`: characters, 1-based.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EditMap {
    spans: Vec<Span>,
}

/// One edit, in characters from the start of each text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    edited_start: usize,
    edited_end: usize,
    original_start: usize,
    original_end: usize,
}

impl EditMap {
    /// The position in the original text that a position in the edited text
    /// stands for. What lies within a replacement maps to the start of what
    /// it replaced. A position beyond the text stays as far beyond it.
    pub fn original_position(&self, position: usize) -> usize {
        let Some(offset) = position.checked_sub(1) else {
            return position;
        };
        let after = self.spans.partition_point(|s| s.edited_start <= offset);
        let Some(span) = after.checked_sub(1).and_then(|i| self.spans.get(i)) else {
            return position;
        };
        if offset < span.edited_end {
            return span.original_start + 1;
        }
        offset - span.edited_end + span.original_end + 1
    }

    /// Whether positions are the same in both texts.
    pub fn is_identity(&self) -> bool {
        self.spans.is_empty()
    }
}

/// Makes the edits and tells how to map positions back.
///
/// `edits` are ascending and disjoint, as every plan lists them; an edit that
/// overlaps the one before it or does not lie on character boundaries of
/// `text` is left out, which is as harmless as never having planned it.
pub fn apply_edits<'e>(text: &str, edits: impl IntoIterator<Item = &'e Edit>) -> (String, EditMap) {
    let mut edited = String::with_capacity(text.len() + 64);
    let mut spans = Vec::new();
    let mut copied = 0;
    let mut edited_chars = 0;
    let mut original_chars = 0;
    for edit in edits {
        let between = text.get(copied..edit.range.start);
        let replaced = text.get(edit.range.clone());
        let (Some(between), Some(replaced)) = (between, replaced) else {
            continue;
        };
        let between_chars = between.chars().count();
        let edited_start = edited_chars + between_chars;
        let original_start = original_chars + between_chars;
        edited_chars = edited_start + edit.replacement.chars().count();
        original_chars = original_start + replaced.chars().count();
        spans.push(Span {
            edited_start,
            edited_end: edited_chars,
            original_start,
            original_end: original_chars,
        });
        edited.push_str(between);
        edited.push_str(&edit.replacement);
        copied = edit.range.end;
    }
    edited.push_str(&text[copied..]);
    (edited, EditMap { spans })
}
