//! Start-up packets. What is accepted and refused here was tried on PostgreSQL 15.18.

use super::*;

fn packet(code: u32, rest: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_code(&mut out, code, rest);
    out
}

const USER: &[u8] = b"user\0me\0";

#[test]
fn good_packets() {
    let cases: [(&str, Vec<u8>, Startup<'_>); 3] = [
        ("ssl", packet(SSL_REQUEST_CODE, b""), Startup::Ssl),
        // 15.18 answers an SSLRequest of 20 bytes like one of 8.
        (
            "ssl, longer",
            packet(SSL_REQUEST_CODE, &[0; 12]),
            Startup::Ssl,
        ),
        ("gss", packet(GSSENC_REQUEST_CODE, b""), Startup::GssEnc),
    ];
    for (name, bytes, expected) in cases {
        assert_eq!(
            parse_startup(&bytes),
            Ok(Some((expected, bytes.len()))),
            "{name}"
        );
    }
}

#[test]
fn cancel_requests_keep_their_bytes() {
    // Protocol 3.0 has a key of 4 bytes, 3.2 up to 256; what is odd is for the server to judge.
    for key_len in [0, 4, 5, 32, 256] {
        let mut bytes = Vec::new();
        encode_cancel_request(&mut bytes, 77, &vec![9; key_len]).unwrap();
        let frame = bytes.clone();
        bytes.extend_from_slice(b"trailing");
        let expected = Startup::Cancel { frame: &frame };
        assert_eq!(
            parse_startup(&bytes),
            Ok(Some((expected, 12 + key_len))),
            "{key_len}"
        );
    }
    assert!(encode_cancel_request(&mut Vec::new(), 1, &[0; 257]).is_err());
}

#[test]
fn layouts_like_postgres() {
    let cases: [(&str, &[u8], bool); 8] = [
        ("one parameter", b"user\0me\0\0", true),
        // The server then misses a user name and says so itself.
        ("terminator only", b"\0", true),
        ("empty value", b"user\0me\0options\0\0\0", true),
        // An accident of `ProcessStartupPacket`, but it connects.
        ("a name of one byte at the end", b"user\0me\0x", true),
        ("nothing", b"", false),
        ("no terminator", b"user\0me\0", false),
        ("a name without a value", b"user\0me\0ab\0", false),
        ("bytes behind the terminator", b"user\0me\0\0\0", false),
    ];
    for (name, parameters, accepted) in cases {
        let bytes = packet(PROTOCOL_3_0, parameters);
        let parsed = parse_startup(&bytes);
        if accepted {
            let Ok(Some((Startup::Startup(message), used))) = parsed else {
                panic!("{name}: {parsed:?}");
            };
            assert_eq!(used, bytes.len(), "{name}");
            assert_eq!(message.frame, bytes, "{name}");
            assert_eq!(message.protocol, PROTOCOL_3_0, "{name}");
        } else {
            assert_eq!(parsed, Err(FrameError::StartupLayout), "{name}");
        }
    }
}

fn message(bytes: &[u8]) -> StartupMessage<'_> {
    match parse_startup(bytes) {
        Ok(Some((Startup::Startup(message), _))) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn parameters_in_order_and_the_last_of_a_name_wins() {
    let mut bytes = Vec::new();
    let sent: [(&[u8], &[u8]); 4] = [
        (b"user", b"nobody"),
        (b"options", b"-c a=b=c"),
        (b"user", b"me"),
        (b"_pq_.x", b""),
    ];
    encode_startup(&mut bytes, PROTOCOL_3_2, &sent).unwrap();
    let message = message(&bytes);
    assert_eq!(message.parameters().collect::<Vec<_>>(), sent);
    assert_eq!(message.parameter(b"user"), Some(&b"me"[..]));
    assert_eq!(message.parameter(b"options"), Some(&b"-c a=b=c"[..]));
    assert_eq!(message.parameter(b"database"), None);
    assert_eq!((message.major(), message.protocol), (3, 0x0003_0002));
}

#[test]
fn other_majors_are_left_to_the_server() {
    for major in [2, 4] {
        let bytes = packet(major << 16, b"anything");
        let message = message(&bytes);
        assert_eq!(u32::from(message.major()), major);
        assert_eq!(message.parameters().count(), 0);
        assert_eq!(message.frame, bytes);
    }
}

#[test]
fn byte_by_byte() {
    let mut bytes = packet(PROTOCOL_3_0, &[USER, b"\0"].concat());
    for have in 0..bytes.len() {
        assert_eq!(parse_startup(&bytes[..have]), Ok(None), "{have} bytes");
    }
    let len = bytes.len();
    bytes.extend_from_slice(b"next");
    assert_eq!(message(&bytes).frame, &bytes[..len]);
}

#[test]
fn lengths() {
    // Refused as soon as the four bytes are there, so that nothing waits for 2 GiB.
    for length in [-1, 0, 3, 4, 7, i32::MIN, i32::MAX, 65_537] {
        assert_eq!(
            parse_startup(&length.to_be_bytes()),
            Err(FrameError::StartupLength { length })
        );
    }
    for length in [8, 10_004, 20_000, 65_536u32] {
        assert_eq!(parse_startup(&length.to_be_bytes()), Ok(None));
    }
}

#[test]
fn options_of_20_kilobytes_reach_the_server() {
    let options = vec![b'x'; 20_000];
    let mut bytes = Vec::new();
    encode_startup(&mut bytes, PROTOCOL_3_0, &[(b"options", &options)]).unwrap();
    assert_eq!(message(&bytes).parameter(b"options"), Some(&options[..]));
}

#[test]
fn encoders_refuse_what_cannot_be_said() {
    let mut out = b"before".to_vec();
    let zero = encode_startup(&mut out, PROTOCOL_3_0, &[(b"user", b"a\0b")]);
    assert!(matches!(zero, Err(EncodeError::ZeroByte { at: 1, .. })));
    let long = encode_startup(&mut out, PROTOCOL_3_0, &[(b"user", &[b'x'; 65_536])]);
    assert!(matches!(long, Err(EncodeError::TooLong { .. })));
    assert_eq!(out, b"before");
}

#[test]
fn requests_for_encryption() {
    let mut out = Vec::new();
    encode_ssl_request(&mut out);
    encode_gssenc_request(&mut out);
    assert_eq!(parse_startup(&out), Ok(Some((Startup::Ssl, 8))));
    assert_eq!(parse_startup(&out[8..]), Ok(Some((Startup::GssEnc, 8))));
}
