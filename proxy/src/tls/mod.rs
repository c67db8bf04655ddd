//! TLS on both sides: to clients ([`Acceptor`]) and to the server ([`Connector`]).
//!
//! Promises:   TLS 1.2 at least; a key that others can read is not used; certificates that cannot be
//!             read again leave those in use as they are.
//! Invariants: T1 nothing that came before the handshake is taken for something that came in it.
//! Proof:      tests/tls/

mod accept;
mod connect;
mod files;
mod verify;

pub use accept::{ListenTls, ListenTlsMode};
pub use connect::{ServerTls, ServerTlsMode};

pub(crate) use accept::Acceptor;
pub(crate) use connect::Connector;

use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;

/// The protocol's name in ALPN, as PostgreSQL 17 and its clients have it.
const ALPN: &[u8] = b"postgresql";

/// Why TLS cannot be had with the files that are set.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file holds nothing that can be used.
    #[error("{}: {reason}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A private key that others than its owner could read.
    #[error(
        "{}: private key file has group or world access (it must have permissions 0600 or less if \
         owned by the user that runs Toastrack, 0640 or less if owned by root)",
        path.display()
    )]
    KeyExposed {
        /// The file.
        path: PathBuf,
    },
    /// Settings that do not go together.
    #[error("{0}")]
    Settings(&'static str),
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
