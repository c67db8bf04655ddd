//! Tests of references: byte table, spellings, and that nothing else passes for one.

use proptest::prelude::*;

use super::*;

const KINDS: [ValueKind; 5] = [
    ValueKind::Text,
    ValueKind::Varchar,
    ValueKind::Json,
    ValueKind::Jsonb,
    ValueKind::Bytea,
];

fn key() -> StoreKey {
    StoreKey::new([7; 32])
}

fn address(kind: ValueKind) -> Address {
    Address {
        kind,
        codec: Codec::Lz4,
        segment: 0x0102_0304,
        offset: 0x1112_1318,
        stored_len: 0x2122_2324,
        logical_len: 0x3132_3334,
        char_len: 0x4142_4344,
        identity: Identity(*b"0123456789abcdef"),
    }
}

/// Proves: the byte table of docs/format/reference-v1.md, field by field.
#[test]
fn fields_stand_where_the_page_says() {
    let reference = Reference::seal(&key(), address(ValueKind::Jsonb));
    let fields = reference.fields();
    assert_eq!(fields[0], 1);
    assert_eq!(fields[1], 0x14);
    assert_eq!(fields[2..6], [4, 3, 2, 1]);
    assert_eq!(fields[6..10], [0x18, 0x13, 0x12, 0x11]);
    assert_eq!(fields[10..14], [0x24, 0x23, 0x22, 0x21]);
    assert_eq!(fields[14..18], [0x34, 0x33, 0x32, 0x31]);
    assert_eq!(fields[18..22], [0x44, 0x43, 0x42, 0x41]);
    assert_eq!(fields[22..38], *b"0123456789abcdef");
    let mac_key = blake3::derive_key("toastrack 2026 reference mac v1", &[7; 32]);
    let mac = blake3::keyed_hash(&mac_key, &fields[..38]);
    assert_eq!(fields[38..], mac.as_bytes()[..4]);
}

/// Proves: every kind's own spelling reads back, has the length it should, and stands only in
/// columns that may hold it.
#[test]
fn spellings_read_back_where_they_may_stand() {
    let key = key();
    for kind in KINDS {
        let reference = Reference::seal(&key, address(kind));
        let spelling = reference.spelling();
        let expected_len = match kind {
            ValueKind::Text | ValueKind::Varchar => 62,
            ValueKind::Json | ValueKind::Jsonb => 64,
            ValueKind::Bytea => 50,
        };
        assert_eq!(spelling.len(), expected_len);
        assert!(begins_like_reference(kind, &spelling));
        assert_eq!(Reference::parse(&key, kind, &spelling), Some(reference));
        assert_eq!(
            Reference::parse_text(&key, &reference.to_text()),
            Some(reference)
        );
    }
    let bytea = Reference::seal(&key, address(ValueKind::Bytea));
    assert_eq!(
        Reference::parse(&key, ValueKind::Text, &bytea.to_text()),
        None
    );
    let text = Reference::seal(&key, address(ValueKind::Text));
    assert_eq!(
        Reference::parse(&key, ValueKind::Jsonb, &text.to_json()),
        None
    );
    assert_eq!(
        Reference::parse(&key, ValueKind::Bytea, &text.to_binary()),
        None
    );
    let jsonb = Reference::seal(&key, address(ValueKind::Jsonb));
    assert_eq!(
        Reference::parse(&key, ValueKind::Text, &jsonb.to_text()),
        Some(jsonb)
    );
}

/// Proves: a reference with any bit changed, cut or lengthened is ordinary data.
#[test]
fn every_changed_bit_makes_ordinary_data() {
    let key = key();
    for kind in KINDS {
        let spelled = Reference::seal(&key, address(kind)).spelling().to_vec();
        for bit in 0..spelled.len() * 8 {
            let mut changed = spelled.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Reference::parse(&key, kind, &changed), None, "bit {bit}");
        }
        for len in 0..spelled.len() {
            assert_eq!(Reference::parse(&key, kind, &spelled[..len]), None);
        }
        let mut longer = spelled.clone();
        longer.push(b'"');
        assert_eq!(Reference::parse(&key, kind, &longer), None);
    }
}

/// Proves: a reference of another store is ordinary data here.
#[test]
fn another_key_does_not_verify() {
    let spelled = Reference::seal(&key(), address(ValueKind::Text)).spelling();
    let other = StoreKey::new([8; 32]);
    assert_eq!(Reference::parse(&other, ValueKind::Text, &spelled), None);
}

/// Proves: unknown version, kind, codec and reserved bits are ordinary data even under a right MAC.
#[test]
fn unknown_fields_are_ordinary_data() {
    let key = key();
    let good = Reference::seal(&key, address(ValueKind::Bytea)).to_binary();
    for (at, byte) in [
        (8, 0),
        (8, 2),
        (9, 0),
        (9, 6),
        (9, 7),
        (9, 0x0D),
        (9, 0x85),
        (9, 0x35),
    ] {
        let mut forged = good;
        forged[at] = byte;
        let mac = key.mac(&forged[8..46]);
        forged[46..].copy_from_slice(&mac);
        assert_eq!(
            Reference::parse(&key, ValueKind::Bytea, &forged),
            None,
            "byte {at} = {byte:#x}"
        );
    }
}

/// Proves: what begins like a reference, kind by kind.
#[test]
fn looks_are_judged_by_kind() {
    use ValueKind::*;
    let cases: [(ValueKind, &[u8], bool); 20] = [
        (Text, b"toast:", true),
        (Text, b"toast:and more", true),
        (Text, b"toast", false),
        (Text, b" toast:", false),
        (Text, b"Toast:", false),
        (Text, b"", false),
        (Varchar, b"toast:x", true),
        (Json, b"\"toast:x\"", true),
        (Json, b" \t\r\n\"toast:x\"", true),
        (Json, b"toast:", false),
        (Json, b"{\"a\":\"toast:\"}", false),
        (Json, b"\"\\u0074oast:x\"", false),
        (Jsonb, b"\"\\u0074oast:x\"", true),
        (Jsonb, b" \"t\\u006Fast\\u003a\"", true),
        (Jsonb, b"\"\\u+074oast:x\"", false),
        (Jsonb, b"\"\\u00", false),
        (Jsonb, b"\"\\u0174oast:x\"", false),
        (Bytea, b"\xF7TOAST\r\nx", true),
        (Bytea, b"\xF7TOAST\r", false),
        (Bytea, b"toast:", false),
    ];
    for (kind, value, expected) in cases {
        assert_eq!(
            begins_like_reference(kind, value),
            expected,
            "{kind:?} {}",
            value.escape_ascii()
        );
    }
}

proptest! {
    /// Proves: no bytes panic the parser, and what parses begins like a reference.
    #[test]
    fn arbitrary_bytes_never_panic(
        code in 1u8..=5,
        field in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..80),
            "\"?toast:[A-Za-z0-9_-]{56}\"?".prop_map(String::into_bytes),
        ],
    ) {
        let kind = ValueKind::from_code(code).expect("codes 1 to 5 are kinds");
        if Reference::parse(&key(), kind, &field).is_some() {
            prop_assert!(begins_like_reference(kind, &field));
        }
    }
}
