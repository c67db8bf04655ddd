//! The payload of a manifest: the pieces of a value that is longer than one record holds.
//!
//! Promises: what parses names pieces that this store wrote, in order, whose lengths add up to the
//!           value's.
//! Format:   docs/format/segment-v1.md, "Manifest"

use crate::MAX_RECORD_LEN;
use crate::error::StoreError;
use crate::key::StoreKey;
use crate::kind::{Codec, ValueKind};
use crate::reference::{Address, FIELDS_LEN, Reference};

/// The pieces that a value is stored in.
pub(crate) fn pieces(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.chunks(MAX_RECORD_LEN)
}

/// Adds a piece to a manifest's payload.
pub(crate) fn push(payload: &mut Vec<u8>, piece: &Reference) {
    payload.extend_from_slice(&piece.fields());
}

/// Bytes of the payload for a value of this length.
pub(crate) fn payload_len(value_len: usize) -> usize {
    value_len.div_ceil(MAX_RECORD_LEN) * FIELDS_LEN
}

/// The value of the manifest at `address` with this payload, from its pieces as `read` gives them,
/// verified. The identity of the whole is left to the caller.
pub(crate) fn assemble<P: AsRef<[u8]>>(
    key: &StoreKey,
    address: &Address,
    payload: &[u8],
    read: impl Fn(&Address) -> Result<P, StoreError>,
) -> Result<Vec<u8>, StoreError> {
    let pieces = pieces_of(key, address, payload)?;
    // The lengths of the pieces add up to this.
    let mut value = Vec::with_capacity(address.logical_len as usize);
    for piece in &pieces {
        value.extend_from_slice(read(piece)?.as_ref());
    }
    Ok(value)
}

/// The pieces that the manifest at `address` names with this payload.
pub(crate) fn pieces_of(
    key: &StoreKey,
    address: &Address,
    payload: &[u8],
) -> Result<Vec<Address>, StoreError> {
    parse(key, payload, address.logical_len as usize).ok_or_else(|| {
        let seen = "its list of pieces is not one";
        StoreError::corrupt(address.segment, address.offset, seen)
    })
}

/// The pieces that a payload names. `None` when it is not one of a value of `logical_len` bytes, or
/// names something that is no piece.
pub(crate) fn parse(key: &StoreKey, payload: &[u8], logical_len: usize) -> Option<Vec<Address>> {
    if payload.len() != payload_len(logical_len) {
        return None;
    }
    let mut left = logical_len;
    let mut found = Vec::with_capacity(payload.len() / FIELDS_LEN);
    for fields in payload.as_chunks::<FIELDS_LEN>().0 {
        let address = *Reference::verified(key, fields)?.address();
        let len = left.min(MAX_RECORD_LEN);
        let is_piece = address.kind == ValueKind::Bytea && address.codec != Codec::Manifest;
        if !is_piece || address.logical_len as usize != len {
            return None;
        }
        left -= len;
        found.push(address);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Identity;

    fn piece(key: &StoreKey, codec: Codec, logical_len: usize) -> Reference {
        let address = Address {
            kind: ValueKind::Bytea,
            codec,
            segment: 3,
            offset: 4096,
            stored_len: 100,
            logical_len: logical_len as u32,
            char_len: logical_len as u32,
            identity: Identity([7; 16]),
        };
        Reference::seal(key, address)
    }

    /// Proves: pieces come back in order; a payload of another length, of pieces of other lengths, of
    /// manifests, or of another store is none.
    #[test]
    fn only_whole_lists_of_pieces_parse() {
        let key = StoreKey::new([1; 32]);
        let (len, last) = (MAX_RECORD_LEN + 5, 5);
        let list = |pieces: [Reference; 2]| {
            let mut payload = Vec::new();
            pieces.iter().for_each(|piece| push(&mut payload, piece));
            payload
        };
        let first = piece(&key, Codec::Lz4, MAX_RECORD_LEN);
        let second = piece(&key, Codec::Raw, last);
        let payload = list([first, second]);
        assert_eq!(payload.len(), payload_len(len));
        let parsed = parse(&key, &payload, len).unwrap();
        assert_eq!(parsed, [*first.address(), *second.address()]);

        assert_eq!(parse(&key, &payload, len + 1), None);
        assert_eq!(parse(&key, &payload, 2 * MAX_RECORD_LEN + 1), None);
        assert_eq!(parse(&key, &payload[1..], len), None);
        assert_eq!(parse(&key, &list([second, first]), len), None);
        let nested = piece(&key, Codec::Manifest, MAX_RECORD_LEN);
        assert_eq!(parse(&key, &list([nested, second]), len), None);
        assert_eq!(parse(&StoreKey::new([2; 32]), &payload, len), None);
        for at in 0..payload.len() {
            let mut flipped = payload.clone();
            flipped[at] ^= 1;
            assert_eq!(parse(&key, &flipped, len), None, "byte {at}");
        }
    }
}
