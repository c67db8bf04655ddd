//! The superblock: which store this is, of which format, and for which key.
//!
//! Format: docs/format/segment-v1.md, "Superblock"

use super::{FORMAT_VERSION, StoreId};

/// The superblock's file name. A directory that has it is a store.
pub(crate) const FILE_NAME: &str = "toastrack-store";

const TITLE: &str = "toastrack-store\n";
/// More than a superblock of any version is likely to be.
pub(crate) const MAX_LEN: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) store_id: StoreId,
    pub(crate) key_check: [u8; 8],
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum SuperblockError {
    #[error("it is not a store's superblock")]
    NotASuperblock,
    #[error("it is of format {0}, and this program knows format {FORMAT_VERSION} only")]
    UnknownVersion(u32),
    #[error("it is damaged")]
    Damaged,
}

impl Superblock {
    pub(crate) fn to_text(self) -> String {
        let body = format!(
            "{TITLE}format {FORMAT_VERSION}\nstore {}\nkey-check {}\n",
            hex(&self.store_id),
            hex(&self.key_check)
        );
        let crc = crc32c::crc32c(body.as_bytes());
        format!("{body}crc {crc:08x}\n")
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Superblock, SuperblockError> {
        let text = std::str::from_utf8(bytes).map_err(|_| SuperblockError::NotASuperblock)?;
        let rest = text
            .strip_prefix(TITLE)
            .ok_or(SuperblockError::NotASuperblock)?;
        // The version comes first and alone: what follows it is the newer format's own.
        let version = rest
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("format "))
            .and_then(|number| number.parse::<u32>().ok())
            .ok_or(SuperblockError::Damaged)?;
        if version != FORMAT_VERSION {
            return Err(SuperblockError::UnknownVersion(version));
        }
        let superblock = Superblock::fields(rest).ok_or(SuperblockError::Damaged)?;
        // There is one way to write it, which also checks the checksum.
        if superblock.to_text() != text {
            return Err(SuperblockError::Damaged);
        }
        Ok(superblock)
    }

    fn fields(lines: &str) -> Option<Superblock> {
        let field = |name: &str| {
            lines
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        };
        Some(Superblock {
            store_id: unhex(field("store")?)?,
            key_check: unhex(field("key-check")?)?,
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    if digits.len() != 2 * N || !digits.is_ascii() {
        return None;
    }
    let mut out = [0u8; N];
    for (byte, at) in out.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&digits[at..at + 2], 16).ok()?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUPERBLOCK: Superblock = Superblock {
        store_id: [0xA5; 16],
        key_check: [0x5A; 8],
    };

    /// Proves: it reads back; any changed byte is refused; a newer format is named.
    #[test]
    fn reads_back_and_refuses_the_rest() {
        let text = SUPERBLOCK.to_text();
        assert_eq!(Superblock::parse(text.as_bytes()), Ok(SUPERBLOCK));
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] ^= 1;
            assert!(Superblock::parse(&changed).is_err(), "byte {at}");
            assert!(Superblock::parse(&text.as_bytes()[..at]).is_err());
        }
        assert_eq!(
            Superblock::parse(b"toastrack-store\nformat 12\nanything\n"),
            Err(SuperblockError::UnknownVersion(12))
        );
        assert_eq!(Superblock::parse(b""), Err(SuperblockError::NotASuperblock));
    }
}
