//! What broke other proxies below the session: absurd lengths, and decoders that trusted a frame.

use toastrack_wire::frontend::parse_empty;
use toastrack_wire::{
    Bind, DataRow, FrameError, MessageError, Query, Startup, backend_header, frontend_header,
    parse_startup,
};

use crate::decoders::{DECODERS, Decoder, assert_inside, is_open_ended};

const FRONTEND_TAGS: &[u8] = b"BCDEFHPQSXcdfp";
const BACKEND_TAGS: &[u8] = b"123ACDEGHIKNRSTVWZcdnstv";
/// No message, in either direction, may have one of these lengths.
const ABSURD: [i32; 6] = [-1, 0, 3, i32::MAX, i32::MIN, 0x4000_0003];

/// Proves that a length no message can have is refused when its four bytes are there, in every
/// phase and for every tag, so that nothing is ever allocated or awaited for it.
#[test]
fn wire_bug_15_length_fields() {
    for length in ABSURD {
        let bytes = length.to_be_bytes();
        assert_eq!(
            parse_startup(&bytes),
            Err(FrameError::StartupLength { length })
        );
        for &tag in FRONTEND_TAGS {
            let refused = frontend_header(&[&[tag], &bytes[..]].concat()).unwrap_err();
            assert_eq!(refused.sqlstate(), "08P01", "{refused}");
        }
        for &tag in BACKEND_TAGS {
            let refused = backend_header(&[&[tag], &bytes[..]].concat()).unwrap_err();
            assert_eq!(refused.sqlstate(), "08P01", "{refused}");
        }
    }
}

/// Proves the same for the ways in which text of another protocol has been read as a length.
#[test]
fn wire_bug_15_plain_text() {
    for text in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"SSH-2.0-x\r\n",
        b"\x16\x03\x01\x02\0\x01\0",
    ] {
        assert!(matches!(
            parse_startup(text),
            Err(FrameError::StartupLength { .. })
        ));
    }
    assert!(matches!(
        backend_header(b"HTTP/1.1 400 Bad Request\r\n"),
        Err(FrameError::LengthTooLarge { tag: b'H', .. })
    ));
    // How a server answers protocol 2.
    assert!(matches!(
        backend_header(b"EFATAL:  unsupported frontend protocol 2.0\n\0"),
        Err(FrameError::LengthTooLarge { tag: b'E', .. })
    ));
}

/// Proves that no decoder reads beyond its frame: each one gets its sample with any one byte, or
/// any four as a length, replaced, while another message follows in the same buffer.
#[test]
fn wire_bug_17_frames_that_lie() {
    const NEXT: &[u8] = b"Q\0\0\0\x0dselect 2\0\0\0\0\0\0\0\0\0";
    for Decoder {
        name,
        decode,
        sample,
    } in DECODERS
    {
        let run = |buffer: &[u8]| {
            let body = &buffer[..sample.len()];
            let decoded = decode(body);
            if let Ok(slices) = &decoded {
                assert_inside(name, body, slices);
            }
            decoded.is_ok()
        };
        assert!(run(&[sample, NEXT].concat()), "{name}: the sample itself");
        for at in 0..sample.len() {
            for byte in 0..=u8::MAX {
                let mut buffer = [sample, NEXT].concat();
                buffer[at] = byte;
                run(&buffer);
            }
        }
        for at in 0..sample.len().saturating_sub(3) {
            let reach = sample.len() - at - 4;
            for length in [-2, -1, 0, 1, reach as i32, reach as i32 + 1, 60, i32::MAX] {
                let mut buffer = [sample, NEXT].concat();
                buffer[at..at + 4].copy_from_slice(&length.to_be_bytes());
                run(&buffer);
            }
        }
    }
}

/// Proves that a body must be used up: a byte less or more is an error, not another message.
#[test]
fn wire_bug_17_cut_and_longer() {
    for Decoder {
        name,
        decode,
        sample,
    } in DECODERS
    {
        if is_open_ended(name) {
            continue;
        }
        for cut in 0..sample.len() {
            assert!(decode(&sample[..cut]).is_err(), "{name} cut at {cut}");
        }
        for more in [&b"\0"[..], b"Q\0\0\0\x04", b"\0\0\0\0\0\0\0\0"] {
            let longer = [sample, more].concat();
            assert!(
                matches!(decode(&longer), Err(MessageError::Trailing { left, .. }) if left == more.len()),
                "{name} with {} bytes more",
                more.len()
            );
        }
    }
}

/// Proves the two cases that were seen in public, as they were seen.
#[test]
fn wire_bug_17_as_reported() {
    // A Bind whose only parameter claims the Sync behind it.
    let stream = b"B\0\0\0\x11\0\0\0\0\0\x01\0\0\0\x05a\0\0S\0\0\0\x04";
    let header = frontend_header(stream).unwrap().unwrap();
    assert!(Bind::parse(header.body(stream).unwrap()).is_err());
    // The same with a length that would just fit: accepted, and the Sync is still there.
    let stream = b"B\0\0\0\x11\0\0\0\0\0\x01\0\0\0\x01a\0\0S\0\0\0\x04";
    let header = frontend_header(stream).unwrap().unwrap();
    let bind = Bind::parse(header.body(stream).unwrap()).unwrap();
    assert_eq!(bind.param(0), Some(&b"a"[..]));
    assert_eq!(&stream[header.len..], b"S\0\0\0\x04");
    // A Sync with a Query inside.
    let stream = b"S\0\0\0\x0dQ\0\0\0\x08drop";
    let header = frontend_header(stream).unwrap().unwrap();
    assert_eq!(header.len, 14);
    assert!(parse_empty("Sync", &stream[5..]).is_err());
    // A DataRow of more columns than it has, and a Query whose text ends early.
    assert!(DataRow::parse(b"\0\x02\0\0\0\x01a").is_err());
    assert!(Query::parse(b"select 1\0drop table t\0").is_err());
}

/// Proves that bytes behind a packet stay where they are, for the session to judge.
#[test]
fn bytes_behind_a_startup_packet_are_not_consumed() {
    let stream = b"\0\0\0\x08\x04\xd2\x16\x2f\0\0\0\x08";
    assert_eq!(parse_startup(stream), Ok(Some((Startup::Ssl, 8))));
}
