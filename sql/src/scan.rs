//! Cuts a text into statements and reduces each to a short skeleton.
//!
//! A skeleton is the statement with its string literals emptied, its integers
//! levelled and its comments blanked: the same tokens in the same order, so it
//! has the same parse tree, but neither its length nor its cache key depends
//! on the values in it. It is only ever analysed, never sent.
//!
//! Promises:   agrees with Postgres' lexer (`scan.l`) on where literals begin
//!             and end, or gives up. Presumes `standard_conforming_strings = on`.
//! Fails:      `None` for what is unterminated, unbalanced or depends on the
//!             server's version; the values then stay inline.
//! Proof:      scan/tests.rs compares with libpg_query's scanner.

use std::ops::Range;

use memchr::{memchr, memchr2, memmem};

use crate::plan::LiteralKind;
use crate::reserved;

/// A text, statement by statement.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Those that have a token.
    pub(crate) statements: Vec<Statement>,
}

/// One statement of a text.
#[derive(Debug, Default)]
pub(crate) struct Statement {
    pub(crate) skeleton: String,
    /// Where it begins in the text, in bytes.
    start: usize,
    /// What the skeleton spells differently, ascending.
    pieces: Vec<Piece>,
    /// It has a word INSERT, UPDATE or MERGE.
    pub(crate) assigns: bool,
    /// It has a literal that is long enough to matter, or may be reserved.
    pub(crate) has_candidate: bool,
}

/// A token (or comment) that the skeleton spells differently.
#[derive(Debug)]
pub(crate) struct Piece {
    /// Bytes of the skeleton.
    skeleton: Range<usize>,
    /// Bytes of the text.
    pub(crate) original: Range<usize>,
    /// Set for a string literal whose value can be decoded on its own.
    pub(crate) literal: Option<Literal>,
}

/// The inside of a string literal.
#[derive(Debug)]
pub(crate) struct Literal {
    pub(crate) kind: LiteralKind,
    /// Bytes of the text between quotes or tags.
    pub(crate) body: Range<usize>,
}

impl Statement {
    /// The place in the text of a token boundary in the skeleton.
    pub(crate) fn original_offset(&self, offset: usize) -> usize {
        let before = self.pieces.partition_point(|p| p.skeleton.start < offset);
        match before.checked_sub(1).and_then(|i| self.pieces.get(i)) {
            Some(piece) => piece.original.end + offset.saturating_sub(piece.skeleton.end),
            None => self.start + offset,
        }
    }

    /// The place in the text of a range of whole tokens of the skeleton.
    pub(crate) fn original_range(&self, range: &Range<usize>) -> Range<usize> {
        self.original_offset(range.start)..self.original_offset(range.end)
    }

    /// The piece that is exactly this range of the skeleton.
    pub(crate) fn piece(&self, range: &Range<usize>) -> Option<&Piece> {
        let found = self
            .pieces
            .binary_search_by_key(&range.start, |p| p.skeleton.start);
        self.pieces
            .get(found.ok()?)
            .filter(|piece| piece.skeleton == *range)
    }
}

/// Scans a whole text. `min_literal_len`: bytes of a literal's body from which
/// a statement is a candidate.
pub(crate) fn scan(text: &str, min_literal_len: usize) -> Option<Script> {
    // libpg_query takes C strings, and Postgres never sees what follows a NUL.
    if memchr(0, text.as_bytes()).is_some() {
        return None;
    }
    let mut scanner = Scanner {
        text,
        bytes: text.as_bytes(),
        at: 0,
        copied: 0,
        depth: 0,
        has_token: false,
        min_literal_len,
        statement: Statement::default(),
        script: Script::default(),
    };
    scanner.run()?;
    Some(scanner.script)
}

struct Scanner<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    /// The text before this is in the skeleton.
    copied: usize,
    /// Open parentheses: a semicolon within them separates the actions of a rule.
    depth: usize,
    has_token: bool,
    min_literal_len: usize,
    statement: Statement,
    script: Script,
}

/// How a quoted literal is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoted {
    Plain,
    Escape,
    /// `U&'...'`: like plain, but decoded with a following UESCAPE.
    Unicode,
    /// `B'...'` and `X'...'`: a quote always ends them.
    Bits,
}

impl Scanner<'_> {
    fn run(&mut self) -> Option<()> {
        while let Some(&byte) = self.bytes.get(self.at) {
            match (byte, self.peek(1)) {
                (b'-', Some(b'-')) => self.line_comment(),
                (b'/', Some(b'*')) => self.block_comment()?,
                (b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, _) => self.at += 1,
                (b';', _) if self.depth == 0 => self.end_statement(),
                _ => {
                    self.has_token = true;
                    self.token(byte)?;
                }
            }
        }
        self.end_statement();
        (self.depth == 0).then_some(())
    }

    fn token(&mut self, byte: u8) -> Option<()> {
        match byte {
            b'\'' => self.quoted(0, Quoted::Plain),
            b'"' => self.quoted_identifier(self.at),
            b'$' => self.dollar(),
            b'0'..=b'9' => self.number(),
            b'(' => {
                self.depth += 1;
                self.at += 1;
                Some(())
            }
            b')' => {
                self.depth = self.depth.checked_sub(1)?;
                self.at += 1;
                Some(())
            }
            _ if is_word_start(byte) => self.word(byte),
            _ => {
                self.at += 1;
                Some(())
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn word(&mut self, first: u8) -> Option<()> {
        match (first, self.peek(1), self.peek(2)) {
            (b'e' | b'E', Some(b'\''), _) => return self.quoted(1, Quoted::Escape),
            (b'b' | b'B' | b'x' | b'X', Some(b'\''), _) => return self.quoted(1, Quoted::Bits),
            (b'u' | b'U', Some(b'&'), Some(b'\'')) => return self.quoted(2, Quoted::Unicode),
            (b'u' | b'U', Some(b'&'), Some(b'"')) => return self.quoted_identifier(self.at + 2),
            _ => {}
        }
        let rest = &self.bytes[self.at..];
        let len = rest.iter().position(|&b| !is_word(b)).unwrap_or(rest.len());
        let word = &rest[..len];
        self.at += len;
        if is_any_of(word, &["insert", "update", "merge"]) {
            self.statement.assigns = true;
        }
        // The semicolons of BEGIN ATOMIC ... END do not end the statement, and
        // a body that is stored in the catalog must not hold a reference (S8).
        (!word.eq_ignore_ascii_case(b"atomic")).then_some(())
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        let rest = &self.bytes[start..];
        let is_digit = |b: &u8| b.is_ascii_digit();
        let digits = rest.iter().take_while(|b| is_digit(b)).count();
        let in_number = |b: u8| b == b'.' || (is_word(b) && b != b'$');
        let len = rest.iter().take_while(|&&b| in_number(b)).count();
        self.at += len;
        if len > digits {
            // Where a number with letters ends depends on the version.
            return (self.peek(0) != Some(b'$')).then_some(());
        }
        // Beyond ten digits it is surely no int4, so a token of another class.
        if digits <= 9 {
            self.replace(start..self.at, "1", None);
        } else if digits > 10 && rest[0] != b'0' {
            self.replace(start..self.at, "99999999999", None);
        }
        Some(())
    }

    /// A parameter, a dollar-quoted literal or a stray sign.
    fn dollar(&mut self) -> Option<()> {
        let start = self.at;
        let rest = &self.bytes[start + 1..];
        if rest.first().is_some_and(u8::is_ascii_digit) {
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            self.at += 1 + digits;
            return Some(());
        }
        let in_tag = |b: u8| is_word(b) && b != b'$';
        let tag_len = rest.iter().take_while(|&&b| in_tag(b)).count();
        if rest.get(tag_len) != Some(&b'$') {
            self.at += 1;
            return Some(());
        }
        let body_start = start + tag_len + 2;
        let delimiter = &self.bytes[start..body_start];
        let body_len = memmem::find(&self.bytes[body_start..], delimiter)?;
        let body = body_start..body_start + body_len;
        self.at = body.end + delimiter.len();
        let delimiter = &self.text[start..body_start];
        let literal = self.literal(LiteralKind::Dollar, body);
        self.replace_parts(start..self.at, &[delimiter, delimiter], literal);
        Some(())
    }

    /// A literal in single quotes behind a prefix of `prefix_len` bytes.
    fn quoted(&mut self, prefix_len: usize, quoted: Quoted) -> Option<()> {
        let start = self.at;
        let body_start = start + prefix_len + 1;
        let mut end = self.closing_quote(body_start, quoted)?;
        let body = body_start..end;
        let mut continued = false;
        while let Some(next) = continuation(self.bytes, end + 1) {
            continued = true;
            end = self.closing_quote(next + 1, quoted)?;
        }
        self.at = end + 1;
        let kind = match quoted {
            Quoted::Plain => Some(LiteralKind::Plain),
            Quoted::Escape => Some(LiteralKind::Escape),
            Quoted::Unicode | Quoted::Bits => None,
        };
        let literal = match kind {
            Some(kind) if !continued => self.literal(kind, body),
            _ => None,
        };
        let prefix = &self.text[start..start + prefix_len];
        self.replace_parts(start..self.at, &[prefix, "''"], literal);
        Some(())
    }

    /// The index of the quote that ends the segment that begins at `at`.
    fn closing_quote(&self, mut at: usize, quoted: Quoted) -> Option<usize> {
        loop {
            let rest = self.bytes.get(at..)?;
            let found = match quoted {
                Quoted::Escape => memchr2(b'\'', b'\\', rest)?,
                Quoted::Plain | Quoted::Unicode | Quoted::Bits => memchr(b'\'', rest)?,
            };
            at += found;
            let doubled = quoted != Quoted::Bits && self.bytes.get(at + 1) == Some(&b'\'');
            if self.bytes[at] == b'\'' && !doubled {
                return Some(at);
            }
            // A doubled quote, or a backslash with what it escapes.
            at += 2;
        }
    }

    fn quoted_identifier(&mut self, quote: usize) -> Option<()> {
        let mut at = quote + 1;
        loop {
            at += memchr(b'"', self.bytes.get(at..)?)?;
            if self.bytes.get(at + 1) != Some(&b'"') {
                break;
            }
            at += 2;
        }
        self.at = at + 1;
        Some(())
    }

    fn line_comment(&mut self) {
        let rest = &self.bytes[self.at..];
        let len = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        self.replace(self.at..self.at + len, " ", None);
        self.at += len;
    }

    fn block_comment(&mut self) -> Option<()> {
        let start = self.at;
        let mut nesting = 1_usize;
        self.at += 2;
        while nesting > 0 {
            self.at += memchr2(b'*', b'/', self.bytes.get(self.at..)?)?;
            match (self.peek(0), self.peek(1)) {
                (Some(b'/'), Some(b'*')) => {
                    nesting += 1;
                    self.at += 2;
                }
                (Some(b'*'), Some(b'/')) => {
                    nesting -= 1;
                    self.at += 2;
                }
                _ => self.at += 1,
            }
        }
        self.replace(start..self.at, " ", None);
        Some(())
    }

    fn literal(&mut self, kind: LiteralKind, body: Range<usize>) -> Option<Literal> {
        let bytes = &self.bytes[body.clone()];
        if bytes.len() >= self.min_literal_len || reserved::may_begin(bytes, kind) {
            self.statement.has_candidate = true;
        }
        Some(Literal { kind, body })
    }

    fn replace(&mut self, original: Range<usize>, with: &str, literal: Option<Literal>) {
        self.replace_parts(original, &[with], literal);
    }

    fn replace_parts(&mut self, original: Range<usize>, with: &[&str], literal: Option<Literal>) {
        let skeleton = &mut self.statement.skeleton;
        skeleton.push_str(&self.text[self.copied..original.start]);
        self.copied = original.end;
        let start = skeleton.len();
        for part in with {
            skeleton.push_str(part);
        }
        let skeleton = start..skeleton.len();
        self.statement.pieces.push(Piece {
            skeleton,
            original,
            literal,
        });
    }

    /// At a semicolon or the end of the text.
    fn end_statement(&mut self) {
        let mut statement = std::mem::take(&mut self.statement);
        statement
            .skeleton
            .push_str(&self.text[self.copied..self.at]);
        if std::mem::take(&mut self.has_token) {
            self.script.statements.push(statement);
        }
        self.at += 1;
        self.copied = self.at.min(self.bytes.len());
        self.statement.start = self.copied;
    }
}

/// The index of a quote that continues a literal whose segment ended before
/// `at`: white space with a newline, and line comments, may stand between.
fn continuation(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut newline = false;
    loop {
        match *bytes.get(at)? {
            b' ' | b'\t' | 0x0b | 0x0c => at += 1,
            b'\n' | b'\r' => {
                newline = true;
                at += 1;
            }
            b'-' if bytes.get(at + 1) == Some(&b'-') => {
                at += memchr2(b'\n', b'\r', &bytes[at..])?;
            }
            b'\'' if newline => return Some(at),
            _ => return None,
        }
    }
}

/// The first word of a text, past white space, comments, semicolons and
/// opening parentheses; empty when something else comes first.
pub(crate) fn first_word(text: &[u8]) -> &[u8] {
    let mut at = 0;
    let mut nesting = 0_usize;
    while let Some(&byte) = text.get(at) {
        match (byte, text.get(at + 1)) {
            (b'/', Some(b'*')) => {
                nesting += 1;
                at += 2;
            }
            (b'*', Some(b'/')) if nesting > 0 => {
                nesting -= 1;
                at += 2;
            }
            _ if nesting > 0 => {
                let next = memchr2(b'*', b'/', &text[at + 1..]);
                at = next.map_or(text.len(), |next| at + 1 + next);
            }
            (b'-', Some(b'-')) => {
                let rest = &text[at..];
                at += memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
            }
            (b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | b'(' | b';', _) => at += 1,
            _ => break,
        }
    }
    let rest = text.get(at..).unwrap_or_default();
    let len = rest.iter().position(|&b| !is_word(b)).unwrap_or(rest.len());
    &rest[..len]
}

/// Whether `word` is one of these, ignoring ASCII case.
pub(crate) fn is_any_of(word: &[u8], of: &[&str]) -> bool {
    of.iter().any(|w| word.eq_ignore_ascii_case(w.as_bytes()))
}

fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn is_word(byte: u8) -> bool {
    is_word_start(byte) || byte.is_ascii_digit() || byte == b'$'
}

#[cfg(test)]
mod tests;
