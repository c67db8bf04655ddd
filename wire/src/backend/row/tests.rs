//! DataRow: reading, writing, replacing.

use super::*;
use crate::testing::{LYING_LENGTHS, assert_exact, body};

const VALUES: [Option<&[u8]>; 4] = [Some(b"one"), None, Some(b""), Some(b"four")];

fn row(values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = RowWriter::begin(&mut out, values.len() as u16);
    for value in values {
        match value {
            Some(value) => writer.field(value).unwrap(),
            None => writer.null().unwrap(),
        }
    }
    writer.finish().unwrap();
    out
}

#[test]
fn as_postgres_writes_it() {
    assert_eq!(
        row(&VALUES[..3]),
        b"D\0\0\0\x15\0\x03\0\0\0\x03one\xff\xff\xff\xff\0\0\0\0"
    );
}

#[test]
fn good_cut_and_longer() {
    let cases: [&[Option<&[u8]>]; 4] = [&[], &[None], &[Some(b"")], &VALUES];
    for values in cases {
        let frame = row(values);
        let parsed = DataRow::parse(body(&frame)).unwrap();
        assert_eq!(parsed.len(), values.len());
        assert_eq!(parsed.is_empty(), values.is_empty());
        assert_eq!(parsed.fields().collect::<Vec<_>>(), values);
        assert_exact(body(&frame), &mut Vec::new(), DataRow::parse);
    }
}

#[test]
fn lengths_that_lie() {
    let frame = row(&[Some(b"a"), Some(b"bc")]);
    for length in LYING_LENGTHS {
        let mut bytes = body(&frame).to_vec();
        bytes[7..11].copy_from_slice(&length.to_be_bytes());
        assert_eq!(
            DataRow::parse(&bytes),
            Err(MessageError::FieldLength {
                message: "DataRow",
                index: 1,
                length,
                left: 2
            })
        );
    }
}

#[test]
fn counts_that_lie() {
    let frame = row(&[Some(b"a"), None]);
    for count in [0u16, 1, 3, 0x7fff, 0xffff] {
        let mut bytes = body(&frame).to_vec();
        bytes[..2].copy_from_slice(&count.to_be_bytes());
        assert!(DataRow::parse(&bytes).is_err(), "{count}");
    }
}

#[test]
fn replaces_any_subset() {
    let frame = row(&VALUES);
    let parsed = DataRow::parse(body(&frame)).unwrap();
    for subset in 0..16u32 {
        let replace = |i: usize| (subset >> i & 1 == 1).then_some(&b"the value"[..]);
        let mut expected = VALUES;
        for (i, value) in expected.iter_mut().enumerate() {
            *value = replace(i).or(*value);
        }
        let mut out = b"before".to_vec();
        parsed.encode_with(&mut out, replace).unwrap();
        assert_eq!(out, [b"before", &row(&expected)[..]].concat(), "{subset:b}");
    }
}

#[test]
fn fields_in_pieces() {
    let mut out = Vec::new();
    let mut writer = RowWriter::begin(&mut out, 3);
    writer.begin_field(0).unwrap();
    writer.begin_field(5).unwrap();
    writer.piece(b"ab").unwrap();
    writer.piece(b"").unwrap();
    writer.piece(b"cde").unwrap();
    writer.field(b"x").unwrap();
    // Nothing is open any more, whatever was before.
    assert!(matches!(
        writer.piece(b"y"),
        Err(EncodeError::PieceLength { announced: 0, .. })
    ));
    writer.finish().unwrap();
    assert_eq!(out, row(&[Some(b""), Some(b"abcde"), Some(b"x")]));
}

#[test]
fn pieces_must_add_up() {
    let mut out = b"before".to_vec();
    let mut writer = RowWriter::begin(&mut out, 2);
    assert!(matches!(
        writer.piece(b"x"),
        Err(EncodeError::PieceLength {
            announced: 0,
            written: 1
        })
    ));
    writer.begin_field(3).unwrap();
    writer.piece(b"ab").unwrap();
    let missing = EncodeError::PieceLength {
        announced: 3,
        written: 2,
    };
    assert_eq!(writer.null(), Err(missing.clone()));
    assert_eq!(writer.field(b""), Err(missing.clone()));
    assert_eq!(
        writer.piece(b"cd"),
        Err(EncodeError::PieceLength {
            announced: 3,
            written: 4
        })
    );
    assert_eq!(writer.finish(), Err(missing));
    assert_eq!(out, b"before");
}

#[test]
fn columns_must_add_up() {
    let mut out = b"before".to_vec();
    let mut writer = RowWriter::begin(&mut out, 1);
    writer.null().unwrap();
    assert_eq!(
        writer.field(b""),
        Err(EncodeError::ColumnCount {
            announced: 1,
            written: 2
        })
    );
    drop(writer);
    let missing = RowWriter::begin(&mut out, 2).finish();
    assert_eq!(
        missing,
        Err(EncodeError::ColumnCount {
            announced: 2,
            written: 0
        })
    );
    assert_eq!(out, b"before");
}

#[test]
fn a_row_beyond_one_gigabyte_is_refused_before_it_is_built() {
    let mut out = Vec::new();
    let mut writer = RowWriter::begin(&mut out, 2);
    writer.begin_field(0x3fff_fffe - 2 - 4).unwrap();
    drop(writer);
    let mut writer = RowWriter::begin(&mut out, 2);
    let refused = writer.begin_field(0x3fff_fffe - 2 - 4 + 1).unwrap_err();
    assert_eq!(
        refused,
        EncodeError::TooLong {
            tag: b'D',
            length: 0x3fff_fffe + 4 + 1,
            limit: 0x3fff_fffe + 4
        }
    );
    assert_eq!(refused.sqlstate(), "54000");
    assert!(writer.begin_field(usize::MAX).is_err());
    drop(writer);
    assert!(out.is_empty() && out.capacity() < 4096);
}
