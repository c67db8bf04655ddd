//! The header and the seal of a segment file.
//!
//! Format: docs/format/segment-v1.md, "Segment file"

use super::bytes::{all_zero, array_at, put, u32_at, u64_at};
use super::{FORMAT_VERSION, StoreId};

/// Where the first record stands.
pub(crate) const RECORDS_START: u32 = 4096;
/// Bytes that hold fields in the header, and bytes of the seal.
pub(crate) const BLOCK_LEN: usize = 64;
/// The shortest segment.
pub(crate) const MIN_FILE_LEN: u64 = 64 << 10;
/// The longest segment: offsets in it are u32.
pub(crate) const MAX_FILE_LEN: u64 = 4 << 30;
/// Segment lengths are multiples of this.
pub(crate) const FILE_LEN_UNIT: u64 = 4096;

const HEADER_MAGIC: &[u8; 8] = b"TOASTSEG";
const SEAL_MAGIC: &[u8; 8] = b"TOASTEND";
const FLAG_RECOVERED: u32 = 1;

const VERSION: usize = 8;
const CRC: usize = BLOCK_LEN - 4;

type Block = [u8; BLOCK_LEN];

/// What stands in the first bytes of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) store_id: StoreId,
    pub(crate) segment: u32,
    pub(crate) file_len: u64,
}

/// What stands in the last bytes of a segment that will not be written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seal {
    pub(crate) store_id: StoreId,
    pub(crate) segment: u32,
    pub(crate) tail: u64,
    pub(crate) records: u64,
    pub(crate) recovered: bool,
}

/// What a header or seal block turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found<T> {
    /// It verifies and belongs here.
    Valid(T),
    /// It is all zero: not written yet.
    Absent,
    /// It verifies but is of a version this program does not know.
    UnknownVersion(u32),
    /// It does not verify, or belongs to another segment or store.
    Damaged,
}

impl SegmentHeader {
    pub(crate) fn to_block(self) -> Block {
        let mut block = begin(HEADER_MAGIC);
        put(&mut block, 12, &RECORDS_START.to_le_bytes());
        put(&mut block, 16, &self.store_id);
        put(&mut block, 32, &self.segment.to_le_bytes());
        put(&mut block, 40, &self.file_len.to_le_bytes());
        end(block)
    }

    /// Reads the header of `segment` of the store `store_id`.
    pub(crate) fn read(block: &Block, store_id: &StoreId, segment: u32) -> Found<SegmentHeader> {
        open(block, HEADER_MAGIC, |block| {
            let header = SegmentHeader {
                store_id: array_at(block, 16),
                segment: u32_at(block, 32),
                file_len: u64_at(block, 40),
            };
            let fits = header.store_id == *store_id
                && header.segment == segment
                && u32_at(block, 12) == RECORDS_START
                && block[36..40] == [0; 4]
                && block[48..60] == [0; 12]
                && (MIN_FILE_LEN..=MAX_FILE_LEN).contains(&header.file_len)
                && header.file_len.is_multiple_of(FILE_LEN_UNIT);
            fits.then_some(header)
        })
    }
}

impl Seal {
    pub(crate) fn to_block(self) -> Block {
        let mut block = begin(SEAL_MAGIC);
        put(&mut block, 12, &self.segment.to_le_bytes());
        put(&mut block, 16, &self.store_id);
        put(&mut block, 32, &self.tail.to_le_bytes());
        put(&mut block, 40, &self.records.to_le_bytes());
        let flags = if self.recovered { FLAG_RECOVERED } else { 0 };
        put(&mut block, 48, &flags.to_le_bytes());
        end(block)
    }

    /// Reads the seal of `segment` of the store `store_id`.
    pub(crate) fn read(block: &Block, store_id: &StoreId, segment: u32) -> Found<Seal> {
        open(block, SEAL_MAGIC, |block| {
            let flags = u32_at(block, 48);
            let seal = Seal {
                store_id: array_at(block, 16),
                segment: u32_at(block, 12),
                tail: u64_at(block, 32),
                records: u64_at(block, 40),
                recovered: flags & FLAG_RECOVERED != 0,
            };
            let fits = seal.store_id == *store_id
                && seal.segment == segment
                && flags & !FLAG_RECOVERED == 0
                && block[52..60] == [0; 8];
            fits.then_some(seal)
        })
    }
}

fn begin(magic: &[u8; 8]) -> Block {
    let mut block = [0u8; BLOCK_LEN];
    put(&mut block, 0, magic);
    put(&mut block, VERSION, &FORMAT_VERSION.to_le_bytes());
    block
}

fn end(mut block: Block) -> Block {
    let crc = crc32c::crc32c(&block[..CRC]);
    put(&mut block, CRC, &crc.to_le_bytes());
    block
}

fn open<T>(block: &Block, magic: &[u8; 8], fields: impl Fn(&Block) -> Option<T>) -> Found<T> {
    if all_zero(block) {
        return Found::Absent;
    }
    if !block.starts_with(magic) || crc32c::crc32c(&block[..CRC]) != u32_at(block, CRC) {
        return Found::Damaged;
    }
    // A version is believed only under a checksum that verifies: a flipped bit is damage.
    match u32_at(block, VERSION) {
        FORMAT_VERSION => fields(block).map_or(Found::Damaged, Found::Valid),
        other => Found::UnknownVersion(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: SegmentHeader = SegmentHeader {
        store_id: [3; 16],
        segment: 0x0A0B_0C0D,
        file_len: 1 << 20,
    };
    const SEAL: Seal = Seal {
        store_id: [3; 16],
        segment: 7,
        tail: 8192,
        records: 12,
        recovered: true,
    };

    /// Proves: both blocks read back, and any flipped bit is damage, never another version.
    #[test]
    fn blocks_read_back_and_flips_are_damage() {
        let header = HEADER.to_block();
        let seal = SEAL.to_block();
        assert_eq!(
            SegmentHeader::read(&header, &[3; 16], 0x0A0B_0C0D),
            Found::Valid(HEADER)
        );
        assert_eq!(Seal::read(&seal, &[3; 16], 7), Found::Valid(SEAL));
        for bit in 0..BLOCK_LEN * 8 {
            let (mut h, mut s) = (header, seal);
            h[bit / 8] ^= 1 << (bit % 8);
            s[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                SegmentHeader::read(&h, &[3; 16], 0x0A0B_0C0D),
                Found::Damaged
            );
            assert_eq!(Seal::read(&s, &[3; 16], 7), Found::Damaged);
        }
    }

    /// Proves: zero is absent; another version is named; another place is damage.
    #[test]
    fn absent_unknown_and_misplaced_are_told_apart() {
        assert_eq!(Seal::read(&[0; 64], &[3; 16], 7), Found::Absent);
        let mut newer = SEAL.to_block();
        newer[VERSION] = 9;
        assert_eq!(
            Seal::read(&end(newer), &[3; 16], 7),
            Found::UnknownVersion(9)
        );
        assert_eq!(Seal::read(&SEAL.to_block(), &[3; 16], 8), Found::Damaged);
        assert_eq!(Seal::read(&SEAL.to_block(), &[4; 16], 7), Found::Damaged);
    }
}
