//! The built command, from the outside.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod common;
mod config;
mod demo;
mod load;
mod serve;
mod server;
mod transport;
