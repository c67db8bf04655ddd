//! One record, decoded: what its header says, and whether its content is what the header says.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use crate::compress;
use crate::format::StoreId;
use crate::format::manifest;
use crate::format::record::{self, Fields, HEADER_LEN};
use crate::key::{Identity, StoreKey};
use crate::kind::{Codec, ValueKind};
use crate::reference::Address;

/// The header of a record. The numbers of type, kind, codec and flags may be a newer program's.
#[derive(Debug, Clone, Copy)]
pub struct Chunk {
    segment: u32,
    offset: u32,
    fields: Fields,
    address: Option<Address>,
}

impl Chunk {
    pub(super) fn new(segment: u32, offset: u32, header: &[u8; HEADER_LEN]) -> Chunk {
        Chunk {
            segment,
            offset,
            fields: record::fields(header),
            address: record::address(header),
        }
    }

    /// Number of the segment it stands in.
    pub fn segment(&self) -> u32 {
        self.segment
    }

    /// Bytes from the start of the segment file.
    pub fn offset(&self) -> u32 {
        self.offset
    }

    /// Bytes of the payload as stored.
    pub fn stored_len(&self) -> u32 {
        self.fields.stored_len
    }

    /// Bytes of the value.
    pub fn logical_len(&self) -> u32 {
        self.fields.logical_len
    }

    /// Characters of the value; bytes for bytea.
    pub fn char_len(&self) -> u32 {
        self.fields.char_len
    }

    /// The number of its type.
    pub fn record_type(&self) -> u8 {
        self.fields.record_type
    }

    /// The SQL type of the value, if this program knows it.
    pub fn kind(&self) -> Option<ValueKind> {
        ValueKind::from_code(self.fields.kind)
    }

    /// How the payload is stored, if this program knows it.
    pub fn codec(&self) -> Option<Codec> {
        Codec::from_code(self.fields.codec)
    }

    /// The flags byte.
    pub fn flags(&self) -> u8 {
        self.fields.flags
    }

    /// Keyed hash of the value.
    pub fn identity(&self) -> Identity {
        self.fields.identity
    }

    /// The checksum that stands in the header.
    pub fn crc(&self) -> u32 {
        self.fields.crc
    }

    /// SHA-256 of the payload, where the header has one.
    pub fn digest(&self) -> Option<[u8; 32]> {
        self.fields.digest
    }

    /// Bytes it takes in the file.
    pub fn footprint(&self) -> u64 {
        record::footprint(self.fields.stored_len as usize) as u64
    }

    pub(super) fn address(&self) -> Option<Address> {
        self.address
    }

    pub(super) fn check_crc(
        &self,
        store_id: &StoreId,
        header: &[u8; HEADER_LEN],
        payload: &[u8],
    ) -> Result<(), String> {
        let found = record::checksum(store_id, header, payload);
        let written = self.fields.crc;
        if found == written {
            Ok(())
        } else {
            Err(format!("checksum is {found:08x}, expected {written:08x}"))
        }
    }

    /// The value in `payload`, which the checksum has vouched for; its identity is checked if there
    /// is a key.
    pub(super) fn value<'a>(
        &self,
        key: Option<&StoreKey>,
        payload: &'a [u8],
    ) -> Result<Cow<'a, [u8]>, String> {
        let Some(address) = self.address else {
            return Err(format!(
                "type {}, kind {}, codec {}, flags {:02x}: a newer program wrote it",
                self.fields.record_type, self.fields.kind, self.fields.codec, self.fields.flags
            ));
        };
        if let Some(digest) = self.fields.digest
            && <[u8; 32]>::from(Sha256::digest(payload)) != digest
        {
            return Err("its payload has another digest".to_owned());
        }
        let logical_len = address.logical_len as usize;
        let value = match address.codec {
            Codec::Raw => Cow::Borrowed(payload),
            Codec::Lz4 => compress::decompress(payload, logical_len)
                .map(Cow::Owned)
                .ok_or("it does not decompress")?,
            // Its pieces are chunks of their own; without the key nothing tells them apart from noise.
            Codec::Manifest => {
                let listed = key.map(|key| manifest::parse(key, payload, logical_len));
                return match listed {
                    Some(None) => Err("its list of pieces is not one".to_owned()),
                    _ => Ok(Cow::Borrowed(payload)),
                };
            }
        };
        if value.len() != logical_len {
            return Err("its length is not the one in its header".to_owned());
        }
        if let Some(key) = key
            && key.identity(&value) != address.identity
        {
            return Err("its content has another identity".to_owned());
        }
        Ok(value)
    }
}
