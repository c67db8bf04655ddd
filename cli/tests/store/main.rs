//! `toastrack store`, from the outside: on a store that is closed, and beside a server at work.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod closed;
#[path = "../cli/common.rs"]
mod common;
mod live;
#[allow(dead_code, reason = "shared with the other tests of the command")]
#[path = "../cli/server.rs"]
mod server;
