//! Arrays in binary format, as `array_send` writes them.
//!
//! | part | type | rule |
//! |---|---|---|
//! | dimensions | i32 | 0 to 6 |
//! | has nulls | i32 | 0 or 1 |
//! | element type | u32 | OID |
//! | per dimension: length, lower bound | i32, i32 | length at least 0 |
//! | per element: length, bytes | i32, bytes | length -1 for NULL |
//!
//! All integers are big-endian.

use super::{ArrayError, MAX_DIMENSIONS, Malformed};

const ELEMENT_OID: std::ops::Range<usize> = 8..12;
const HEADER_LEN: usize = 12;
const DIMENSION_LEN: usize = 8;

/// The OID of the element type that an array in binary format names.
pub fn binary_element_oid(array: &[u8]) -> Option<u32> {
    read_u32(array, ELEMENT_OID.start)
}

/// Iterates over the elements of an array in binary format: the bytes as the
/// element type sends them, `None` for NULL. Ends after the first error.
pub fn binary_elements(array: &[u8]) -> BinaryElements<'_> {
    BinaryElements {
        array,
        pos: 0,
        left: 0,
        state: State::Start,
    }
}

/// See [`binary_elements`].
#[derive(Debug, Clone)]
pub struct BinaryElements<'a> {
    array: &'a [u8],
    pos: usize,
    left: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Elements,
    Done,
}

impl<'a> Iterator for BinaryElements<'a> {
    type Item = Result<Option<&'a [u8]>, Malformed>;

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

impl<'a> BinaryElements<'a> {
    /// Goes on to the next element: `Some(None)` at the end of the array, `None`
    /// when it is malformed.
    fn advance(&mut self) -> Option<Option<Option<&'a [u8]>>> {
        if self.state == State::Start {
            (self.pos, self.left) = header(self.array)?;
            self.state = State::Elements;
        }
        if self.left == 0 {
            return (self.pos == self.array.len()).then_some(None);
        }
        let start = self.pos + 4;
        let len = read_u32(self.array, self.pos)?;
        self.left -= 1;
        if len == u32::MAX {
            self.pos = start;
            return Some(Some(None));
        }
        // A length below -1 is beyond the end of every array.
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        let element = self.array.get(start..end)?;
        self.pos = end;
        Some(Some(Some(element)))
    }
}

/// Where the elements begin, and how many there are. Each takes at least 4 bytes,
/// so more than that cannot be there.
fn header(array: &[u8]) -> Option<(usize, usize)> {
    let dimensions = usize::try_from(read_u32(array, 0)?).ok()?;
    read_u32(array, HEADER_LEN - 4)?;
    if dimensions > MAX_DIMENSIONS {
        return None;
    }
    if dimensions == 0 {
        return Some((HEADER_LEN, 0));
    }
    let start = HEADER_LEN + dimensions * DIMENSION_LEN;
    let most = array.len().checked_sub(start)? / 4;
    let count = (0..dimensions).try_fold(1usize, |count, at| {
        let len = read_u32(array, HEADER_LEN + at * DIMENSION_LEN)?;
        count.checked_mul(usize::try_from(i32::try_from(len).ok()?).ok()?)
    })?;
    (count <= most).then_some((start, count))
}

/// Replaces elements of an array in binary format, and the element type that it
/// names when `new_element_oid` is given.
///
/// `replace` sees each element that is not NULL, as the element type sends it, in
/// order, and gives the new bytes or `None` to keep the element. `Ok(None)` when
/// nothing changes.
///
/// # Errors
/// [`ArrayError::Malformed`], also for a replacement of 2 GiB or more, or the
/// error of `replace`.
pub fn replace_binary_elements<E>(
    array: &[u8],
    new_element_oid: Option<u32>,
    mut replace: impl FnMut(&[u8]) -> Result<Option<Vec<u8>>, E>,
) -> Result<Option<Vec<u8>>, ArrayError<E>> {
    let mut out = Vec::new();
    let mut copied = 0;
    let mut elements = binary_elements(array);
    while let Some(element) = elements.next() {
        let Some(element) = element? else { continue };
        if let Some(new) = replace(element).map_err(ArrayError::Element)? {
            let start = elements.pos - element.len() - 4;
            let len = i32::try_from(new.len()).map_err(|_| Malformed { offset: start })?;
            out.extend_from_slice(&array[copied..start]);
            out.extend_from_slice(&len.to_be_bytes());
            out.extend_from_slice(&new);
            copied = elements.pos;
        }
    }
    let new_oid = new_element_oid.filter(|oid| binary_element_oid(array) != Some(*oid));
    if copied == 0 && new_oid.is_none() {
        return Ok(None);
    }
    out.extend_from_slice(&array[copied..]);
    if let Some(oid) = new_oid {
        out[ELEMENT_OID].copy_from_slice(&oid.to_be_bytes());
    }
    Ok(Some(out))
}

fn read_u32(array: &[u8], at: usize) -> Option<u32> {
    let bytes = array.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(dimensions: &[i32], elements: &[Option<Vec<u8>>]) -> Vec<u8> {
        let mut out = (dimensions.len() as i32).to_be_bytes().to_vec();
        let has_nulls = i32::from(elements.iter().any(Option::is_none));
        out.extend(has_nulls.to_be_bytes());
        out.extend(25u32.to_be_bytes());
        for len in dimensions {
            out.extend(len.to_be_bytes());
            out.extend(1i32.to_be_bytes());
        }
        for element in elements {
            match element {
                Some(bytes) => {
                    out.extend((bytes.len() as i32).to_be_bytes());
                    out.extend(bytes);
                }
                None => out.extend((-1i32).to_be_bytes()),
            }
        }
        out
    }

    fn list(array: &[u8]) -> Result<Vec<Option<Vec<u8>>>, Malformed> {
        binary_elements(array)
            .map(|element| Ok(element?.map(<[u8]>::to_vec)))
            .collect()
    }

    /// Elements and the type change, the rest stays.
    #[test]
    fn replaces_elements_and_type() {
        let some = |s: &[u8]| Some(s.to_vec());
        let array = encode(&[2, 2], &[some(b"a"), None, some(b""), some(b"long")]);
        let keep = |_: &[u8]| Ok::<_, ()>(None);
        assert_eq!(replace_binary_elements(&array, None, keep), Ok(None));
        assert_eq!(replace_binary_elements(&array, Some(25), keep), Ok(None));

        let mut retyped = array.clone();
        retyped[8..12].copy_from_slice(&7u32.to_be_bytes());
        assert_eq!(
            replace_binary_elements(&array, Some(7), keep),
            Ok(Some(retyped))
        );
        assert_eq!(
            replace_binary_elements(&array, None, |element| Ok::<_, ()>(
                (element != b"long").then(|| b"new".to_vec())
            )),
            Ok(Some(encode(
                &[2, 2],
                &[some(b"new"), None, some(b"new"), some(b"long")]
            )))
        );
    }

    /// Every cut and every impossible count is an error, never a panic.
    #[test]
    fn refuses_malformed() {
        let array = encode(&[2], &[Some(b"abc".to_vec()), None]);
        for len in 0..array.len() {
            assert!(list(&array[..len]).is_err(), "cut at {len}");
        }
        assert!(list(&[&array[..], &[0]].concat()).is_err());
        assert!(list(&encode(&[i32::MAX, i32::MAX], &[])).is_err());
        assert!(list(&encode(&[-1], &[])).is_err());
        assert!(list(&encode(&[1; 7], &[None])).is_err());
        assert_eq!(list(&encode(&[], &[])), Ok(vec![]));
    }

    proptest! {
        /// What is written is read back as it was.
        #[test]
        fn round_trips(elements in proptest::collection::vec(any::<Option<Vec<u8>>>(), 1..20)) {
            let array = encode(&[elements.len() as i32], &elements);
            prop_assert_eq!(list(&array), Ok(elements));
        }

        /// No bytes panic.
        #[test]
        fn never_panics(bytes: Vec<u8>) {
            let _ = replace_binary_elements(&bytes, Some(1), |_| Ok::<_, ()>(Some(vec![])));
        }
    }
}
