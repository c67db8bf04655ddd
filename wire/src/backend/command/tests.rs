//! CommandComplete, ReadyForQuery, the copy responses.

use super::*;
use crate::testing::{assert_exact, body};

#[test]
fn command_tags_and_their_rows() {
    let cases: [(&[u8], Option<u64>); 9] = [
        (b"SELECT 3", Some(3)),
        (b"INSERT 0 1", Some(1)),
        (b"COPY 0", Some(0)),
        (b"UPDATE 18446744073709551615", Some(u64::MAX)),
        (b"UPDATE 18446744073709551616", None),
        (b"CREATE TABLE", None),
        (b"BEGIN", None),
        (b"7", None),
        (b"", None),
    ];
    for (tag, rows) in cases {
        let mut frame = Vec::new();
        encode_command_complete(&mut frame, tag).unwrap();
        let parsed = CommandComplete::parse(body(&frame)).unwrap();
        assert_eq!((parsed.tag, parsed.rows()), (tag, rows));
        assert_exact(body(&frame), &mut Vec::new(), CommandComplete::parse);
    }
}

#[test]
fn a_trailing_blank_or_sign_counts_no_rows() {
    for tag in [&b"SELECT "[..], b"SELECT +1", b"SELECT -1"] {
        assert_eq!(CommandComplete { tag }.rows(), None);
    }
}

#[test]
fn ready_for_query() {
    for status in *b"ITE" {
        let mut frame = Vec::new();
        encode_ready_for_query(&mut frame, status);
        assert_eq!(ready_for_query_status(body(&frame)), Ok(status));
        assert_exact(body(&frame), &mut Vec::new(), ready_for_query_status);
    }
    assert_eq!(
        ready_for_query_status(b"X"),
        Err(MessageError::TransactionStatus { status: b'X' })
    );
}

#[test]
fn copy_responses() {
    let cases: [(&[u8], u8, &[i16]); 3] = [
        (b"\0\0\0", 0, &[]),
        (b"\0\0\x02\0\0\0\0", 0, &[0, 0]),
        (b"\x01\0\x01\0\x01", 1, &[1]),
    ];
    for (bytes, overall, formats) in cases {
        let parsed = CopyResponse::parse(bytes).unwrap();
        assert_eq!(parsed.overall_format, overall);
        assert_eq!(parsed.column_count(), formats.len());
        let codes: Vec<_> = parsed.column_formats.codes().collect();
        assert_eq!(codes, formats);
        assert_exact(bytes, &mut Vec::new(), CopyResponse::parse);
    }
    assert!(CopyResponse::parse(b"\0\xff\xff\0\0").is_err());
}
