//! What every decoder's tests ask.

use std::fmt::Debug;

use crate::error::MessageError;

/// Lengths that no value has room for in the bodies of these tests.
pub(crate) const LYING_LENGTHS: [i32; 5] = [-2, i32::MIN, 1_000, i32::MAX, i32::MAX - 1];

/// `body` is accepted whole, refused when cut at any byte, and refused with a byte too many.
#[track_caller]
pub(crate) fn assert_exact<'a, T: Debug>(
    body: &'a [u8],
    longer: &'a mut Vec<u8>,
    parse: impl Fn(&'a [u8]) -> Result<T, MessageError>,
) {
    assert!(parse(body).is_ok(), "whole body: {:?}", parse(body));
    for cut in 0..body.len() {
        let parsed = parse(&body[..cut]);
        assert!(parsed.is_err(), "cut at {cut} gave {parsed:?}");
    }
    longer.extend_from_slice(body);
    longer.push(0);
    let parsed = parse(longer);
    assert!(
        matches!(parsed, Err(MessageError::Trailing { left: 1, .. })),
        "a byte too many gave {parsed:?}"
    );
}

/// The body of the one frame that `frame` is.
#[track_caller]
pub(crate) fn body(frame: &[u8]) -> &[u8] {
    let length = u32::from_be_bytes(*frame[1..].first_chunk().expect("a length"));
    assert_eq!(length as usize + 1, frame.len(), "the length field");
    &frame[5..]
}
