//! Arrays in text format: `{a,"b c",NULL,{..}}`, with bounds or without.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;

use super::{ArrayError, MAX_DIMENSIONS, Malformed};

/// One element of an array in text format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextElement<'a> {
    /// Where it stands in the array, quotes included.
    pub range: Range<usize>,
    /// Its text without quotes and escapes; `None` for NULL.
    pub value: Option<Cow<'a, [u8]>>,
}

/// Iterates over the elements of an array in text format, nested ones included.
///
/// Ends after the first error.
pub fn text_elements(array: &[u8]) -> TextElements<'_> {
    TextElements {
        array,
        pos: 0,
        depth: 0,
        state: State::Start,
    }
}

/// See [`text_elements`].
#[derive(Debug, Clone)]
pub struct TextElements<'a> {
    array: &'a [u8],
    pos: usize,
    depth: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    /// Behind `{`: an element, `{` or `}`.
    Opened,
    /// Behind a comma: an element or `{`.
    Separated,
    /// Behind an element or `}`: a comma or `}`.
    Ended,
    Done,
}

impl<'a> Iterator for TextElements<'a> {
    type Item = Result<TextElement<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::Done {
            return None;
        }
        let next = self.advance().ok_or(Malformed { offset: self.pos });
        if !matches!(next, Ok(Some(_))) {
            self.state = State::Done;
        }
        next.transpose()
    }
}

impl<'a> TextElements<'a> {
    /// Goes on to the next element: `Some(None)` at the end of the array, `None`
    /// when it is malformed.
    fn advance(&mut self) -> Option<Option<TextElement<'a>>> {
        if self.state == State::Start {
            self.bounds()?;
            self.expect(b'{')?;
            self.open()?;
        }
        loop {
            self.skip_space();
            match (self.state, *self.array.get(self.pos)?) {
                (State::Opened | State::Separated, b'{') => {
                    self.pos += 1;
                    self.open()?;
                }
                (State::Ended, b',') => {
                    self.pos += 1;
                    self.state = State::Separated;
                }
                (State::Opened | State::Ended, b'}') => {
                    self.pos += 1;
                    self.state = State::Ended;
                    self.depth -= 1;
                    if self.depth == 0 {
                        self.skip_space();
                        return (self.pos == self.array.len()).then_some(None);
                    }
                }
                (State::Opened | State::Separated, b'"') => {
                    self.state = State::Ended;
                    return self.quoted().map(Some);
                }
                (State::Opened | State::Separated, _) => {
                    self.state = State::Ended;
                    return self.unquoted().map(Some);
                }
                _ => return None,
            }
        }
    }

    fn open(&mut self) -> Option<()> {
        self.depth += 1;
        self.state = State::Opened;
        (self.depth <= MAX_DIMENSIONS).then_some(())
    }

    /// Reads `[2:3][0:1]=`, if it is there.
    fn bounds(&mut self) -> Option<()> {
        self.skip_space();
        if self.array.get(self.pos) != Some(&b'[') {
            return Some(());
        }
        while self.array.get(self.pos) == Some(&b'[') {
            self.pos += 1;
            self.integer()?;
            if self.array.get(self.pos) == Some(&b':') {
                self.pos += 1;
                self.integer()?;
            }
            self.expect(b']')?;
        }
        self.expect(b'=')
    }

    fn integer(&mut self) -> Option<()> {
        if matches!(self.array.get(self.pos), Some(b'+' | b'-')) {
            self.pos += 1;
        }
        let start = self.pos;
        while matches!(self.array.get(self.pos), Some(b'0'..=b'9')) {
            self.pos += 1;
        }
        (self.pos > start).then_some(())
    }

    fn quoted(&mut self) -> Option<TextElement<'a>> {
        let start = self.pos;
        let mut part = start + 1;
        let mut decoded: Option<Vec<u8>> = None;
        loop {
            let at = part + memchr2(b'"', b'\\', self.array.get(part..)?)?;
            let plain = &self.array[part..at];
            if self.array[at] == b'"' {
                self.pos = at + 1;
                let value = match decoded {
                    None => Cow::Borrowed(plain),
                    Some(mut bytes) => {
                        bytes.extend_from_slice(plain);
                        Cow::Owned(bytes)
                    }
                };
                return Some(TextElement {
                    range: start..self.pos,
                    value: Some(value),
                });
            }
            let escaped = *self.array.get(at + 1)?;
            let bytes = decoded.get_or_insert_default();
            bytes.extend_from_slice(plain);
            bytes.push(escaped);
            part = at + 2;
        }
    }

    fn unquoted(&mut self) -> Option<TextElement<'a>> {
        let start = self.pos;
        let rest = &self.array[start..];
        let len = rest
            .iter()
            .position(|b| matches!(b, b',' | b'}' | b'{' | b'"' | b'\\'))?;
        let text = &rest[..len];
        let trailing = text.iter().rev().take_while(|b| is_space(**b)).count();
        let text = &text[..len - trailing];
        // Empty: `{,}`. What ends it must be a comma or `}`, which the next step checks.
        if text.is_empty() {
            return None;
        }
        self.pos = start + text.len();
        Some(TextElement {
            range: start..self.pos,
            value: (!text.eq_ignore_ascii_case(b"null")).then_some(Cow::Borrowed(text)),
        })
    }

    fn skip_space(&mut self) {
        while self.array.get(self.pos).is_some_and(|b| is_space(*b)) {
            self.pos += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.skip_space();
        (*self.array.get(self.pos)? == byte).then(|| self.pos += 1)
    }
}

/// Replaces elements of an array in text format.
///
/// `replace` sees each element that is not NULL, decoded, in order, and gives the
/// new text or `None` to keep the element. `Ok(None)` when every element was kept.
///
/// # Errors
/// [`ArrayError::Malformed`], or the error of `replace`.
pub fn replace_text_elements<E>(
    array: &[u8],
    mut replace: impl FnMut(&[u8]) -> Result<Option<Vec<u8>>, E>,
) -> Result<Option<Vec<u8>>, ArrayError<E>> {
    let mut out = Vec::new();
    let mut copied = 0;
    for element in text_elements(array) {
        let element = element?;
        let Some(value) = element.value else { continue };
        if let Some(new) = replace(&value).map_err(ArrayError::Element)? {
            out.extend_from_slice(&array[copied..element.range.start]);
            write_text_element(&new, &mut out);
            copied = element.range.end;
        }
    }
    if copied == 0 {
        return Ok(None);
    }
    out.extend_from_slice(&array[copied..]);
    Ok(Some(out))
}

/// Appends an element as `array_out` prints it: quoted when it is empty, the word
/// NULL, or holds braces, a comma, a quote, a backslash or whitespace.
pub fn write_text_element(value: &[u8], out: &mut Vec<u8>) {
    let quote = value.is_empty()
        || value.eq_ignore_ascii_case(b"null")
        || value
            .iter()
            .any(|&b| matches!(b, b'"' | b'\\' | b'{' | b'}' | b',') || is_space(b));
    if !quote {
        out.extend_from_slice(value);
        return;
    }
    out.reserve(value.len() + 2);
    out.push(b'"');
    let mut rest = value;
    while let Some(at) = memchr2(b'"', b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(&[b'\\', rest[at]]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// `array_isspace`: the same in every locale.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(array: &str) -> Result<Vec<Option<String>>, Malformed> {
        text_elements(array.as_bytes())
            .map(|element| {
                Ok(element?
                    .value
                    .map(|value| String::from_utf8_lossy(&value).into_owned()))
            })
            .collect()
    }

    /// Elements are listed decoded, NULL apart from "NULL".
    #[test]
    fn lists_elements() {
        let some = |s: &str| Some(s.to_owned());
        assert_eq!(values("{}"), Ok(vec![]));
        assert_eq!(values("{{},{}}"), Ok(vec![]));
        assert_eq!(
            values(r#"{a,"b c",NULL,"NULL",null,"","\"\\"}"#),
            Ok(vec![
                some("a"),
                some("b c"),
                None,
                some("NULL"),
                None,
                some(""),
                some("\"\\")
            ])
        );
        assert_eq!(
            values("[2:3][-1:0]={{a,b},{c,d}}"),
            Ok(["a", "b", "c", "d"].map(some).to_vec())
        );
        assert_eq!(values(" { a b , c } "), Ok(vec![some("a b"), some("c")]));
    }

    /// What is malformed or read in surprising ways is refused.
    #[test]
    fn refuses_doubtful_arrays() {
        for array in [
            "",
            "a",
            "{",
            "}",
            "{a",
            "{a,}",
            "{,a}",
            "{a}}",
            "{a}b",
            "{\"a}",
            "{\"a\\",
            "{\"a\"b}",
            "{a\"b\"}",
            "{a\\b}",
            "{a{b}}",
            "[1:2]{a}",
            "[:2]={a}",
            "[1:2={a}",
            "{{{{{{{a}}}}}}}",
            "{a}{b}",
            "{{a},b\\}",
        ] {
            assert!(values(array).is_err(), "{array}");
        }
    }

    /// Only the replaced elements change.
    #[test]
    fn replaces_elements() {
        let replace = |array: &str| {
            replace_text_elements(array.as_bytes(), |element| {
                Ok::<_, std::convert::Infallible>(match element {
                    b"one" => Some(b"a b".to_vec()),
                    b"two" => Some(b"null".to_vec()),
                    b"three" => Some(br#"{"\}"#.to_vec()),
                    b"four" => Some(b"plain".to_vec()),
                    _ => None,
                })
            })
            .map(|out| out.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
        };
        assert_eq!(replace("{x,\"y z\",NULL}"), Ok(None));
        assert_eq!(
            replace(r#"[0:1]={{x,one,NULL},{"two",three,four}}"#),
            Ok(Some(
                r#"[0:1]={{x,"a b",NULL},{"null","{\"\\}",plain}}"#.to_owned()
            ))
        );
        assert_eq!(
            replace("{ one , x }"),
            Ok(Some("{ \"a b\" , x }".to_owned()))
        );
        assert!(replace("{one,").is_err());
    }

    proptest! {
        /// What is written is read back as it was.
        #[test]
        fn round_trips(elements: Vec<Option<Vec<u8>>>) {
            let mut array = vec![b'{'];
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    array.push(b',');
                }
                match element {
                    Some(value) => write_text_element(value, &mut array),
                    None => array.extend_from_slice(b"NULL"),
                }
            }
            array.push(b'}');
            let read: Vec<_> = text_elements(&array)
                .map(|element| element.expect("well formed").value.map(Cow::into_owned))
                .collect();
            prop_assert_eq!(read, elements);
        }

        /// No text panics.
        #[test]
        fn never_panics(array in r#"(\[1:2\]=)?[{},"\\ aN]{0,24}"#) {
            let _ = text_elements(array.as_bytes()).count();
        }
    }
}
