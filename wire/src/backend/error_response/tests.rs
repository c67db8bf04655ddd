//! Errors read and written.

use super::*;
use crate::testing::{assert_exact, body};

/// What PostgreSQL 15.18 sent for a Describe of an unknown kind.
const FROM_POSTGRES: &[u8] = b"SERROR\0VERROR\0C08P01\0Minvalid DESCRIBE message subtype 88\0\
Fpostgres.c\0L4821\0RPostgresMain\0\0";

#[test]
fn reads_what_postgres_sends() {
    let parsed = ErrorFields::parse(FROM_POSTGRES).unwrap();
    let codes: Vec<_> = parsed.iter().map(|(code, _)| code).collect();
    assert_eq!(codes, b"SVCMFLR");
    assert_eq!(parsed.get(b'C'), Some(&b"08P01"[..]));
    assert_eq!(
        parsed.get(b'M'),
        Some(&b"invalid DESCRIBE message subtype 88"[..])
    );
    assert_eq!(parsed.get(b'D'), None);
    assert_exact(FROM_POSTGRES, &mut Vec::new(), ErrorFields::parse);
}

#[test]
fn named_cases() {
    assert_eq!(ErrorFields::parse(b"\0").unwrap().iter().count(), 0);
    let cases: [(&str, &[u8]); 4] = [
        ("nothing, not even a terminator", b""),
        ("a code without a value", b"S"),
        ("a value without its NUL", b"SERROR"),
        ("no terminator", b"SERROR\0"),
    ];
    for (name, bytes) in cases {
        assert!(ErrorFields::parse(bytes).is_err(), "{name}");
    }
}

#[test]
fn writes_in_the_order_of_postgres() {
    let mut out = b"before".to_vec();
    ErrorBuilder::error("58030", "store is full")
        .hint("free some space")
        .detail(format!("{} bytes left", 7))
        .encode(&mut out);
    let frame = &out[6..];
    assert_eq!(frame[0], b'E');
    assert_eq!(
        body(frame),
        b"SERROR\0VERROR\0C58030\0Mstore is full\0D7 bytes left\0Hfree some space\0\0"
    );
}

#[test]
fn severities() {
    let cases = [
        (Severity::Error, "ERROR"),
        (Severity::Fatal, "FATAL"),
        (Severity::Panic, "PANIC"),
        (Severity::Warning, "WARNING"),
        (Severity::Notice, "NOTICE"),
    ];
    for (severity, text) in cases {
        let mut out = Vec::new();
        ErrorBuilder::new(severity, "00000", "x").encode_notice(&mut out);
        assert_eq!(out[0], b'N');
        let parsed = ErrorFields::parse(body(&out)).unwrap();
        assert_eq!(parsed.get(b'S'), Some(text.as_bytes()));
        assert_eq!(parsed.get(b'V'), Some(text.as_bytes()));
    }
}

#[test]
fn texts_are_cut_at_a_zero_byte_and_at_a_character() {
    let mut out = Vec::new();
    ErrorBuilder::fatal("08P01", "before\0after")
        .detail("€".repeat(10_000))
        .encode(&mut out);
    let parsed = ErrorFields::parse(body(&out)).unwrap();
    assert_eq!(parsed.get(b'M'), Some(&b"before"[..]));
    let detail = std::str::from_utf8(parsed.get(b'D').unwrap()).unwrap();
    assert_eq!(detail, "€".repeat(TEXT_MAX_LEN / 3));
}
