//! Bytes to messages of the Postgres frontend/backend protocol, version 3, and back; no sockets.
//!
//! Owns:       nothing; every view borrows the bytes it was parsed from.
//! Promises:   a view exists only for a body that it consumes exactly, so later walks cannot fail;
//!             an encoder leaves a whole frame in the output, or the output as it was.
//! Invariants: S6 what is not replaced is copied byte for byte. S9 no input panics, and no
//!             allocation is sized by a length that was not checked against bytes already here.
//! Fails:      [`FrameError`] before a frame is buffered, [`MessageError`] inside a whole frame,
//!             [`EncodeError`] while writing; each names what was observed.
//! Format:     <https://www.postgresql.org/docs/15/protocol-message-formats.html>
//! Proof:      `tests.rs` beside each module, `tests/wire/`
//!
//! A Bind on its way through, with its second parameter replaced:
//!
//! ```
//! use toastrack_wire::frontend::encode_bind;
//! use toastrack_wire::{Bind, frontend_header, tag};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut received = Vec::new();
//! encode_bind(&mut received, b"", b"s1", &[], &[Some(b"7"), Some(b"a large value")], &[])?;
//!
//! let mut sent = Vec::new();
//! if let Some(header) = frontend_header(&received)?
//!     && let Some(body) = header.body(&received)
//! {
//!     assert_eq!(header.tag, tag::frontend::BIND);
//!     let bind = Bind::parse(body)?;
//!     bind.encode_with(&mut sent, |i| (i == 1).then_some(&b"small"[..]))?;
//! }
//! assert!(sent.ends_with(b"\0\0\0\x05small\0\0"));
//! # Ok(())
//! # }
//! ```

mod error;
mod fields;
mod formats;
mod reader;
#[cfg(test)]
mod testing;
mod writer;

pub mod backend;
pub mod frame;
pub mod frontend;
pub mod startup;

pub use backend::{
    Authentication, BackendKeyData, CommandComplete, CopyResponse, DataRow, ErrorBuilder,
    ErrorFields, FieldView, NotificationResponse, ParameterDescription, ParameterStatus,
    RowDescription, RowWriter, Severity,
};
pub use error::{Direction, EncodeError, FrameError, MessageError};
pub use fields::Fields;
pub use formats::{FORMAT_BINARY, FORMAT_TEXT, Formats};
pub use frame::{Header, backend_header, frontend_header, tag};
pub use frontend::{Bind, Close, Describe, Execute, Parse, Query, Target};
pub use startup::{Startup, StartupMessage, parse_startup};
pub use writer::encode_frame;
