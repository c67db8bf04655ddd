//! Tag and length of every message after start-up.
//!
//! Promises: a header is given out only when its tag exists in that direction and its length is
//!           within what Postgres (frontend) or libpq (backend) takes, so a caller may buffer
//!           the frame without asking again (S9).
//! Format:   one tag byte, then a big-endian length that counts itself but not the tag.

use crate::error::{Direction, FrameError};

/// Bytes of a header: the tag and the length field.
pub const HEADER_LEN: usize = 5;

/// Largest length field that Postgres takes from a frontend in a message that carries data
/// (`PQ_LARGE_MESSAGE_LIMIT`, `MaxAllocSize - 1`).
pub const FRONTEND_LARGE_LIMIT: u32 = 0x3fff_fffe;
/// Largest length field of the other frontend messages (`PQ_SMALL_MESSAGE_LIMIT`).
pub const FRONTEND_SMALL_LIMIT: u32 = 10_000;
/// Largest length field of an authentication answer (`PG_MAX_AUTH_TOKEN_LENGTH`).
pub const FRONTEND_AUTH_LIMIT: u32 = 65_535;
/// Largest length field that a server can produce: its buffer holds a body of
/// `MaxAllocSize - 1` bytes, and the length field counts its own 4.
pub const BACKEND_LARGE_LIMIT: u32 = 0x3fff_fffe + 4;
/// Largest length field that libpq takes in messages that carry no data.
pub const BACKEND_SMALL_LIMIT: u32 = 30_000;

/// Tag and size of a message, both checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The message's type byte.
    pub tag: u8,
    /// Bytes of the whole frame: tag, length field and body.
    pub len: usize,
}

impl Header {
    /// Bytes of the body alone.
    #[must_use]
    pub fn body_len(&self) -> usize {
        self.len - HEADER_LEN
    }

    /// The body, once `buf`, which begins with this frame, holds all of it.
    #[must_use]
    pub fn body<'a>(&self, buf: &'a [u8]) -> Option<&'a [u8]> {
        buf.get(HEADER_LEN..self.len)
    }
}

/// Reads the header of the message that begins `buf`, sent by an application.
///
/// `None` when `buf` does not hold all five bytes yet.
///
/// # Errors
/// As soon as the first byte is there, when it is no frontend message; with all five, when the
/// length is below 4 or above the limit of that tag.
#[inline]
pub fn frontend_header(buf: &[u8]) -> Result<Option<Header>, FrameError> {
    header(buf, &FRONTEND_LIMITS, Direction::Frontend)
}

/// Reads the header of the message that begins `buf`, sent by a server.
///
/// `None` when `buf` does not hold all five bytes yet.
///
/// # Errors
/// As soon as the first byte is there, when it is no backend message; with all five, when the
/// length is below 4 or above the limit of that tag.
#[inline]
pub fn backend_header(buf: &[u8]) -> Result<Option<Header>, FrameError> {
    header(buf, &BACKEND_LIMITS, Direction::Backend)
}

#[inline]
fn header(
    buf: &[u8],
    limits: &[u32; 256],
    direction: Direction,
) -> Result<Option<Header>, FrameError> {
    let [tag, rest @ ..] = buf else {
        return Ok(None);
    };
    let limit = limits[usize::from(*tag)];
    // Postgres, too, judges the tag before it waits for a length.
    if limit == UNKNOWN {
        return Err(FrameError::UnknownTag {
            direction,
            tag: *tag,
        });
    }
    let Some(length) = rest.first_chunk() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*length);
    if (4..=limit).contains(&length) {
        Ok(Some(Header {
            tag: *tag,
            len: length as usize + 1,
        }))
    } else {
        Err(refused_length(direction, *tag, length, limit))
    }
}

#[cold]
fn refused_length(direction: Direction, tag: u8, length: u32, limit: u32) -> FrameError {
    let signed = length.cast_signed();
    if signed < 4 {
        FrameError::LengthTooSmall {
            direction,
            tag,
            length: signed,
        }
    } else {
        FrameError::LengthTooLarge {
            direction,
            tag,
            length,
            limit,
        }
    }
}

/// Largest length field of a message of this tag; `None` when the direction has no such tag.
#[must_use]
pub fn length_limit(direction: Direction, tag: u8) -> Option<u32> {
    let limits = match direction {
        Direction::Frontend => &FRONTEND_LIMITS,
        Direction::Backend => &BACKEND_LIMITS,
    };
    Some(limits[usize::from(tag)]).filter(|limit| *limit != UNKNOWN)
}

const UNKNOWN: u32 = 0;

/// As in `SocketBackend` (tcop/postgres.c), `CopyGetData` (commands/copyfromparse.c) and
/// `recv_password_packet` (libpq/auth.c) of PostgreSQL 14 to 18.
static FRONTEND_LIMITS: [u32; 256] = {
    use tag::frontend::*;
    let mut limits = [UNKNOWN; 256];
    set(
        &mut limits,
        &[BIND, COPY_DATA, FUNCTION_CALL, PARSE, QUERY],
        FRONTEND_LARGE_LIMIT,
    );
    set(
        &mut limits,
        &[
            CLOSE, COPY_DONE, COPY_FAIL, DESCRIBE, EXECUTE, FLUSH, SYNC, TERMINATE,
        ],
        FRONTEND_SMALL_LIMIT,
    );
    set(&mut limits, &[PASSWORD], FRONTEND_AUTH_LIMIT);
    limits
};

/// What a server can send; where that has no bound of its own, what libpq takes.
static BACKEND_LIMITS: [u32; 256] = {
    use tag::backend::*;
    const MOST: u32 = u16::MAX as u32;
    let mut limits = [UNKNOWN; 256];
    set(
        &mut limits,
        &[
            COPY_DATA,
            DATA_ROW,
            ERROR_RESPONSE,
            FUNCTION_CALL_RESPONSE,
            NOTICE_RESPONSE,
            NOTIFICATION_RESPONSE,
            PARAMETER_STATUS,
            ROW_DESCRIPTION,
        ],
        BACKEND_LARGE_LIMIT,
    );
    set(
        &mut limits,
        &[
            BACKEND_KEY_DATA,
            BIND_COMPLETE,
            CLOSE_COMPLETE,
            COMMAND_COMPLETE,
            COPY_DONE,
            EMPTY_QUERY_RESPONSE,
            NEGOTIATE_PROTOCOL_VERSION,
            NO_DATA,
            PARSE_COMPLETE,
            PORTAL_SUSPENDED,
            READY_FOR_QUERY,
        ],
        BACKEND_SMALL_LIMIT,
    );
    // One OID for each of at most 65,535 parameters.
    set(&mut limits, &[PARAMETER_DESCRIPTION], 4 + 2 + 4 * MOST);
    // One format for each of at most 65,535 columns.
    set(
        &mut limits,
        &[COPY_BOTH_RESPONSE, COPY_IN_RESPONSE, COPY_OUT_RESPONSE],
        4 + 1 + 2 + 2 * MOST,
    );
    // A code and a token no longer than the ones that go the other way.
    set(&mut limits, &[AUTHENTICATION], 4 + 4 + FRONTEND_AUTH_LIMIT);
    limits
};

const fn set(limits: &mut [u32; 256], tags: &[u8], limit: u32) {
    let mut i = 0;
    while i < tags.len() {
        limits[tags[i] as usize] = limit;
        i += 1;
    }
}

/// The type bytes of protocol 3.0 and 3.2.
///
/// Source: <https://www.postgresql.org/docs/18/protocol-message-formats.html>
pub mod tag {
    /// Messages that an application sends.
    #[expect(
        missing_docs,
        reason = "each constant is the message of that name in the Postgres manual"
    )]
    pub mod frontend {
        pub const BIND: u8 = b'B';
        pub const CLOSE: u8 = b'C';
        pub const COPY_DATA: u8 = b'd';
        pub const COPY_DONE: u8 = b'c';
        pub const COPY_FAIL: u8 = b'f';
        pub const DESCRIBE: u8 = b'D';
        pub const EXECUTE: u8 = b'E';
        pub const FLUSH: u8 = b'H';
        pub const FUNCTION_CALL: u8 = b'F';
        pub const PARSE: u8 = b'P';
        /// Also the GSS and SASL responses.
        pub const PASSWORD: u8 = b'p';
        pub const QUERY: u8 = b'Q';
        pub const SYNC: u8 = b'S';
        pub const TERMINATE: u8 = b'X';
    }

    /// Messages that a server sends.
    #[expect(
        missing_docs,
        reason = "each constant is the message of that name in the Postgres manual"
    )]
    pub mod backend {
        pub const AUTHENTICATION: u8 = b'R';
        pub const BACKEND_KEY_DATA: u8 = b'K';
        pub const BIND_COMPLETE: u8 = b'2';
        pub const CLOSE_COMPLETE: u8 = b'3';
        pub const COMMAND_COMPLETE: u8 = b'C';
        pub const COPY_BOTH_RESPONSE: u8 = b'W';
        pub const COPY_DATA: u8 = b'd';
        pub const COPY_DONE: u8 = b'c';
        pub const COPY_IN_RESPONSE: u8 = b'G';
        pub const COPY_OUT_RESPONSE: u8 = b'H';
        pub const DATA_ROW: u8 = b'D';
        pub const EMPTY_QUERY_RESPONSE: u8 = b'I';
        pub const ERROR_RESPONSE: u8 = b'E';
        pub const FUNCTION_CALL_RESPONSE: u8 = b'V';
        pub const NEGOTIATE_PROTOCOL_VERSION: u8 = b'v';
        pub const NO_DATA: u8 = b'n';
        pub const NOTICE_RESPONSE: u8 = b'N';
        pub const NOTIFICATION_RESPONSE: u8 = b'A';
        pub const PARAMETER_DESCRIPTION: u8 = b't';
        pub const PARAMETER_STATUS: u8 = b'S';
        pub const PARSE_COMPLETE: u8 = b'1';
        pub const PORTAL_SUSPENDED: u8 = b's';
        pub const READY_FOR_QUERY: u8 = b'Z';
        pub const ROW_DESCRIPTION: u8 = b'T';
    }
}

#[cfg(test)]
mod tests;
