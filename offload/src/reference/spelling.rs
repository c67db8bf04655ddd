//! A reference as it stands in a row, without an allocation.

use std::fmt;
use std::ops::Deref;

use super::JSON_LEN;

/// At most 64 bytes, inline; derefs to the bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Spelling {
    bytes: [u8; JSON_LEN],
    len: u8,
}

impl Spelling {
    pub(super) fn new(spelled: &[u8]) -> Spelling {
        let mut bytes = [0u8; JSON_LEN];
        bytes[..spelled.len()].copy_from_slice(spelled);
        Spelling {
            bytes,
            len: spelled.len() as u8,
        }
    }
}

impl Deref for Spelling {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl AsRef<[u8]> for Spelling {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Spelling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Spelling({})", self.escape_ascii())
    }
}
