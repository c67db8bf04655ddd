//! Walks a query text once and yields its long string literals.
//!
//! A lexer for everything that can hide or hold a quote: comments, identifiers,
//! quoted identifiers, parameters, and all kinds of string literals. The rest is
//! stepped over byte by byte.

use std::ops::Range;

use memchr::{memchr, memchr2, memmem};

use super::decode::escape_at;

/// How a literal is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LiteralKind {
    /// `'..'`
    Plain,
    /// `E'..'`
    Escape,
    /// `$tag$..$tag$`
    Dollar,
    /// `U&'..'`, `N'..'`, `B'..'`, `X'..'`, or a literal that goes on behind a line
    /// break (`'a' \n 'b'`): never decoded here.
    Other,
}

/// A string literal in a query text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiteralToken {
    /// Bytes of the text, from its prefix to its last quote.
    pub range: Range<usize>,
    /// How it is written.
    pub kind: LiteralKind,
}

/// Yields the string literals of `query`, in order, whose source is at least
/// `min_len` bytes long or whose content, with or without leading whitespace,
/// begins with one of `prefixes`.
///
/// Prefixes are compared with SQL escapes undone, not JSON's: `'"\u0074oast:..'` does
/// not begin with `"toast:`. To see every JSON string pass the prefix `"`.
///
/// Ends early, after a correct list of tokens, where the text is not lexically
/// complete (a quote, comment or dollar quote left open) or versions of Postgres
/// differ (`1e'..'`).
pub fn long_literals<'a>(
    query: &'a [u8],
    min_len: usize,
    prefixes: &'a [&'a [u8]],
) -> LongLiterals<'a> {
    LongLiterals {
        query,
        pos: 0,
        min_len,
        prefixes,
    }
}

/// See [`long_literals`].
#[derive(Debug, Clone)]
pub struct LongLiterals<'a> {
    query: &'a [u8],
    pos: usize,
    min_len: usize,
    prefixes: &'a [&'a [u8]],
}

impl Iterator for LongLiterals<'_> {
    type Item = LiteralToken;

    fn next(&mut self) -> Option<LiteralToken> {
        loop {
            match next_literal(self.query, self.pos) {
                Some(token) => {
                    self.pos = token.range.end;
                    if self.is_wanted(&token) {
                        return Some(token);
                    }
                }
                None => {
                    self.pos = self.query.len();
                    return None;
                }
            }
        }
    }
}

impl LongLiterals<'_> {
    fn is_wanted(&self, token: &LiteralToken) -> bool {
        let source = &self.query[token.range.clone()];
        source.len() >= self.min_len
            || self
                .prefixes
                .iter()
                .any(|prefix| content_begins_with(source, token.kind, prefix))
    }
}

/// Whether the content of a literal begins with `prefix` or with whitespace and
/// `prefix`.
fn content_begins_with(source: &[u8], kind: LiteralKind, prefix: &[u8]) -> bool {
    let open = match kind {
        LiteralKind::Dollar => dollar_tag_len(source),
        _ => memchr(b'\'', source).map(|at| at + 1),
    };
    let content = open.and_then(|open| source.get(open..)).unwrap_or_default();
    let is_escape = kind == LiteralKind::Escape
        || (kind == LiteralKind::Other && matches!(source.first(), Some(b'e' | b'E')));
    let mut pos = 0;
    let mut characters = std::iter::from_fn(|| {
        let byte = *content.get(pos)?;
        let (byte, next) = match byte {
            b'\\' | b'\'' if is_escape => escape_at(content, pos).ok()?,
            b'\'' if kind != LiteralKind::Dollar => (byte, pos + 2),
            _ => (byte, pos + 1),
        };
        pos = next;
        Some(byte)
    });
    let mut first = characters.next();
    if first.is_some_and(|byte| byte.is_ascii_whitespace()) && prefix.first() != first.as_ref() {
        first = characters.find(|byte| !byte.is_ascii_whitespace());
    }
    first
        .into_iter()
        .chain(characters)
        .take(prefix.len())
        .eq(prefix.iter().copied())
}

/// The first literal at or behind `pos`, which is no place inside a token.
fn next_literal(text: &[u8], mut pos: usize) -> Option<LiteralToken> {
    loop {
        let byte = *text.get(pos)?;
        pos = match class(byte) {
            Class::Plain => pos + 1,
            Class::Quote => return quoted(text, pos, pos, LiteralKind::Plain),
            Class::DoubleQuote => doubled_quote_end(text, pos + 1, b'"')?,
            Class::Word => {
                if let Some((quote, kind)) = prefixed_quote(text, pos) {
                    return quoted(text, pos, quote, kind);
                }
                word_end(text, pos + 1)
            }
            Class::Digit => number_end(text, pos)?,
            Class::Dollar => match dollar_tag_len(&text[pos..]) {
                Some(len) => {
                    let (tag, behind) = text[pos..].split_at(len);
                    let close = memmem::find(behind, tag)?;
                    return Some(LiteralToken {
                        range: pos..pos + len + close + len,
                        kind: LiteralKind::Dollar,
                    });
                }
                None => pos + 1,
            },
            Class::Dash if text.get(pos + 1) == Some(&b'-') => line_end(text, pos + 2),
            Class::Slash if text.get(pos + 1) == Some(&b'*') => comment_end(text, pos + 2)?,
            Class::Dash | Class::Slash => pos + 1,
        };
    }
}

#[derive(Clone, Copy)]
enum Class {
    Plain,
    Quote,
    DoubleQuote,
    Word,
    Digit,
    Dollar,
    Dash,
    Slash,
}

#[inline]
fn class(byte: u8) -> Class {
    match byte {
        b'\'' => Class::Quote,
        b'"' => Class::DoubleQuote,
        b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => Class::Word,
        b'0'..=b'9' => Class::Digit,
        b'$' => Class::Dollar,
        b'-' => Class::Dash,
        b'/' => Class::Slash,
        _ => Class::Plain,
    }
}

/// Where the quote is and how the literal is written, when the word at `pos` is the
/// prefix of one.
fn prefixed_quote(text: &[u8], pos: usize) -> Option<(usize, LiteralKind)> {
    let rest = &text[pos..];
    match rest {
        [b'e' | b'E', b'\'', ..] => Some((pos + 1, LiteralKind::Escape)),
        [b'n' | b'N' | b'b' | b'B' | b'x' | b'X', b'\'', ..] => Some((pos + 1, LiteralKind::Other)),
        [b'u' | b'U', b'&', b'\'', ..] => Some((pos + 2, LiteralKind::Other)),
        _ => None,
    }
}

/// Reads the literal whose first byte is at `start` and whose quote is at `quote`,
/// and what continues it behind a line break.
fn quoted(text: &[u8], start: usize, quote: usize, mut kind: LiteralKind) -> Option<LiteralToken> {
    let is_escape = kind == LiteralKind::Escape;
    let mut content = quote + 1;
    loop {
        let end = if is_escape {
            escape_string_end(text, content)?
        } else {
            doubled_quote_end(text, content, b'\'')?
        };
        match continuation(text, end) {
            Some(next) => {
                kind = LiteralKind::Other;
                content = next;
            }
            None => {
                return Some(LiteralToken {
                    range: start..end,
                    kind,
                });
            }
        }
    }
}

/// Behind the closing quote; a doubled one does not close.
fn doubled_quote_end(text: &[u8], mut pos: usize, quote: u8) -> Option<usize> {
    loop {
        pos += memchr(quote, text.get(pos..)?)? + 1;
        if text.get(pos) != Some(&quote) {
            return Some(pos);
        }
        pos += 1;
    }
}

fn escape_string_end(text: &[u8], mut pos: usize) -> Option<usize> {
    loop {
        pos += memchr2(b'\'', b'\\', text.get(pos..)?)? + 1;
        let escaped = text[pos - 1] == b'\\' || text.get(pos) == Some(&b'\'');
        if !escaped {
            return Some(pos);
        }
        pos += 1;
    }
}

/// Where the content goes on when the literal that ended at `pos` is continued:
/// whitespace and `--` comments with a line break, then a quote.
fn continuation(text: &[u8], mut pos: usize) -> Option<usize> {
    let mut line_break = false;
    loop {
        match *text.get(pos)? {
            b'\n' | b'\r' => {
                line_break = true;
                pos += 1;
            }
            b' ' | b'\t' | 0x0c => pos += 1,
            b'-' if text.get(pos + 1) == Some(&b'-') => pos = line_end(text, pos + 2),
            b'\'' if line_break => return Some(pos + 1),
            _ => return None,
        }
    }
}

/// The end of an identifier, keyword or number.
fn word_end(text: &[u8], mut pos: usize) -> usize {
    while let Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. | b'0'..=b'9' | b'$') = text.get(pos) {
        pos += 1;
    }
    pos
}

/// The end of a number, with letters that follow it directly: an exponent, a radix,
/// or since version 15 an error. Older versions begin a new word there, so that no
/// quote may follow.
fn number_end(text: &[u8], pos: usize) -> Option<usize> {
    let tail = &text[pos..];
    let len = tail
        .iter()
        .position(|b| !matches!(b, b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. | b'0'..=b'9'))
        .unwrap_or(tail.len());
    let has_letters = !tail[..len].iter().all(u8::is_ascii_digit);
    if has_letters && matches!(tail.get(len), Some(b'\'' | b'$')) {
        return None;
    }
    Some(pos + len)
}

fn line_end(text: &[u8], pos: usize) -> usize {
    memchr2(b'\n', b'\r', &text[pos..]).map_or(text.len(), |at| pos + at)
}

/// Behind the comment whose opening was read; comments nest.
fn comment_end(text: &[u8], mut pos: usize) -> Option<usize> {
    let mut depth = 1usize;
    loop {
        pos += memchr2(b'*', b'/', text.get(pos..)?)?;
        match (text[pos], text.get(pos + 1)?) {
            (b'/', b'*') => {
                depth += 1;
                pos += 2;
            }
            (b'*', b'/') => {
                depth -= 1;
                pos += 2;
                if depth == 0 {
                    return Some(pos);
                }
            }
            _ => pos += 1,
        }
    }
}

/// Length of the `$tag$` that `text` begins with.
pub(super) fn dollar_tag_len(text: &[u8]) -> Option<usize> {
    let tag = text.strip_prefix(b"$")?;
    let len = tag
        .iter()
        .position(|&b| !matches!(b, b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. | b'0'..=b'9'))?;
    let starts_well = !tag[0].is_ascii_digit();
    (starts_well && tag[len] == b'$').then_some(len + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(query: &str) -> Vec<(&str, LiteralKind)> {
        long_literals(query.as_bytes(), 0, &[])
            .map(|token| (&query[token.range], token.kind))
            .collect()
    }

    /// Everything that hides a quote, and everything that only seems to.
    #[test]
    fn finds_literals() {
        use LiteralKind::*;
        assert_eq!(
            all("select 'a', E'b\\'c', $$d'e$$, $t$f$$g$t$ from \"x'y\" -- 'z'\n where 'w'"),
            [
                ("'a'", Plain),
                ("E'b\\'c'", Escape),
                ("$$d'e$$", Dollar),
                ("$t$f$$g$t$", Dollar),
                ("'w'", Plain)
            ]
        );
        assert_eq!(all("/* ' /* ' */ ' */ 'a' /**/ 'b' /*/ ' */ 'c'").len(), 3);
        assert_eq!(
            all("a+--'x'\n'b'*/*'c'*/'d'"),
            [("'b'", Plain), ("'d'", Plain)]
        );
        assert_eq!(all("'a''b' 'c'"), [("'a''b'", Plain), ("'c'", Plain)]);
        assert_eq!(
            all("'a\\' E'a\\\\' e'''' "),
            [("'a\\'", Plain), ("E'a\\\\'", Escape), ("e''''", Escape)]
        );
        assert_eq!(
            all("code'a' \"e\"'b' xE'c' _e'd'"),
            [
                ("'a'", Plain),
                ("'b'", Plain),
                ("'c'", Plain),
                ("'d'", Plain)
            ]
        );
        assert_eq!(
            all("U&'a' u&\"b'c\" N'd' B'01' x'ff'"),
            [
                ("U&'a'", Other),
                ("N'd'", Other),
                ("B'01'", Other),
                ("x'ff'", Other)
            ]
        );
        assert_eq!(all("a$b$'c'$b$'d'"), [("'c'", Plain)]);
        assert_eq!(all("$1$a$'$a$, $2"), [("$a$'$a$", Dollar)]);
        assert_eq!(
            all("'a'\n  'b'  'c'"),
            [("'a'\n  'b'", Other), ("'c'", Plain)]
        );
        assert_eq!(
            all("E'a' -- x\n -- y\n '\\'b'"),
            [("E'a' -- x\n -- y\n '\\'b'", Other)]
        );
        assert_eq!(all("'a' /*\n*/ 'b'"), [("'a'", Plain), ("'b'", Plain)]);
        assert_eq!(all("1$a$'$a$ 1.5e+3'b' 0x1f 'c'").len(), 3);
        assert_eq!(all("'a' 1e'\\' 'b'"), [("'a'", Plain)]);
        assert_eq!(all("'a', 'open"), [("'a'", Plain)]);
        assert_eq!(all("'a' /* 'b'"), [("'a'", Plain)]);
        assert_eq!(all("'a' $q$ 'b'"), [("'a'", Plain)]);
    }

    /// Short literals are left out unless they begin with a prefix.
    #[test]
    fn filters_by_length_and_prefix() {
        let query: &[u8] = b"'short', 'toast:a', $$toast:b$$, E'\\164oast:c', ' toast:d', \
            '''toast:e', E'\\\\xf7', '\\xf7', 'toast', 'nine bytes'";
        let prefixes: &[&[u8]] = &[b"toast:", b"\\xf7"];
        let found: Vec<_> = long_literals(query, 12, prefixes)
            .map(|token| String::from_utf8_lossy(&query[token.range]).into_owned())
            .collect();
        assert_eq!(
            found,
            [
                "'toast:a'",
                "$$toast:b$$",
                "E'\\164oast:c'",
                "' toast:d'",
                "E'\\\\xf7'",
                "'\\xf7'",
                "'nine bytes'"
            ]
        );
    }

    proptest! {
        /// No text panics, and tokens are in order and within the text.
        #[test]
        fn never_panics(query in "([eEnNuUbBxX&$a1' \n\"\\\\/*-]|--|\\$a\\$|\u{e9}){0,40}") {
            let mut end = 0;
            for token in long_literals(query.as_bytes(), 0, &[b"a"]) {
                prop_assert!(token.range.start >= end && token.range.end <= query.len());
                prop_assert!(token.range.start < token.range.end);
                end = token.range.end;
            }
        }
    }
}
