//! One record: an 80-byte header and a payload.
//!
//! Promises: a record that verifies was written by this store, at this place, and is whole.
//! Format:   docs/format/segment-v1.md, "Record"

use super::StoreId;
use super::bytes::{array_at, put, u32_at};
use crate::MAX_RECORD_LEN;
use crate::key::Identity;
use crate::kind::{Codec, ValueKind};
use crate::reference::Address;

pub(crate) const HEADER_LEN: usize = 80;
pub(crate) const MAGIC: &[u8; 4] = b"TRC1";
/// Records start at multiples of this.
pub(crate) const ALIGNMENT: usize = 8;

const TYPE_VALUE: u8 = 1;
const TYPE_MANIFEST: u8 = 2;
const FLAG_DIGEST: u8 = 1;

const CRC: usize = 4;
const STORED_LEN: usize = CRC + 4;
const LOGICAL_LEN: usize = STORED_LEN + 4;
const CHAR_LEN: usize = LOGICAL_LEN + 4;
const TYPE: usize = CHAR_LEN + 4;
const KIND: usize = TYPE + 1;
const CODEC: usize = KIND + 1;
const FLAGS: usize = CODEC + 1;
const IDENTITY: usize = FLAGS + 1;
const SEGMENT: usize = IDENTITY + 16;
const OFFSET: usize = SEGMENT + 4;
const DIGEST: usize = OFFSET + 4;

const _: () = {
    assert!(HEADER_LEN == DIGEST + 32);
    assert!(HEADER_LEN.is_multiple_of(ALIGNMENT));
};

fn type_of(codec: Codec) -> u8 {
    match codec {
        Codec::Raw | Codec::Lz4 => TYPE_VALUE,
        Codec::Manifest => TYPE_MANIFEST,
    }
}

/// Bytes a record takes in the file, padding included.
pub(crate) const fn footprint(stored_len: usize) -> usize {
    (HEADER_LEN + stored_len).next_multiple_of(ALIGNMENT)
}

/// Writes the record of `address`, padded, over `out`, which is as long as its footprint.
/// `address.stored_len` is `payload.len()`.
pub(crate) fn write(
    out: &mut [u8],
    store_id: &StoreId,
    address: &Address,
    digest: Option<&[u8; 32]>,
    payload: &[u8],
) {
    let mut header = [0u8; HEADER_LEN];
    put(&mut header, 0, MAGIC);
    put(&mut header, STORED_LEN, &address.stored_len.to_le_bytes());
    put(&mut header, LOGICAL_LEN, &address.logical_len.to_le_bytes());
    put(&mut header, CHAR_LEN, &address.char_len.to_le_bytes());
    header[TYPE] = type_of(address.codec);
    header[KIND] = address.kind.code();
    header[CODEC] = address.codec.code();
    put(&mut header, IDENTITY, &address.identity.0);
    put(&mut header, SEGMENT, &address.segment.to_le_bytes());
    put(&mut header, OFFSET, &address.offset.to_le_bytes());
    if let Some(digest) = digest {
        header[FLAGS] = FLAG_DIGEST;
        put(&mut header, DIGEST, digest);
    }
    let crc = checksum(store_id, &header, payload);
    put(&mut header, CRC, &crc.to_le_bytes());

    put(out, 0, &header);
    put(out, HEADER_LEN, payload);
    out[HEADER_LEN + payload.len()..].fill(0);
}

/// What the checksum of a record with this header and payload should be.
pub(crate) fn checksum(store_id: &StoreId, header: &[u8; HEADER_LEN], payload: &[u8]) -> u32 {
    let crc = crc32c::crc32c(store_id);
    let crc = crc32c::crc32c_append(crc, &header[STORED_LEN..]);
    crc32c::crc32c_append(crc, payload)
}

/// The stored length that a header claims, if it claims to be a record at `offset` of `segment`;
/// says nothing about the rest.
pub(crate) fn claimed_stored_len(
    header: &[u8; HEADER_LEN],
    segment: u32,
    offset: u32,
) -> Option<usize> {
    let stored_len = u32_at(header, STORED_LEN) as usize;
    let claims = header.starts_with(MAGIC)
        && u32_at(header, SEGMENT) == segment
        && u32_at(header, OFFSET) == offset
        && stored_len <= MAX_RECORD_LEN;
    claims.then_some(stored_len)
}

/// Whether the checksum of a record is right. A type, kind, codec or flag that this program does
/// not know is no reason to refuse: a newer one may have written it.
pub(crate) fn verifies(store_id: &StoreId, header: &[u8; HEADER_LEN], payload: &[u8]) -> bool {
    checksum(store_id, header, payload) == u32_at(header, CRC)
}

/// Why a record is not the one a reference names.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Mismatch {
    #[error("no record starts there")]
    Magic,
    #[error("the record header does not agree with the reference")]
    Header,
    #[error("checksum is {found:08x}, expected {expected:08x}")]
    Checksum { found: u32, expected: u32 },
}

/// Checks the header alone against what a reference says.
pub(crate) fn check_header(header: &[u8; HEADER_LEN], expected: &Address) -> Result<(), Mismatch> {
    if !header.starts_with(MAGIC) {
        return Err(Mismatch::Magic);
    }
    if address(header).as_ref() != Some(expected) {
        return Err(Mismatch::Header);
    }
    Ok(())
}

/// Checks a whole record against what a reference says.
pub(crate) fn check(
    store_id: &StoreId,
    header: &[u8; HEADER_LEN],
    payload: &[u8],
    expected: &Address,
) -> Result<(), Mismatch> {
    check_header(header, expected)?;
    let found = checksum(store_id, header, payload);
    let written = u32_at(header, CRC);
    if found != written {
        return Err(Mismatch::Checksum {
            found,
            expected: written,
        });
    }
    Ok(())
}

/// What a header says besides its [`Address`], as it stands there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields {
    pub(crate) crc: u32,
    pub(crate) stored_len: u32,
    pub(crate) logical_len: u32,
    pub(crate) char_len: u32,
    pub(crate) record_type: u8,
    pub(crate) kind: u8,
    pub(crate) codec: u8,
    pub(crate) flags: u8,
    pub(crate) identity: Identity,
    /// SHA-256 of the payload, if the flag says so.
    pub(crate) digest: Option<[u8; 32]>,
}

/// Reads every field, known or not.
pub(crate) fn fields(header: &[u8; HEADER_LEN]) -> Fields {
    let flags = header[FLAGS];
    Fields {
        crc: u32_at(header, CRC),
        stored_len: u32_at(header, STORED_LEN),
        logical_len: u32_at(header, LOGICAL_LEN),
        char_len: u32_at(header, CHAR_LEN),
        record_type: header[TYPE],
        kind: header[KIND],
        codec: header[CODEC],
        flags,
        identity: Identity(array_at(header, IDENTITY)),
        digest: (flags & FLAG_DIGEST != 0).then(|| array_at(header, DIGEST)),
    }
}

/// What a reference to the record would say; `None` for a type, kind, codec or flag that this
/// program does not know.
pub(crate) fn address(header: &[u8; HEADER_LEN]) -> Option<Address> {
    let codec = Codec::from_code(header[CODEC])?;
    if header[TYPE] != type_of(codec) || header[FLAGS] & !FLAG_DIGEST != 0 {
        return None;
    }
    Some(Address {
        kind: ValueKind::from_code(header[KIND])?,
        codec,
        segment: u32_at(header, SEGMENT),
        offset: u32_at(header, OFFSET),
        stored_len: u32_at(header, STORED_LEN),
        logical_len: u32_at(header, LOGICAL_LEN),
        char_len: u32_at(header, CHAR_LEN),
        identity: Identity(array_at(header, IDENTITY)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: the byte table of the format page, field by field, and the order of the checksum.
    #[test]
    fn fields_stand_where_the_page_says() {
        let store_id = [9u8; 16];
        let address = Address {
            kind: ValueKind::Bytea,
            codec: Codec::Raw,
            segment: 0x0102_0304,
            offset: 0x1112_1318,
            stored_len: 5,
            logical_len: 5,
            char_len: 0x0A0B_0C0D,
            identity: Identity(*b"0123456789abcdef"),
        };
        let mut out = [0xFF; 88];
        assert_eq!(footprint(5), 88);
        write(&mut out, &store_id, &address, Some(&[0xDD; 32]), b"hello");
        assert_eq!(out[0..4], *b"TRC1");
        assert_eq!(out[8..12], [5, 0, 0, 0]);
        assert_eq!(out[12..16], [5, 0, 0, 0]);
        assert_eq!(out[16..20], [0x0D, 0x0C, 0x0B, 0x0A]);
        assert_eq!(out[20..24], [1, 5, 0, 1]);
        assert_eq!(out[24..40], *b"0123456789abcdef");
        assert_eq!(out[40..44], [4, 3, 2, 1]);
        assert_eq!(out[44..48], [0x18, 0x13, 0x12, 0x11]);
        assert_eq!(out[48..80], [0xDD; 32]);
        assert_eq!(out[80..88], *b"hello\0\0\0");
        let mut covered = store_id.to_vec();
        covered.extend_from_slice(&out[8..85]);
        assert_eq!(out[4..8], crc32c::crc32c(&covered).to_le_bytes());
    }

    /// Proves: a copy of a record at another place, or in another store, does not verify.
    #[test]
    fn a_record_verifies_only_at_its_place() {
        let address = Address {
            kind: ValueKind::Text,
            codec: Codec::Raw,
            segment: 1,
            offset: 4096,
            stored_len: 3,
            logical_len: 3,
            char_len: 3,
            identity: Identity([1; 16]),
        };
        let mut out = [0; 88];
        write(&mut out, &[9; 16], &address, None, b"abc");
        let header: [u8; HEADER_LEN] = array_at(&out, 0);
        let payload = &out[HEADER_LEN..HEADER_LEN + 3];
        assert_eq!(claimed_stored_len(&header, 1, 4096), Some(3));
        assert_eq!(claimed_stored_len(&header, 2, 4096), None);
        assert_eq!(claimed_stored_len(&header, 1, 4104), None);
        assert!(verifies(&[9; 16], &header, payload));
        assert!(!verifies(&[8; 16], &header, payload));
        assert!(!verifies(&[9; 16], &header, b"abd"));
        assert!(!verifies(&[9; 16], &header, b"ab"));
        let mut moved = header;
        moved[OFFSET] ^= 8;
        assert!(!verifies(&[9; 16], &moved, payload));
    }
}
