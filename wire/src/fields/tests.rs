//! The walk over checked values, and what happens where nothing was checked.

use super::*;

#[test]
fn walks_null_empty_and_values() {
    let raw = [
        &[0xff, 0xff, 0xff, 0xff][..],
        &[0, 0, 0, 0],
        &[0, 0, 0, 2],
        b"ab",
    ]
    .concat();
    let fields = Fields::checked(&raw, 3);
    assert_eq!(fields.len(), 3);
    assert_eq!(
        fields.collect::<Vec<_>>(),
        [None, Some(&b""[..]), Some(&b"ab"[..])]
    );
}

#[test]
fn stops_where_an_unchecked_list_lies() {
    // Only `check` makes a walk meaningful, but even without it nothing panics (S9).
    assert_eq!(Fields::checked(&[0, 0, 0, 9, 1], 5).count(), 0);
    assert_eq!(Fields::checked(&[0, 0], 1).count(), 0);
}

#[test]
fn check_tells_where_values_begin() {
    let raw = [&[0, 0, 0, 1, b'x'][..], &[0xff; 4], b"rest"].concat();
    let mut seen = Vec::new();
    let rest = check("DataRow", &raw, 2, |index, left| seen.push((index, left)));
    assert_eq!(rest, Ok(&b"rest"[..]));
    assert_eq!(seen, [(0, 13), (1, 8)]);
}
