//! A frame stands whole or not at all.

use super::*;
use crate::frame::tag::{backend, frontend};

#[test]
fn writes_behind_what_is_there() {
    let mut out = b"before".to_vec();
    encode_frame(&mut out, Direction::Backend, backend::PARSE_COMPLETE, b"").unwrap();
    encode_frame(&mut out, Direction::Frontend, frontend::COPY_DATA, b"ab").unwrap();
    assert_eq!(out, b"before1\0\0\0\x04d\0\0\0\x06ab");
}

#[test]
fn refuses_beyond_the_limit_and_takes_it_back() {
    let mut out = b"before".to_vec();
    let name = vec![b'x'; 10_000];
    let refused = encode_frame(&mut out, Direction::Frontend, frontend::DESCRIBE, &name);
    assert_eq!(
        refused,
        Err(EncodeError::TooLong {
            tag: b'D',
            length: 10_004,
            limit: 10_000
        })
    );
    assert_eq!(refused.unwrap_err().sqlstate(), "54000");
    assert_eq!(out, b"before");
    let fits = &name[..9_996];
    encode_frame(&mut out, Direction::Frontend, frontend::DESCRIBE, fits).unwrap();
    assert_eq!(out.len(), 6 + 10_001);
}

#[test]
fn refuses_a_tag_the_direction_does_not_have() {
    let mut out = Vec::new();
    let refused = encode_frame(&mut out, Direction::Backend, frontend::QUERY, b"");
    assert!(matches!(
        refused,
        Err(EncodeError::TooLong { limit: 0, .. })
    ));
    assert!(out.is_empty());
}

#[test]
fn dropped_unfinished_leaves_no_trace() {
    let mut out = b"before".to_vec();
    let mut frame = OpenFrame::begin(&mut out, Direction::Frontend, frontend::QUERY, 3).unwrap();
    frame.push(b"abc").unwrap();
    drop(frame);
    assert_eq!(out, b"before");
}

#[test]
fn an_announced_value_takes_no_memory_yet() {
    let mut out = Vec::new();
    let mut frame = OpenFrame::begin(&mut out, Direction::Backend, backend::DATA_ROW, 2).unwrap();
    frame.push_value_length(0x3fff_0000).unwrap();
    drop(frame);
    assert!(out.capacity() < 4096, "{} bytes", out.capacity());
}

#[test]
fn strings_with_a_zero_byte_are_refused() {
    let mut out = Vec::new();
    let mut frame = OpenFrame::begin(&mut out, Direction::Frontend, frontend::QUERY, 0).unwrap();
    let refused = frame.push_cstr("query", b"a\0b");
    assert_eq!(
        refused,
        Err(EncodeError::ZeroByte {
            field: "query",
            at: 1
        })
    );
}
