//! What a server says about the session rather than about a statement.

use crate::error::{Direction, EncodeError, MessageError};
use crate::frame::tag::backend::PARAMETER_STATUS;
use crate::reader::Reader;
use crate::writer::OpenFrame;

/// Shortest cancel key: what protocol 3.0 has.
const CANCEL_KEY_MIN_LEN: usize = 4;
/// Longest cancel key of protocol 3.2, in bytes.
pub const CANCEL_KEY_MAX_LEN: usize = 256;

/// A ParameterStatus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterStatus<'a> {
    /// Name of the setting, such as `client_encoding`.
    pub name: &'a [u8],
    /// Its value now.
    pub value: &'a [u8],
}

impl<'a> ParameterStatus<'a> {
    /// Reads a ParameterStatus body.
    ///
    /// # Errors
    /// When the body is not exactly a ParameterStatus.
    pub fn parse(body: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader::new("ParameterStatus", body);
        let name = reader.cstr("name")?;
        let value = reader.cstr("value")?;
        reader.end()?;
        Ok(Self { name, value })
    }
}

/// Writes a ParameterStatus.
///
/// # Errors
/// `ZeroByte` in a string, `TooLong` for a client.
pub fn encode_parameter_status(
    out: &mut Vec<u8>,
    name: &[u8],
    value: &[u8],
) -> Result<(), EncodeError> {
    let expected = name.len() + value.len() + 2;
    let mut frame = OpenFrame::begin(out, Direction::Backend, PARAMETER_STATUS, expected)?;
    frame.push_cstr("setting name", name)?;
    frame.push_cstr("setting", value)?;
    frame.finish();
    Ok(())
}

/// A BackendKeyData: what a CancelRequest must present.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BackendKeyData<'a> {
    /// Process of the backend.
    pub pid: u32,
    /// The secret, 4 to 256 bytes.
    pub key: &'a [u8],
}

impl std::fmt::Debug for BackendKeyData<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BackendKeyData")
            .field("pid", &self.pid)
            .field("key", &"***")
            .finish()
    }
}

impl<'a> BackendKeyData<'a> {
    /// Reads a BackendKeyData body.
    ///
    /// # Errors
    /// When the key is shorter than 4 or longer than 256 bytes.
    pub fn parse(body: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader::new("BackendKeyData", body);
        let pid = reader.u32("the process id")?;
        let key = reader.remaining();
        if !(CANCEL_KEY_MIN_LEN..=CANCEL_KEY_MAX_LEN).contains(&key.len()) {
            return Err(MessageError::CancelKeyLength { length: key.len() });
        }
        Ok(Self { pid, key })
    }
}

/// An Authentication request, of whatever method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Authentication<'a> {
    /// Which request: [`Authentication::OK`] and so on.
    pub code: u32,
    /// What that request carries.
    pub data: &'a [u8],
}

impl<'a> Authentication<'a> {
    /// Code of AuthenticationOk.
    pub const OK: u32 = 0;
    /// Code of AuthenticationCleartextPassword.
    pub const CLEARTEXT_PASSWORD: u32 = 3;
    /// Code of AuthenticationMD5Password.
    pub const MD5_PASSWORD: u32 = 5;
    /// Code of AuthenticationGSS.
    pub const GSS: u32 = 7;
    /// Code of AuthenticationGSSContinue.
    pub const GSS_CONTINUE: u32 = 8;
    /// Code of AuthenticationSSPI.
    pub const SSPI: u32 = 9;
    /// Code of AuthenticationSASL.
    pub const SASL: u32 = 10;
    /// Code of AuthenticationSASLContinue.
    pub const SASL_CONTINUE: u32 = 11;
    /// Code of AuthenticationSASLFinal.
    pub const SASL_FINAL: u32 = 12;

    /// Reads an Authentication body.
    ///
    /// # Errors
    /// When the body has no code.
    pub fn parse(body: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader::new("Authentication", body);
        let code = reader.u32("the request code")?;
        let data = reader.remaining();
        Ok(Self { code, data })
    }
}

/// A NotificationResponse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotificationResponse<'a> {
    /// Process of the backend that sent NOTIFY.
    pub pid: u32,
    /// The channel.
    pub channel: &'a [u8],
    /// The payload; empty when there is none.
    pub payload: &'a [u8],
}

impl<'a> NotificationResponse<'a> {
    /// Reads a NotificationResponse body.
    ///
    /// # Errors
    /// When the body is not exactly a NotificationResponse.
    pub fn parse(body: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader::new("NotificationResponse", body);
        let pid = reader.u32("the process id")?;
        let channel = reader.cstr("channel")?;
        let payload = reader.cstr("payload")?;
        reader.end()?;
        Ok(Self {
            pid,
            channel,
            payload,
        })
    }
}

#[cfg(test)]
mod tests;
