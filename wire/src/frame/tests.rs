//! Headers: every tag at its bounds, in both directions.
//!
//! The frontend bounds are those of PostgreSQL 15.18: a Describe whose length field says 10,000
//! is answered, one that says 10,001 ends the connection.

use super::*;

fn frame_head(tag: u8, length: u32) -> [u8; 5] {
    let [a, b, c, d] = length.to_be_bytes();
    [tag, a, b, c, d]
}

/// A direction, what reads it, and its tags as the manual lists them.
type Side = (
    Direction,
    fn(&[u8]) -> Result<Option<Header>, FrameError>,
    &'static [u8],
);

const SIDES: [Side; 2] = [
    (Direction::Frontend, frontend_header, b"BCDEFHPQSXcdfp"),
    (
        Direction::Backend,
        backend_header,
        b"123ACDEGHIKNRSTVWZcdnstv",
    ),
];

#[test]
fn every_tag_at_its_bounds() {
    for (direction, read, tags) in SIDES {
        for &tag in tags {
            let limit = length_limit(direction, tag).unwrap();
            for length in [4, 5, limit] {
                let header = read(&frame_head(tag, length)).unwrap().unwrap();
                assert_eq!(header.tag, tag);
                assert_eq!(header.len, length as usize + 1);
                assert_eq!(header.body_len(), length as usize - 4);
            }
            for length in [-1, 0, 3, i32::MIN] {
                assert_eq!(
                    read(&frame_head(tag, length.cast_unsigned())),
                    Err(FrameError::LengthTooSmall {
                        direction,
                        tag,
                        length
                    })
                );
            }
            for length in [limit + 1, i32::MAX.cast_unsigned()] {
                assert_eq!(
                    read(&frame_head(tag, length)),
                    Err(FrameError::LengthTooLarge {
                        direction,
                        tag,
                        length,
                        limit
                    })
                );
            }
        }
    }
}

#[test]
fn every_other_tag_is_refused_by_its_first_byte() {
    for (direction, read, tags) in SIDES {
        for tag in (0..=u8::MAX).filter(|tag| !tags.contains(tag)) {
            let refused = Err(FrameError::UnknownTag { direction, tag });
            assert_eq!(read(&[tag]), refused);
            assert_eq!(read(&frame_head(tag, 4)), refused);
            assert_eq!(length_limit(direction, tag), None);
        }
    }
}

#[test]
fn waits_for_five_bytes() {
    let head = frame_head(tag::frontend::QUERY, 9);
    for have in 0..5 {
        assert_eq!(frontend_header(&head[..have]), Ok(None), "{have} bytes");
    }
    assert!(frontend_header(&head).unwrap().is_some());
}

#[test]
fn body_is_there_once_all_of_it_is() {
    let frame = b"Q\0\0\0\x07ab\0next";
    let header = frontend_header(frame).unwrap().unwrap();
    assert_eq!(header.body(&frame[..7]), None);
    assert_eq!(header.body(frame), Some(&b"ab\0"[..]));
}

#[test]
fn limits_are_those_of_postgres() {
    let limit = |tag| length_limit(Direction::Frontend, tag).unwrap();
    for tag in *b"BFPQd" {
        assert_eq!(limit(tag), 0x3fff_fffe);
    }
    for tag in *b"CDEHSXcf" {
        assert_eq!(limit(tag), 10_000);
    }
    assert_eq!(limit(b'p'), 65_535);
}

#[test]
fn reports_a_protocol_violation() {
    let unknown = frontend_header(b"z").unwrap_err();
    assert_eq!(unknown.to_string(), "invalid frontend message type 122");
    assert_eq!(unknown.sqlstate(), "08P01");
    assert!(!unknown.is_silent());
    let short = frontend_header(&frame_head(b'Q', 3)).unwrap_err();
    assert_eq!(
        short.to_string(),
        "invalid message length 3 in frontend message type Q"
    );
    assert!(short.is_silent());
}
