//! References, chunks, segments: the content-addressed, log-structured chunk store.

mod key;
mod kind;
mod reference;

pub use crate::key::Identity;
pub use crate::kind::{Codec, ValueKind};
pub use crate::reference::{
    BINARY_LEN, BINARY_MAGIC, JSON_LEN, Reference, Spelling, TEXT_LEN, TEXT_PREFIX,
    begins_like_reference,
};

/// The longest value one record holds, in bytes.
pub const MAX_VALUE_LEN: usize = 1 << 20;
