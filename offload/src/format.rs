//! The bytes on disk. Format: docs/format/segment-v1.md

pub(crate) mod bytes;
pub(crate) mod manifest;
pub(crate) mod record;
pub(crate) mod segment;
pub(crate) mod superblock;

/// The version of superblock, segments and seals that this program reads and writes.
pub(crate) const FORMAT_VERSION: u32 = 1;

/// Random at creation; every segment and every record checksum carries it.
pub(crate) type StoreId = [u8; 16];
