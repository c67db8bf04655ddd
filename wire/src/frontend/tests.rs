//! Parse, Describe, Close, Execute, Query and the messages without a body.

use super::*;
use crate::testing::{assert_exact, body};

/// Name of the case, of the statement, its text, its declared types.
type ParseCase = (&'static str, &'static [u8], &'static [u8], &'static [u32]);

#[test]
fn parse_good_cut_and_longer() {
    let cases: [ParseCase; 3] = [
        ("unnamed, nothing declared", b"", b"select 1", &[]),
        ("named, two types", b"s1", b"select $1, $2", &[25, 0]),
        (
            "LATIN1 bytes stay as they are",
            b"\xe4",
            b"select '\xff'",
            &[3802],
        ),
    ];
    for (name, statement, query, types) in cases {
        let mut frame = Vec::new();
        encode_parse(&mut frame, statement, query, types).unwrap();
        let parsed = Parse::parse(body(&frame)).unwrap();
        assert_eq!((parsed.name, parsed.query), (statement, query), "{name}");
        assert_eq!(parsed.param_types().collect::<Vec<_>>(), types, "{name}");
        assert_eq!(parsed.param_type_count(), types.len(), "{name}");
        assert_eq!(parsed.param_type(0), types.first().copied(), "{name}");
        assert_eq!(parsed.param_type(types.len()), None, "{name}");
        assert_exact(body(&frame), &mut Vec::new(), Parse::parse);
    }
}

#[test]
fn parse_with_a_count_that_lies() {
    // A count is unsigned: what looks like -1 is 65,535 types that are not there.
    assert_eq!(
        Parse::parse(b"\0select 1\0\xff\xff"),
        Err(MessageError::Truncated {
            message: "Parse",
            field: "the parameter types",
            needed: 262_140,
            left: 0
        })
    );
}

#[test]
fn parse_keeps_more_types_than_fit_out() {
    let mut out = Vec::new();
    let refused = encode_parse(&mut out, b"", b"", &[0; 65_536]);
    assert!(matches!(
        refused,
        Err(EncodeError::TooMany { count: 65_536, .. })
    ));
    assert!(out.is_empty());
    encode_parse(&mut out, b"", b"", &[7; 65_535]).unwrap();
    let parsed = Parse::parse(body(&out)).unwrap();
    assert_eq!(parsed.param_type(65_534), Some(7));
}

#[test]
fn describe_and_close() {
    for target in [Target::Statement, Target::Portal] {
        for name in [&b""[..], b"p1"] {
            let mut frame = Vec::new();
            encode_describe(&mut frame, target, name).unwrap();
            assert_eq!(Describe::parse(body(&frame)), Ok(Describe { target, name }));
            assert_exact(body(&frame), &mut Vec::new(), Describe::parse);
            frame.clear();
            encode_close(&mut frame, target, name).unwrap();
            assert_eq!(Close::parse(body(&frame)), Ok(Close { target, name }));
            assert_exact(body(&frame), &mut Vec::new(), Close::parse);
        }
    }
}

#[test]
fn a_wrong_subtype_is_judged_last() {
    // As in Postgres: the layout comes first, then the byte.
    let wrong = Describe::parse(b"X\0").unwrap_err();
    assert_eq!(wrong.to_string(), "invalid DESCRIBE message subtype 88");
    assert_eq!(wrong.sqlstate(), "08P01");
    let both = Describe::parse(b"X\0\0");
    assert!(matches!(both, Err(MessageError::Trailing { .. })));
    let close = Close::parse(b"\0\0").unwrap_err();
    assert_eq!(close.to_string(), "invalid CLOSE message subtype 0");
}

#[test]
fn execute() {
    for max_rows in [0, 1, -1, i32::MAX, i32::MIN] {
        let mut frame = Vec::new();
        encode_execute(&mut frame, b"portal", max_rows).unwrap();
        let portal = &b"portal"[..];
        assert_eq!(
            Execute::parse(body(&frame)),
            Ok(Execute { portal, max_rows })
        );
        assert_exact(body(&frame), &mut Vec::new(), Execute::parse);
    }
}

#[test]
fn query() {
    let mut frame = Vec::new();
    encode_query(&mut frame, b"select 1").unwrap();
    assert_eq!(frame, b"Q\0\0\0\x0dselect 1\0");
    let text = &b"select 1"[..];
    assert_eq!(Query::parse(body(&frame)), Ok(Query { text }));
    assert_exact(body(&frame), &mut Vec::new(), Query::parse);
    let inner = Query::parse(b"select\0x\0");
    assert!(matches!(inner, Err(MessageError::Trailing { left: 2, .. })));
}

#[test]
fn names_too_long_for_postgres_are_refused() {
    let mut out = b"before".to_vec();
    let name = vec![b'x'; 9_995];
    for refused in [
        encode_describe(&mut out, Target::Portal, &name),
        encode_close(&mut out, Target::Portal, &name),
        encode_execute(&mut out, &name, 0),
    ] {
        assert!(matches!(refused, Err(EncodeError::TooLong { .. })));
    }
    assert_eq!(out, b"before");
    encode_describe(&mut out, Target::Portal, &name[1..]).unwrap();
}

#[test]
fn messages_without_a_body() {
    let mut out = Vec::new();
    encode_sync(&mut out);
    encode_flush(&mut out);
    encode_terminate(&mut out);
    assert_eq!(out, b"S\0\0\0\x04H\0\0\0\x04X\0\0\0\x04");
    assert_eq!(parse_empty("Sync", b""), Ok(()));
    assert!(parse_empty("Sync", b"Q").is_err());
}
