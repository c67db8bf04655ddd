//! References: 42 bytes of fields in three spellings.
//!
//! Promises:   a `Reference` outside this crate was either made by `put` or had its MAC verified.
//! Invariants: R1 a reference has exactly one spelling per kind. R2 anything that does not verify is
//!             ordinary data, never an error (S5, S9).
//! Format:     docs/format/reference-v1.md
//! Proof:      tests in reference/tests.rs

mod prefix;
mod spelling;

#[cfg(test)]
mod tests;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

pub use self::prefix::begins_like_reference;
pub use self::spelling::Spelling;

use crate::key::{Identity, StoreKey};
use crate::kind::{Codec, ValueKind};

/// Length of the text spelling.
pub const TEXT_LEN: usize = 62;
/// Length of the JSON spelling, quotes included.
pub const JSON_LEN: usize = 64;
/// Length of the bytea spelling.
pub const BINARY_LEN: usize = 50;
/// What the text spelling begins with.
pub const TEXT_PREFIX: &[u8; 6] = b"toast:";
/// What the bytea spelling begins with.
pub const BINARY_MAGIC: &[u8; 8] = b"\xF7TOAST\r\n";

const VERSION: u8 = 1;
pub(crate) const FIELDS_LEN: usize = 42;
const MAC_AT: usize = 38;
const BASE64_LEN: usize = FIELDS_LEN / 3 * 4;

const _: () = {
    assert!(FIELDS_LEN.is_multiple_of(3));
    assert!(TEXT_LEN == TEXT_PREFIX.len() + BASE64_LEN);
    assert!(JSON_LEN == TEXT_LEN + 2);
    assert!(BINARY_LEN == BINARY_MAGIC.len() + FIELDS_LEN);
};

/// Names one value in the store: where it is, how long it is, and what it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reference {
    address: Address,
    mac: [u8; 4],
}

/// What a reference and a record say alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) kind: ValueKind,
    pub(crate) codec: Codec,
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(crate) stored_len: u32,
    pub(crate) logical_len: u32,
    pub(crate) char_len: u32,
    pub(crate) identity: Identity,
}

impl Reference {
    /// The SQL type of the value.
    pub fn kind(&self) -> ValueKind {
        self.address.kind
    }

    /// How the payload is stored.
    pub fn codec(&self) -> Codec {
        self.address.codec
    }

    /// Number of the segment.
    pub fn segment(&self) -> u32 {
        self.address.segment
    }

    /// Bytes from the start of the segment file to the record.
    pub fn offset(&self) -> u32 {
        self.address.offset
    }

    /// Bytes of the payload as stored.
    pub fn stored_len(&self) -> u32 {
        self.address.stored_len
    }

    /// Bytes of the value.
    pub fn logical_len(&self) -> u32 {
        self.address.logical_len
    }

    /// Characters of the value; bytes for bytea.
    pub fn char_len(&self) -> u32 {
        self.address.char_len
    }

    /// Keyed hash of the value.
    pub fn identity(&self) -> Identity {
        self.address.identity
    }

    /// The text spelling: `toast:` and 56 characters of base64.
    pub fn to_text(&self) -> [u8; TEXT_LEN] {
        let mut out = [0u8; TEXT_LEN];
        self.write_text(&mut out);
        out
    }

    /// The text spelling between double quotes.
    pub fn to_json(&self) -> [u8; JSON_LEN] {
        let mut out = [b'"'; JSON_LEN];
        self.write_text(&mut out[1..JSON_LEN - 1]);
        out
    }

    /// The spelling in bytea: magic and fields, raw.
    pub fn to_binary(&self) -> [u8; BINARY_LEN] {
        let mut out = [0u8; BINARY_LEN];
        let (magic, fields) = out.split_at_mut(BINARY_MAGIC.len());
        magic.copy_from_slice(BINARY_MAGIC);
        fields.copy_from_slice(&self.fields());
        out
    }

    /// The spelling that stands in the row for the value's kind: text form for text, varchar, json
    /// and jsonb; raw bytes for bytea.
    pub fn spelling(&self) -> Spelling {
        match self.address.kind {
            ValueKind::Text | ValueKind::Varchar => Spelling::new(&self.to_text()),
            ValueKind::Json | ValueKind::Jsonb => Spelling::new(&self.to_json()),
            ValueKind::Bytea => Spelling::new(&self.to_binary()),
        }
    }

    pub(crate) fn seal(key: &StoreKey, address: Address) -> Reference {
        let mac = key.mac(&address.to_bytes());
        Reference { address, mac }
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Reads a field of a column of `kind`. `None`: ordinary data.
    pub(crate) fn parse(key: &StoreKey, kind: ValueKind, field: &[u8]) -> Option<Reference> {
        let reference = match kind {
            ValueKind::Text | ValueKind::Varchar => Reference::parse_text(key, field)?,
            ValueKind::Json | ValueKind::Jsonb => {
                let inner = field.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
                Reference::parse_text(key, inner)?
            }
            ValueKind::Bytea => {
                let fields = field.strip_prefix(BINARY_MAGIC)?;
                Reference::verified(key, fields.try_into().ok()?)?
            }
        };
        stands_in(kind, reference.kind()).then_some(reference)
    }

    /// Reads the text spelling of a reference of any kind. `None`: ordinary data.
    pub(crate) fn parse_text(key: &StoreKey, field: &[u8]) -> Option<Reference> {
        if field.len() != TEXT_LEN {
            return None;
        }
        let encoded = field.strip_prefix(TEXT_PREFIX)?;
        let mut fields = [0u8; FIELDS_LEN];
        let written = URL_SAFE_NO_PAD.decode_slice(encoded, &mut fields).ok()?;
        if written != FIELDS_LEN {
            return None;
        }
        Reference::verified(key, &fields)
    }

    pub(crate) fn verified(key: &StoreKey, fields: &[u8; FIELDS_LEN]) -> Option<Reference> {
        let (covered, mac) = fields.split_at(MAC_AT);
        // Cheap refusals first; the comparison need not take constant time, since nobody gets to
        // see how long it took among everything else a statement does.
        let address = Address::from_bytes(covered.try_into().ok()?)?;
        if key.mac(covered) != *mac {
            return None;
        }
        Some(Reference {
            address,
            mac: mac.try_into().ok()?,
        })
    }

    pub(crate) fn fields(&self) -> [u8; FIELDS_LEN] {
        let mut out = [0u8; FIELDS_LEN];
        out[..MAC_AT].copy_from_slice(&self.address.to_bytes());
        out[MAC_AT..].copy_from_slice(&self.mac);
        out
    }

    fn write_text(&self, out: &mut [u8]) {
        let (prefix, encoded) = out.split_at_mut(TEXT_PREFIX.len());
        prefix.copy_from_slice(TEXT_PREFIX);
        let written = URL_SAFE_NO_PAD.encode_slice(self.fields(), encoded);
        debug_assert_eq!(written, Ok(BASE64_LEN));
    }
}

impl fmt::Debug for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl Address {
    fn to_bytes(self) -> [u8; MAC_AT] {
        let mut out = [0u8; MAC_AT];
        out[0] = VERSION;
        out[1] = self.kind.code() | (self.codec.code() << 4);
        out[2..6].copy_from_slice(&self.segment.to_le_bytes());
        out[6..10].copy_from_slice(&self.offset.to_le_bytes());
        out[10..14].copy_from_slice(&self.stored_len.to_le_bytes());
        out[14..18].copy_from_slice(&self.logical_len.to_le_bytes());
        out[18..22].copy_from_slice(&self.char_len.to_le_bytes());
        out[22..38].copy_from_slice(&self.identity.0);
        out
    }

    fn from_bytes(bytes: &[u8; MAC_AT]) -> Option<Address> {
        if bytes[0] != VERSION || bytes[1] & 0b1000_1000 != 0 {
            return None;
        }
        let word = |at: usize| {
            let mut word = [0u8; 4];
            word.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(word)
        };
        let mut identity = [0u8; 16];
        identity.copy_from_slice(&bytes[22..38]);
        Some(Address {
            kind: ValueKind::from_code(bytes[1] & 0b111)?,
            codec: Codec::from_code(bytes[1] >> 4)?,
            segment: word(2),
            offset: word(6),
            stored_len: word(10),
            logical_len: word(14),
            char_len: word(18),
            identity: Identity(identity),
        })
    }
}

/// Whether a field of a column of kind `column` may hold a reference to a value of kind `value`.
fn stands_in(column: ValueKind, value: ValueKind) -> bool {
    match column {
        ValueKind::Text | ValueKind::Varchar => value != ValueKind::Bytea,
        ValueKind::Json | ValueKind::Jsonb => {
            matches!(value, ValueKind::Json | ValueKind::Jsonb)
        }
        ValueKind::Bytea => value == ValueKind::Bytea,
    }
}
