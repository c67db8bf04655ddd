//! The Postgres-protocol endpoint that answers `toastrack.detoast` for the server.
//!
//! Owns:       the resolver socket, its log-in, and the one statement it understands.
//! Promises:   a value leaves only for a reference whose MAC verifies (S4), and only to somebody
//!             who knows the secret; everything held for one connection is bounded (S7).
//! Invariants: Q1 bytes reach pgwire's decoders only as one whole, checked frame at a time (S9).
//!             Q2 a connection that panics ends alone.
//! Fails:      every refusal is an `ErrorResponse` with a SQLSTATE, listed at [`Resolver`].
//! Proof:      src/tests, tests/store.rs

mod connection;
mod counters;
mod credentials;
mod frames;
mod listener;
mod login;
mod lookup;
mod query;
mod server;

#[cfg(test)]
mod tests;

pub use counters::{Counters, ResolverStats};
pub use credentials::{Secret, SecretError, USER};
pub use listener::ResolverListen;
pub use server::{Limits, Resolver};
