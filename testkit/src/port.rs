//! Chooses TCP ports for private servers.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{Ipv4Addr, TcpListener};

use crate::error::TestkitError;

/// Ports are drawn from below Linux' range for outgoing connections (32768 and
/// up), so that no client socket takes a port between the test and the bind.
const FIRST: u16 = 15_000;
const LAST: u16 = 32_000;
const TRIES: u32 = 200;

/// A port on 127.0.0.1 that nobody listens on at this moment.
///
/// Another process may still take it before the server does; the caller tries
/// again then.
pub(crate) fn free_port() -> Result<u16, TestkitError> {
    for attempt in 0..TRIES {
        // Each RandomState has fresh keys, so processes draw independently.
        let random = RandomState::new().hash_one((std::process::id(), attempt));
        let port = FIRST + (random % u64::from(LAST - FIRST)) as u16;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(TestkitError::NoFreePort { tries: TRIES })
}
