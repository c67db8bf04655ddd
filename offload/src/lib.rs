//! References, chunks, segments: the content-addressed, log-structured chunk store.
//!
//! A value goes in by [`Store::put`], which returns a [`Reference`] of at most 64 bytes to stand in
//! the row, and comes back by [`Store::get`]. What is on disk is described in `docs/format/`.

mod compress;
pub mod disk;
mod error;
mod format;
mod hint;
pub mod inspect;
mod key;
mod kind;
mod options;
mod recover;
mod reference;
mod stats;
mod store;

pub use crate::compress::Compression;
pub use crate::error::{Kind, StoreError};
pub use crate::key::Identity;
pub use crate::kind::{Codec, ValueKind};
pub use crate::options::StoreOptions;
pub use crate::reference::{
    BINARY_LEN, BINARY_MAGIC, JSON_LEN, Reference, Spelling, TEXT_LEN, TEXT_PREFIX,
    begins_like_reference,
};
pub use crate::stats::StoreStats;
pub use crate::store::{Put, Store, StoreState, Ticket};

/// The longest value that is stored in one record, in bytes. Longer ones are stored in pieces.
pub const MAX_RECORD_LEN: usize = 1 << 20;
/// The longest value the store takes, in bytes: as long as a field of Postgres can be.
pub const MAX_VALUE_LEN: usize = (1 << 30) - 1;
