//! What can be wrong with bytes on the wire, one enum for each moment it is noticed.

use std::fmt;

/// SQLSTATE `protocol_violation`, what Postgres raises for all of these.
const PROTOCOL_VIOLATION: &str = "08P01";
/// SQLSTATE `program_limit_exceeded`, what Postgres raises when a message outgrows its buffer.
const PROGRAM_LIMIT_EXCEEDED: &str = "54000";

/// Which side sends a message. The same tag byte means different things in each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the application to the server.
    Frontend,
    /// From the server to the application.
    Backend,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Frontend => "frontend",
            Self::Backend => "backend",
        })
    }
}

/// A frame that must not be buffered. The stream has lost its place, so the connection ends.
///
/// Postgres tells the client of an unknown tag and of a wrong start-up layout (FATAL), and hangs
/// up without a word on a wrong length; [`FrameError::is_silent`] says which.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The tag byte is no message of that direction.
    #[error("invalid {direction} message type {tag}")]
    UnknownTag {
        /// Who sent it.
        direction: Direction,
        /// The byte found.
        tag: u8,
    },
    /// The length field does not even cover itself; shown as the signed number Postgres reads.
    #[error("invalid message length {length} in {direction} message type {}", tag.escape_ascii())]
    LengthTooSmall {
        /// Who sent it.
        direction: Direction,
        /// Tag of the message.
        tag: u8,
        /// Value of the length field.
        length: i32,
    },
    /// The length field exceeds what a message of that tag may have.
    #[error(
        "invalid message length {length} in {direction} message type {}, at most {limit} is allowed",
        tag.escape_ascii()
    )]
    LengthTooLarge {
        /// Who sent it.
        direction: Direction,
        /// Tag of the message.
        tag: u8,
        /// Value of the length field.
        length: u32,
        /// Largest value of the length field for that tag.
        limit: u32,
    },
    /// The length of a start-up packet is outside its bounds.
    #[error("invalid length of startup packet: {length}")]
    StartupLength {
        /// Value of the length field, as the signed number Postgres reads.
        length: i32,
    },
    /// The parameters of a start-up packet do not end with its last byte.
    #[error("invalid startup packet layout: expected terminator as last byte")]
    StartupLayout,
}

impl FrameError {
    /// Whether Postgres, where a frontend sends this, hangs up without an ErrorResponse.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        match self {
            Self::LengthTooSmall { .. }
            | Self::LengthTooLarge { .. }
            | Self::StartupLength { .. } => true,
            Self::UnknownTag { .. } | Self::StartupLayout => false,
        }
    }

    /// The SQLSTATE to report.
    #[must_use]
    pub fn sqlstate(&self) -> &'static str {
        PROTOCOL_VIOLATION
    }
}

/// A whole frame whose inside disagrees with its length. The stream is still in step.
///
/// Texts begin as Postgres' own do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The body ends inside a field of fixed size.
    #[error(
        "insufficient data left in message: {message} needs {needed} bytes for {field}, {left} left"
    )]
    Truncated {
        /// Name of the message.
        message: &'static str,
        /// What was to be read.
        field: &'static str,
        /// Bytes it takes.
        needed: usize,
        /// Bytes that were there.
        left: usize,
    },
    /// A string runs to the end of the body without its NUL.
    #[error("invalid string in message: {message} has no terminator after its {field}")]
    Unterminated {
        /// Name of the message.
        message: &'static str,
        /// Which string.
        field: &'static str,
    },
    /// Bytes remain after the last field.
    #[error("invalid message format: {message} has {left} bytes after its end")]
    Trailing {
        /// Name of the message.
        message: &'static str,
        /// Bytes that remain.
        left: usize,
    },
    /// A value's own length is below -1 or exceeds the body.
    #[error(
        "insufficient data left in message: {message} field {index} has length {length}, {left} bytes left"
    )]
    FieldLength {
        /// Name of the message.
        message: &'static str,
        /// Which value, counted from 0.
        index: usize,
        /// Its length field.
        length: i32,
        /// Bytes that were there.
        left: usize,
    },
    /// A Bind gives more than one parameter format, but not one for each parameter.
    #[error("bind message has {formats} parameter formats but {parameters} parameters")]
    FormatCount {
        /// Formats given.
        formats: usize,
        /// Parameters given.
        parameters: usize,
    },
    /// A Describe or Close names neither a statement nor a portal.
    #[error("invalid {message} message subtype {subtype}")]
    Subtype {
        /// Name of the message.
        message: &'static str,
        /// The byte found.
        subtype: u8,
    },
    /// A ReadyForQuery carries a status other than `I`, `T` and `E`.
    #[error("invalid transaction status {status} in ReadyForQuery")]
    TransactionStatus {
        /// The byte found.
        status: u8,
    },
    /// A cancel key has an impossible length.
    #[error("invalid cancel key in BackendKeyData: {length} bytes, expected 4 to 256")]
    CancelKeyLength {
        /// Bytes of the key.
        length: usize,
    },
}

impl MessageError {
    /// The SQLSTATE to report.
    #[must_use]
    pub fn sqlstate(&self) -> &'static str {
        PROTOCOL_VIOLATION
    }
}

/// A message that cannot be written. The output is left as it was before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The message would exceed what its receiver accepts.
    #[error(
        "message type {} would have {length} bytes, at most {limit} are allowed",
        tag.escape_ascii()
    )]
    TooLong {
        /// Tag of the message.
        tag: u8,
        /// Value the length field would have had, as far as it was counted.
        length: usize,
        /// Largest value of the length field for that tag.
        limit: usize,
    },
    /// A string holds the NUL that would end it early.
    #[error("{field} has a zero byte at offset {at}")]
    ZeroByte {
        /// Which string.
        field: &'static str,
        /// Offset of the zero byte.
        at: usize,
    },
    /// More elements than a 16-bit count can say.
    #[error("{count} {field}, at most 65535 are allowed")]
    TooMany {
        /// What was counted.
        field: &'static str,
        /// How many there are.
        count: usize,
    },
    /// A row was finished with another number of fields than announced.
    #[error("row has {written} fields, {announced} were announced")]
    ColumnCount {
        /// Fields announced.
        announced: u16,
        /// Fields written; one more than announced when there were too many.
        written: usize,
    },
    /// The pieces of a field do not add up to its announced length.
    #[error("pieces of a field have {written} bytes, {announced} were announced")]
    PieceLength {
        /// Bytes announced.
        announced: usize,
        /// Bytes written, the refused piece included.
        written: usize,
    },
}

impl EncodeError {
    /// The SQLSTATE to report: a limit for what is too large, a protocol violation otherwise.
    #[must_use]
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Self::TooLong { .. } | Self::TooMany { .. } => PROGRAM_LIMIT_EXCEEDED,
            Self::ZeroByte { .. } | Self::ColumnCount { .. } | Self::PieceLength { .. } => {
                PROTOCOL_VIOLATION
            }
        }
    }
}
