//! The one error of the store: what was observed, and what the caller should do about it.

use std::fmt;
use std::io;
use std::sync::Arc;

/// What a caller should do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Nothing is wrong; there is no room at this moment. Leave the value inline, or await
    /// `Store::room` and try again.
    Retry,
    /// The value cannot be stored as one record.
    BadRequest,
    /// The directory, the key or an option is not usable; an operator must act.
    BadConfig,
    /// Stored bytes are not what the reference says. Never retried.
    Corrupt,
    /// No space left on the device.
    Full,
    /// The store takes no writes; reads go on.
    ReadOnly,
    /// The disk failed a call.
    Io,
    /// A broken assumption of this crate.
    Bug,
}

/// An error of the store. Cheap to clone: the waiters of a failed batch share it.
#[derive(Clone)]
pub struct StoreError {
    kind: Kind,
    message: Arc<str>,
}

impl StoreError {
    /// What the caller should do.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The SQLSTATE to report to a client.
    pub fn sqlstate(&self) -> &'static str {
        match self.kind {
            Kind::Retry => "55000",
            Kind::BadRequest => "54000",
            Kind::BadConfig => "F0000",
            Kind::Corrupt => "XX001",
            Kind::Full => "53100",
            Kind::ReadOnly => "25006",
            Kind::Io => "58030",
            Kind::Bug => "XX000",
        }
    }

    pub(crate) fn new(kind: Kind, message: impl fmt::Display) -> StoreError {
        StoreError {
            kind,
            message: message.to_string().into(),
        }
    }

    /// An I/O error while doing `what`; out of space is told apart.
    pub(crate) fn io(what: impl fmt::Display, error: &io::Error) -> StoreError {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Kind::Full,
            _ => Kind::Io,
        };
        StoreError::new(kind, format_args!("{what}: {error}"))
    }

    /// What stands at `offset` of `segment` is not what it should be.
    pub(crate) fn corrupt(segment: u32, offset: u32, seen: impl fmt::Display) -> StoreError {
        StoreError::new(
            Kind::Corrupt,
            format_args!("chunk in segment {segment:08x} at offset {offset} is damaged: {seen}"),
        )
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.message)
    }
}

impl std::error::Error for StoreError {}
