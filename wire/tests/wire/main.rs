//! The public surface under hostile and random bytes.

#![expect(clippy::unwrap_used, reason = "a failed helper fails its test")]

mod bugs;
mod decoders;
mod properties;
