//! Settings, keys, authentication, notifications.

use super::*;
use crate::testing::{assert_exact, body};

#[test]
fn parameter_status() {
    let mut frame = Vec::new();
    encode_parameter_status(&mut frame, b"client_encoding", b"UTF8").unwrap();
    assert_eq!(frame[0], b'S');
    assert_eq!(
        ParameterStatus::parse(body(&frame)),
        Ok(ParameterStatus {
            name: b"client_encoding",
            value: b"UTF8"
        })
    );
    assert_exact(body(&frame), &mut Vec::new(), ParameterStatus::parse);
    let refused = encode_parameter_status(&mut frame, b"a\0", b"");
    assert!(matches!(refused, Err(EncodeError::ZeroByte { .. })));
}

#[test]
fn backend_key_data() {
    for key_len in 0..=257 {
        let body = [&77u32.to_be_bytes()[..], &vec![5; key_len]].concat();
        let parsed = BackendKeyData::parse(&body);
        if (4..=256).contains(&key_len) {
            let key = &body[4..];
            assert!(parsed == Ok(BackendKeyData { pid: 77, key }), "{key_len}");
        } else {
            let length = key_len;
            assert!(parsed == Err(MessageError::CancelKeyLength { length }));
        }
    }
    assert!(matches!(
        BackendKeyData::parse(b"\0\0\0"),
        Err(MessageError::Truncated { .. })
    ));
}

#[test]
fn a_cancel_key_is_not_printed() {
    let data = BackendKeyData {
        pid: 77,
        key: b"secret!!",
    };
    assert_eq!(
        format!("{data:?}"),
        r#"BackendKeyData { pid: 77, key: "***" }"#
    );
}

#[test]
fn authentication() {
    let cases: [(&[u8], u32, &[u8]); 3] = [
        (b"\0\0\0\0", Authentication::OK, b""),
        (b"\0\0\0\x05salt", Authentication::MD5_PASSWORD, b"salt"),
        (
            b"\0\0\0\x0aSCRAM-SHA-256\0\0",
            Authentication::SASL,
            b"SCRAM-SHA-256\0\0",
        ),
    ];
    for (bytes, code, data) in cases {
        assert_eq!(
            Authentication::parse(bytes),
            Ok(Authentication { code, data })
        );
    }
    for cut in 0..4 {
        assert!(Authentication::parse(&b"\0\0\0\0"[..cut]).is_err());
    }
}

#[test]
fn notification_response() {
    let bytes = b"\0\0\0\x4dchannel\0payload\0";
    assert_eq!(
        NotificationResponse::parse(bytes),
        Ok(NotificationResponse {
            pid: 77,
            channel: b"channel",
            payload: b"payload"
        })
    );
    assert_exact(bytes, &mut Vec::new(), NotificationResponse::parse);
}
