//! Descriptions and the places of their OIDs.

use super::*;
use crate::testing::assert_exact;

fn column(name: &[u8], type_oid: u32, format: u16) -> Vec<u8> {
    [
        name,
        b"\0",
        &16_384u32.to_be_bytes(),
        &3i16.to_be_bytes(),
        &type_oid.to_be_bytes(),
        &(-1i16).to_be_bytes(),
        &14i32.to_be_bytes(),
        &format.to_be_bytes(),
    ]
    .concat()
}

fn row(columns: &[Vec<u8>]) -> Vec<u8> {
    let count = (columns.len() as u16).to_be_bytes();
    [&count[..], &columns.concat()].concat()
}

#[test]
fn row_description() {
    let body = row(&[
        column(b"id", 23, 0),
        column(b"", 90_001, 1),
        column(b"b\xe4", 17, 0),
    ]);
    let parsed = RowDescription::parse(&body).unwrap();
    assert_eq!((parsed.len(), parsed.is_empty()), (3, false));
    let fields: Vec<_> = parsed.fields().collect();
    assert_eq!(
        fields.iter().map(|field| field.name).collect::<Vec<_>>(),
        [&b"id"[..], b"", b"b\xe4"]
    );
    assert_eq!(
        parsed.field(1),
        Some(FieldView {
            name: b"",
            table_oid: 16_384,
            column: 3,
            type_oid: 90_001,
            type_len: -1,
            type_modifier: 14,
            format: 1,
            type_oid_at: 2 + 21 + 1 + 6,
        })
    );
    assert_eq!(parsed.field(3), None);
    assert_exact(&body, &mut Vec::new(), RowDescription::parse);
}

#[test]
fn row_descriptions_that_lie() {
    let empty = RowDescription::parse(&[0, 0]).unwrap();
    assert!(empty.is_empty());
    assert_eq!(empty.fields().count(), 0);
    let mut body = row(&[column(b"id", 23, 0)]);
    for count in [0u16, 2, 0x7fff, 0x8000, 0xffff] {
        body[..2].copy_from_slice(&count.to_be_bytes());
        assert!(RowDescription::parse(&body).is_err(), "{count}");
    }
}

#[test]
fn patches_one_oid_and_nothing_else() {
    let body = row(&[column(b"id", 23, 0), column(b"body", 90_001, 0)]);
    let mut patched = body.clone();
    let at = RowDescription::parse(&body)
        .unwrap()
        .field(1)
        .unwrap()
        .type_oid_at;
    assert!(patch_oid(&mut patched, at, 25));
    assert_eq!(
        patched,
        row(&[column(b"id", 23, 0), column(b"body", 25, 0)])
    );
}

#[test]
fn parameter_description() {
    let body = [&[0, 2][..], &25u32.to_be_bytes(), &90_001u32.to_be_bytes()].concat();
    let parsed = ParameterDescription::parse(&body).unwrap();
    assert_eq!((parsed.len(), parsed.is_empty()), (2, false));
    assert_eq!(parsed.types().collect::<Vec<_>>(), [(2, 25), (6, 90_001)]);
    assert_eq!(
        [0, 1, 2].map(|i| parsed.type_oid(i)),
        [Some(25), Some(90_001), None]
    );
    assert_exact(&body, &mut Vec::new(), ParameterDescription::parse);
    let mut patched = body.clone();
    assert!(patch_oid(&mut patched, 6, 25));
    let types: Vec<_> = ParameterDescription::parse(&patched)
        .unwrap()
        .types()
        .collect();
    assert_eq!(types, [(2, 25), (6, 25)]);
    assert!(ParameterDescription::parse(b"\0\0").unwrap().is_empty());
    assert!(ParameterDescription::parse(b"\xff\xff\0\0\0\x19").is_err());
}

#[test]
fn a_patch_outside_the_body_writes_nothing() {
    let mut body = [1; 6];
    for at in [3, 6, 7, usize::MAX] {
        assert!(!patch_oid(&mut body, at, 25), "{at}");
    }
    assert_eq!(body, [1; 6]);
}
