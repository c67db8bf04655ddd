//! Brings a JSON text into the form that `jsonb_out` prints, in one pass.
//!
//! Input that is canonical already is only read: `copied` trails behind `pos`, and
//! the bytes between them are copied at the first difference, or never. Members of
//! an object are noted as ranges of the output; an object whose keys are not in
//! order is rearranged when it closes.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::{MAX_CONTAINER_LEN, MAX_JSON_DEPTH, NotCanonical, number, scan};

pub(super) fn run(input: &[u8]) -> Result<Cow<'_, [u8]>, NotCanonical> {
    let mut writer = Canonicalizer {
        input,
        pos: 0,
        out: Vec::new(),
        copied: 0,
        frames: Vec::with_capacity(16),
        members: Vec::with_capacity(64),
        decoded_keys: Vec::new(),
        scratch: Vec::new(),
        moved: 0,
    };
    writer.document()?;
    Ok(writer.finish())
}

struct Canonicalizer<'a> {
    input: &'a [u8],
    /// The next byte to read.
    pos: usize,
    out: Vec<u8>,
    /// `input[copied..pos]` belongs to the output but was not copied yet.
    copied: usize,
    frames: Vec<Frame>,
    /// Members of all open objects, innermost last.
    members: Vec<Member>,
    /// Keys that were written with escapes, decoded.
    decoded_keys: Vec<u8>,
    scratch: Vec<u8>,
    /// Bytes copied to bring members into order.
    moved: usize,
}

/// An open array or object.
struct Frame {
    is_object: bool,
    /// Keys so far are in strictly ascending order.
    in_order: bool,
    /// Elements or members begun.
    len: u32,
    /// Index of the first of its members.
    first_member: usize,
}

/// One `"key": value` of an open object. Offsets fit: input and output are bounded.
#[derive(Clone, Copy)]
struct Member {
    key_len: u32,
    key_start: u32,
    /// First 8 bytes of the key, big-endian, zero padded.
    key_head: u64,
    /// The key lies in `decoded_keys`, not in the input.
    key_decoded: bool,
    out_start: u32,
    out_end: u32,
}

impl<'a> Canonicalizer<'a> {
    fn document(&mut self) -> Result<(), NotCanonical> {
        self.drop_whitespace();
        loop {
            // A value begins at `pos`.
            match self.peek() {
                Some(b'"') => {
                    self.string()?;
                }
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b'{') => {
                    if self.open(true)? {
                        self.key()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    if self.open(false)? {
                        continue;
                    }
                }
                _ => self.pos = scan::word_end(self.input, self.pos).ok_or(self.syntax())?,
            }
            if self.after_value()? {
                return Ok(());
            }
        }
    }

    /// Goes on behind a value, up to the next value. True at the end of the text.
    fn after_value(&mut self) -> Result<bool, NotCanonical> {
        loop {
            self.drop_whitespace();
            let out_len = self.out_len();
            let Some(frame) = self.frames.last_mut() else {
                return if self.pos == self.input.len() {
                    Ok(true)
                } else {
                    Err(self.syntax())
                };
            };
            let is_object = frame.is_object;
            if is_object && let Some(member) = self.members.last_mut() {
                member.out_end = out_len as u32;
            }
            match self.input.get(self.pos) {
                Some(b',') => {
                    frame.len += 1;
                    if frame.len > MAX_CONTAINER_LEN {
                        return Err(NotCanonical::TooLong);
                    }
                    self.pos += 1;
                    self.one_space();
                    if is_object {
                        self.key()?;
                    }
                    return Ok(false);
                }
                Some(b'}') if is_object => {
                    self.close_object()?;
                    self.pos += 1;
                }
                Some(b']') if !is_object => {
                    self.frames.pop();
                    self.pos += 1;
                }
                _ => return Err(self.syntax()),
            }
        }
    }

    /// Reads an opening bracket. False when the container is empty and read whole.
    fn open(&mut self, is_object: bool) -> Result<bool, NotCanonical> {
        if self.frames.len() >= MAX_JSON_DEPTH {
            return Err(NotCanonical::TooDeep { offset: self.pos });
        }
        self.pos += 1;
        self.drop_whitespace();
        if self.peek() == Some(if is_object { b'}' } else { b']' }) {
            self.pos += 1;
            return Ok(false);
        }
        self.frames.push(Frame {
            is_object,
            in_order: true,
            len: 1,
            first_member: self.members.len(),
        });
        Ok(true)
    }

    /// Reads `"key":` and notes the member that begins with it.
    fn key(&mut self) -> Result<(), NotCanonical> {
        if self.peek() != Some(b'"') {
            return Err(self.syntax());
        }
        let out_start = self.out_len() as u32;
        let start = self.pos + 1;
        let had_escapes = self.string()?;
        let end = self.pos - 1;
        self.drop_whitespace();
        if self.peek() != Some(b':') {
            return Err(self.syntax());
        }
        self.pos += 1;
        self.one_space();

        let (key_start, key_len) = if had_escapes {
            let key_start = self.decoded_keys.len();
            decode_string(&self.input[start..end], &mut self.decoded_keys);
            (key_start, self.decoded_keys.len() - key_start)
        } else {
            (start, end - start)
        };
        let source = if had_escapes {
            &self.decoded_keys
        } else {
            self.input
        };
        let member = Member {
            key_len: key_len as u32,
            key_start: key_start as u32,
            key_head: head(&source[key_start..], key_len),
            key_decoded: had_escapes,
            out_start,
            out_end: out_start,
        };
        if let Some(frame) = self.frames.last_mut()
            && frame.in_order
            && let Some(previous) = self.members[frame.first_member..].last()
        {
            frame.in_order =
                compare(self.input, &self.decoded_keys, previous, &member) == Ordering::Less;
        }
        self.members.push(member);
        Ok(())
    }

    /// Ends the innermost object in front of its bracket.
    fn close_object(&mut self) -> Result<(), NotCanonical> {
        let Some(frame) = self.frames.pop() else {
            return Err(self.syntax());
        };
        if !frame.in_order {
            self.copy_pending(self.pos);
            self.sort_members(frame.first_member)?;
        }
        self.members.truncate(frame.first_member);
        Ok(())
    }

    fn sort_members(&mut self, first: usize) -> Result<(), NotCanonical> {
        let members = &mut self.members[first..];
        let region = members
            .first()
            .map_or(0, |member| member.out_start as usize);
        self.moved += self.out.len() - region;
        if self.moved > 16 * self.input.len() + (64 << 10) {
            return Err(NotCanonical::TooCostly);
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(&self.out[region..]);
        self.out.truncate(region);
        // Stable: of equal keys the last one written stays last, and wins.
        let (input, decoded_keys) = (self.input, &self.decoded_keys);
        members.sort_by(|a, b| compare(input, decoded_keys, a, b));
        for (index, member) in members.iter().enumerate() {
            if let Some(next) = members.get(index + 1)
                && compare(input, decoded_keys, member, next) == Ordering::Equal
            {
                continue;
            }
            if self.out.len() > region {
                self.out.extend_from_slice(b", ");
            }
            let start = member.out_start as usize - region;
            let end = member.out_end as usize - region;
            push_part(&self.scratch, start, end, &mut self.out);
        }
        Ok(())
    }

    /// Reads a string; true when it holds escapes.
    #[inline]
    fn string(&mut self) -> Result<bool, NotCanonical> {
        let end = scan::plain_run_end(self.input, self.pos + 1);
        if self.input.get(end) == Some(&b'"') {
            self.pos = end + 1;
            return Ok(false);
        }
        self.pos = end;
        self.string_with_escapes()
    }

    /// Goes on in a string at its first byte that needs care.
    fn string_with_escapes(&mut self) -> Result<bool, NotCanonical> {
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.pos += 1;
                    return Ok(true);
                }
                Some(b'\\') => self.escape()?,
                _ => return Err(self.syntax()),
            }
            self.pos = scan::plain_run_end(self.input, self.pos);
        }
    }

    fn escape(&mut self) -> Result<(), NotCanonical> {
        match self.input.get(self.pos + 1) {
            Some(b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't') => self.pos += 2,
            Some(b'/') => {
                self.replace_pending(self.pos, self.pos + 1);
                self.pos += 2;
            }
            Some(b'u') => {
                let (c, end) = scan::unicode_escape(self.input, self.pos).ok_or(self.syntax())?;
                self.replace_pending(self.pos, end);
                push_escaped(c, &mut self.out);
                self.pos = end;
            }
            _ => return Err(self.syntax()),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), NotCanonical> {
        let start = self.pos;
        let (end, has_exponent) = scan::number_end(self.input, start).ok_or(self.syntax())?;
        let token = &self.input[start..end];
        if token.len() > number::MAX_LEN {
            return Err(NotCanonical::LargeNumber { offset: start });
        }
        self.pos = end;
        if has_exponent || number::is_negative_zero(token) {
            self.replace_pending(start, end);
            number::print(token, &mut self.out)
                .ok_or(NotCanonical::LargeNumber { offset: start })?;
            if self.out.len() > 4 * self.input.len() + 4096 {
                return Err(NotCanonical::TooCostly);
            }
        }
        Ok(())
    }

    /// Leaves the whitespace at `pos` out.
    #[inline]
    fn drop_whitespace(&mut self) {
        let end = scan::skip_whitespace(self.input, self.pos);
        if end > self.pos {
            self.replace_pending(self.pos, end);
            self.pos = end;
        }
    }

    /// Makes one space of the whitespace at `pos`.
    #[inline]
    fn one_space(&mut self) {
        let end = scan::skip_whitespace(self.input, self.pos);
        if end != self.pos + 1 || self.input[self.pos] != b' ' {
            self.replace_pending(self.pos, end);
            self.out.push(b' ');
        }
        self.pos = end;
    }

    /// Copies what is due up to `upto`.
    #[inline]
    fn copy_pending(&mut self, upto: usize) {
        if self.out.capacity() == 0 {
            self.out
                .reserve(self.input.len() + self.input.len() / 2 + 64);
        }
        push_part(self.input, self.copied, upto, &mut self.out);
        self.copied = upto;
    }

    /// Copies what is due up to `from` and leaves `from..to` out; the caller
    /// appends what stands there instead.
    #[inline]
    fn replace_pending(&mut self, from: usize, to: usize) {
        self.copy_pending(from);
        self.copied = to;
    }

    /// Length of the output up to `pos`, as if nothing were pending.
    #[inline]
    fn out_len(&self) -> usize {
        self.out.len() + self.pos - self.copied
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.input.get(self.pos).copied()
    }

    fn syntax(&self) -> NotCanonical {
        NotCanonical::Syntax { offset: self.pos }
    }

    fn finish(mut self) -> Cow<'a, [u8]> {
        if self.out.is_empty() {
            // Whitespace around a text leaves nothing else to copy.
            return Cow::Borrowed(&self.input[self.copied..]);
        }
        self.copy_pending(self.pos);
        Cow::Owned(self.out)
    }
}

/// Appends `source[start..end]`. Most parts are short, and a copy of fixed length
/// of which the surplus is cut off again is several times faster than a call of
/// `memcpy`.
#[inline]
fn push_part(source: &[u8], start: usize, end: usize, out: &mut Vec<u8>) {
    const SHORT: usize = 32;
    match source[start..].first_chunk::<SHORT>() {
        Some(chunk) if end - start <= SHORT => {
            let len = out.len() + end - start;
            out.extend_from_slice(chunk);
            out.truncate(len);
        }
        _ => out.extend_from_slice(&source[start..end]),
    }
}

/// First 8 bytes of a key of `len` bytes that `bytes` begins with.
#[inline]
fn head(bytes: &[u8], len: usize) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(first) if len >= 8 => u64::from_be_bytes(*first),
        Some(first) if len > 0 => u64::from_be_bytes(*first) & (u64::MAX << (64 - 8 * len)),
        _ => bytes
            .iter()
            .take(len)
            .zip((0..8).rev())
            .fold(0, |head, (&b, at)| head | u64::from(b) << (8 * at)),
    }
}

/// The order of keys in jsonb: shorter first, then by bytes.
#[inline]
fn compare(input: &[u8], decoded_keys: &[u8], a: &Member, b: &Member) -> Ordering {
    let by_head = (a.key_len, a.key_head).cmp(&(b.key_len, b.key_head));
    if by_head != Ordering::Equal || a.key_len <= 8 {
        return by_head;
    }
    let key = |member: &Member| {
        let source = if member.key_decoded {
            decoded_keys
        } else {
            input
        };
        let start = member.key_start as usize;
        &source[start..start + member.key_len as usize]
    };
    key(a).cmp(key(b))
}

/// Appends `c` as `escape_json` prints it.
fn push_escaped(c: char, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match c {
        '"' | '\\' => c as u8,
        '\u{8}' => b'b',
        '\u{c}' => b'f',
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        '\0'..='\u{1f}' => {
            let code = usize::from(c as u8);
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&[HEX[code >> 4], HEX[code & 15]]);
            return;
        }
        _ => {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Appends the characters of a string whose escapes were checked before.
fn decode_string(source: &[u8], out: &mut Vec<u8>) {
    let mut pos = 0;
    while let Some(&byte) = source.get(pos) {
        if byte != b'\\' {
            out.push(byte);
            pos += 1;
            continue;
        }
        if source.get(pos + 1) == Some(&b'u')
            && let Some((c, end)) = scan::unicode_escape(source, pos)
        {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            pos = end;
            continue;
        }
        out.extend(source.get(pos + 1).map(|escaped| match escaped {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            other => *other,
        }));
        pos += 2;
    }
}
