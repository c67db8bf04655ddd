//! The secret of a store, and what is derived from it.
//!
//! Promises: S4, an identity is a keyed BLAKE3 of the value; a reference cannot be forged without the key.
//! Format:   docs/format/reference-v1.md

use std::fmt;

/// 128 bits of keyed BLAKE3 of a value: the same bytes in one store have the same identity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity(pub [u8; 16]);

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({self})")
    }
}

/// The store key and the key of reference MACs derived from it. Prints as `***`.
#[derive(Clone)]
pub(crate) struct StoreKey {
    identity: [u8; 32],
    mac: [u8; 32],
}

const MAC_CONTEXT: &str = "toastrack 2026 reference mac v1";
const CHECK_MESSAGE: &[u8] = b"toastrack key check";

impl StoreKey {
    pub(crate) fn new(bytes: [u8; 32]) -> StoreKey {
        StoreKey {
            mac: blake3::derive_key(MAC_CONTEXT, &bytes),
            identity: bytes,
        }
    }

    pub(crate) fn identity(&self, value: &[u8]) -> Identity {
        let hash = blake3::keyed_hash(&self.identity, value);
        Identity(prefix(&hash))
    }

    /// The MAC over the fields of a reference.
    pub(crate) fn mac(&self, fields: &[u8]) -> [u8; 4] {
        prefix(&blake3::keyed_hash(&self.mac, fields))
    }

    /// What the superblock keeps, so that a wrong key file is noticed at open.
    pub(crate) fn check(&self) -> [u8; 8] {
        prefix(&blake3::keyed_hash(&self.identity, CHECK_MESSAGE))
    }
}

impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreKey(***)")
    }
}

fn prefix<const N: usize>(hash: &blake3::Hash) -> [u8; N] {
    let mut out = [0u8; N];
    out.copy_from_slice(&hash.as_bytes()[..N]);
    out
}
