//! The first packet of a connection, which has a length but no tag.
//!
//! Promises: takes everything that PostgreSQL 14 to 18 take, layout quirks included; what is
//!           larger than they take but harmless is left to the server to refuse.
//! Format:   <https://www.postgresql.org/docs/15/protocol-flow.html#id-1.10.6.7.3>

use crate::error::{EncodeError, FrameError};

/// Largest length field taken. Postgres itself takes 10,004 and closes without a word at 10,005;
/// by passing on what is somewhat larger, a client sees exactly what its server does.
pub const STARTUP_LIMIT: u32 = 65_536;

/// Protocol 3.0, as the packet has it: major in the high 16 bits, minor in the low.
pub const PROTOCOL_3_0: u32 = 3 << 16;
/// Protocol 3.2: cancel keys of up to 256 bytes.
pub const PROTOCOL_3_2: u32 = (3 << 16) | 2;

const CANCEL_REQUEST_CODE: u32 = 80_877_102;
const SSL_REQUEST_CODE: u32 = 80_877_103;
const GSSENC_REQUEST_CODE: u32 = 80_877_104;

/// Bytes of the length field and of the code behind it.
const CODE_END: usize = 8;

/// What a packet without a tag asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Startup<'a> {
    /// SSLRequest: to be answered with one byte.
    Ssl,
    /// GSSENCRequest: to be answered with one byte.
    GssEnc,
    /// CancelRequest: to be relayed over a connection of its own.
    Cancel {
        /// The whole packet, length field included.
        frame: &'a [u8],
    },
    /// A session begins.
    Startup(StartupMessage<'a>),
}

/// A StartupMessage, of whatever protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartupMessage<'a> {
    /// The whole packet, length field included.
    pub frame: &'a [u8],
    /// Requested version: major in the high 16 bits, minor in the low.
    pub protocol: u32,
    parameters: &'a [u8],
}

impl<'a> StartupMessage<'a> {
    /// Requested major version. Only 3 has parameters that mean anything here. To any other a
    /// server answers with an error, and to one below 3 with one that has no frame of today's
    /// kind, so that the answer is to be relayed as bytes until the connection ends.
    #[must_use]
    pub fn major(&self) -> u16 {
        (self.protocol >> 16) as u16
    }

    /// Names and values in their order; none unless the major version is 3.
    pub fn parameters(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut rest = self.parameters;
        std::iter::from_fn(move || {
            let (name, value, after) = next_parameter(rest)?;
            rest = after;
            Some((name, value))
        })
    }

    /// The value of a parameter. Of several with one name Postgres uses the last, so does this.
    #[must_use]
    pub fn parameter(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.parameters()
            .filter(|(key, _)| *key == name)
            .last()
            .map(|(_, value)| value)
    }
}

/// Reads the packet that begins `buf`, and how many bytes it takes.
///
/// `None` when `buf` does not hold all of it yet. Bytes behind an SSLRequest or GSSENCRequest
/// that is answered with anything but a refusal must not be trusted; Postgres ends the
/// connection when there are any (CVE-2021-23214).
///
/// # Errors
/// `StartupLength` for a length below 8 or above [`STARTUP_LIMIT`], as soon as it is read;
/// `StartupLayout` when the parameters do not end with the packet.
pub fn parse_startup(buf: &[u8]) -> Result<Option<(Startup<'_>, usize)>, FrameError> {
    let Some(length) = buf.first_chunk() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*length);
    if !(CODE_END as u32..=STARTUP_LIMIT).contains(&length) {
        return Err(FrameError::StartupLength {
            length: length.cast_signed(),
        });
    }
    let len = length as usize;
    let Some(frame) = buf.get(..len) else {
        return Ok(None);
    };
    // The length was checked to cover the code.
    let Some((head, parameters)) = frame.split_first_chunk::<CODE_END>() else {
        return Ok(None);
    };
    let code = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    let startup = match code {
        // Postgres does not look at the length of these two.
        SSL_REQUEST_CODE => Startup::Ssl,
        GSSENC_REQUEST_CODE => Startup::GssEnc,
        CANCEL_REQUEST_CODE => Startup::Cancel { frame },
        protocol => Startup::Startup(startup_message(frame, protocol, parameters)?),
    };
    Ok(Some((startup, len)))
}

fn startup_message<'a>(
    frame: &'a [u8],
    protocol: u32,
    parameters: &'a [u8],
) -> Result<StartupMessage<'a>, FrameError> {
    let mut message = StartupMessage {
        frame,
        protocol,
        parameters: &[],
    };
    // The server refuses other majors before it looks further.
    if message.major() == 3 {
        check_layout(parameters)?;
        message.parameters = parameters;
    }
    Ok(message)
}

/// Like `ProcessStartupPacket`: whatever stopped the walk, one byte must be left.
fn check_layout(parameters: &[u8]) -> Result<(), FrameError> {
    let mut rest = parameters;
    while let Some((_, _, after)) = next_parameter(rest) {
        rest = after;
    }
    if rest.len() == 1 {
        Ok(())
    } else {
        Err(FrameError::StartupLayout)
    }
}

/// The first parameter and what follows; `None` at a terminator or an incomplete one.
fn next_parameter(rest: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (name, rest) = split_cstr(rest)?;
    if name.is_empty() {
        return None;
    }
    let (value, rest) = split_cstr(rest)?;
    Some((name, value, rest))
}

fn split_cstr(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(0, bytes)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// Writes a StartupMessage.
///
/// # Errors
/// `ZeroByte` for a name or value that holds one, `TooLong` beyond [`STARTUP_LIMIT`].
pub fn encode_startup(
    out: &mut Vec<u8>,
    protocol: u32,
    parameters: &[(&[u8], &[u8])],
) -> Result<(), EncodeError> {
    let texts = || parameters.iter().flat_map(|(name, value)| [name, value]);
    if let Some(at) = texts().find_map(|text| memchr::memchr(0, text)) {
        return Err(EncodeError::ZeroByte {
            field: "start-up parameter",
            at,
        });
    }
    let length = CODE_END + texts().map(|text| text.len() + 1).sum::<usize>() + 1;
    if length > STARTUP_LIMIT as usize {
        return Err(EncodeError::TooLong {
            tag: 0,
            length,
            limit: STARTUP_LIMIT as usize,
        });
    }
    out.reserve(length);
    out.extend_from_slice(&(length as u32).to_be_bytes());
    out.extend_from_slice(&protocol.to_be_bytes());
    for text in texts() {
        out.extend_from_slice(text);
        out.push(0);
    }
    out.push(0);
    Ok(())
}

/// Writes an SSLRequest.
pub fn encode_ssl_request(out: &mut Vec<u8>) {
    encode_code(out, SSL_REQUEST_CODE, &[]);
}

/// Writes a GSSENCRequest.
pub fn encode_gssenc_request(out: &mut Vec<u8>) {
    encode_code(out, GSSENC_REQUEST_CODE, &[]);
}

/// Writes a CancelRequest for a session whose BackendKeyData said `pid` and `key`.
///
/// # Errors
/// `TooMany` for a key beyond 256 bytes, which no server sends.
pub fn encode_cancel_request(out: &mut Vec<u8>, pid: u32, key: &[u8]) -> Result<(), EncodeError> {
    if key.len() > crate::backend::CANCEL_KEY_MAX_LEN {
        return Err(EncodeError::TooMany {
            field: "bytes of a cancel key",
            count: key.len(),
        });
    }
    let mut rest = Vec::with_capacity(4 + key.len());
    rest.extend_from_slice(&pid.to_be_bytes());
    rest.extend_from_slice(key);
    encode_code(out, CANCEL_REQUEST_CODE, &rest);
    Ok(())
}

fn encode_code(out: &mut Vec<u8>, code: u32, rest: &[u8]) {
    let length = (CODE_END + rest.len()) as u32;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests;
