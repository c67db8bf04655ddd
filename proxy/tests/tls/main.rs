//! TLS between clients and the proxy, and between the proxy and the server.

#[path = "../common/mod.rs"]
mod common;

mod authority;
mod clients;
mod preamble;
mod scram;
mod server;
