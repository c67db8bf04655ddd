//! The built command under write load, killed and stopped at any moment.
//!
//! `TOASTRACK_CRASH_ROUNDS` sets how many times it is killed, `TOASTRACK_CRASH_SEED` repeats the
//! choices of a run that printed its seed.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

#[allow(dead_code, reason = "shared with the other tests of the command")]
#[path = "../cli/common.rs"]
mod common;
mod damage;
mod lifecycle;
mod model;
mod random;
mod rig;
mod rounds;
mod segments;
#[allow(dead_code, reason = "shared with the other tests of the command")]
#[path = "../cli/server.rs"]
mod server;
mod tally;
mod values;
mod wire;
mod writer;
