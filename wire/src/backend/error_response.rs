//! ErrorResponse and NoticeResponse.
//!
//! Format: <https://www.postgresql.org/docs/15/protocol-error-fields.html>

use std::borrow::Cow;

use crate::error::MessageError;
use crate::frame::tag::backend::{ERROR_RESPONSE, NOTICE_RESPONSE};
use crate::reader::Reader;

/// Longest text a field of our own gets; the rest is cut. Before a session has begun, libpq
/// takes no more than 30,000 bytes of error.
const TEXT_MAX_LEN: usize = 8 * 1024;

/// The fields of an ErrorResponse or NoticeResponse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorFields<'a> {
    /// The body up to its terminator.
    fields: &'a [u8],
}

impl<'a> ErrorFields<'a> {
    /// Reads an ErrorResponse or NoticeResponse body.
    ///
    /// # Errors
    /// When the fields do not end with the body.
    pub fn parse(body: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader::new("ErrorResponse", body);
        while reader.u8("a field code")? != 0 {
            reader.cstr("field")?;
        }
        reader.end()?;
        Ok(Self {
            fields: &body[..body.len() - 1],
        })
    }

    /// The value of the first field with that code, such as `b'C'` for the SQLSTATE.
    #[must_use]
    pub fn get(&self, code: u8) -> Option<&'a [u8]> {
        self.iter()
            .find(|(found, _)| *found == code)
            .map(|(_, value)| value)
    }

    /// Codes and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
        let mut reader = Reader::new("ErrorResponse", self.fields);
        std::iter::from_fn(move || {
            let code = reader.u8("a field code").ok()?;
            Some((code, reader.cstr("field").ok()?))
        })
    }
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The statement failed, and the transaction with it.
    Error,
    /// The session ends.
    Fatal,
    /// All sessions end.
    Panic,
    /// Something to act on, in a notice.
    Warning,
    /// Something to know, in a notice.
    Notice,
}

impl Severity {
    fn text(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Fatal => "FATAL",
            Self::Panic => "PANIC",
            Self::Warning => "WARNING",
            Self::Notice => "NOTICE",
        }
    }
}

/// An error or notice of our own.
///
/// Texts are cut at their first NUL and at 8 KiB, so that encoding cannot fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorBuilder<'a> {
    severity: Severity,
    sqlstate: Cow<'a, str>,
    message: Cow<'a, str>,
    detail: Option<Cow<'a, str>>,
    hint: Option<Cow<'a, str>>,
}

impl<'a> ErrorBuilder<'a> {
    /// `sqlstate` is five characters, see the Postgres manual, appendix "Error Codes".
    pub fn new(
        severity: Severity,
        sqlstate: impl Into<Cow<'a, str>>,
        message: impl Into<Cow<'a, str>>,
    ) -> Self {
        Self {
            severity,
            sqlstate: sqlstate.into(),
            message: message.into(),
            detail: None,
            hint: None,
        }
    }

    /// An error that fails the statement.
    pub fn error(sqlstate: impl Into<Cow<'a, str>>, message: impl Into<Cow<'a, str>>) -> Self {
        Self::new(Severity::Error, sqlstate, message)
    }

    /// An error that ends the session.
    pub fn fatal(sqlstate: impl Into<Cow<'a, str>>, message: impl Into<Cow<'a, str>>) -> Self {
        Self::new(Severity::Fatal, sqlstate, message)
    }

    /// Adds a detail.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<Cow<'a, str>>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Cow<'a, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Writes an ErrorResponse.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_as(out, ERROR_RESPONSE);
    }

    /// Writes a NoticeResponse.
    pub fn encode_notice(&self, out: &mut Vec<u8>) {
        self.encode_as(out, NOTICE_RESPONSE);
    }

    /// The order of `send_message_to_frontend` (utils/error/elog.c).
    fn encode_as(&self, out: &mut Vec<u8>, tag: u8) {
        let start = out.len();
        out.extend_from_slice(&[tag, 0, 0, 0, 0]);
        let severity = self.severity.text();
        let fields = [
            (b'S', Some(severity)),
            (b'V', Some(severity)),
            (b'C', Some(self.sqlstate.as_ref())),
            (b'M', Some(self.message.as_ref())),
            (b'D', self.detail.as_deref()),
            (b'H', self.hint.as_deref()),
        ];
        for (code, text) in fields {
            let Some(text) = text else { continue };
            out.push(code);
            out.extend_from_slice(cut(text).as_bytes());
            out.push(0);
        }
        out.push(0);
        let length = ((out.len() - start - 1) as u32).to_be_bytes();
        out[start + 1..][..4].copy_from_slice(&length);
    }
}

/// `text` up to its first NUL and within the limit, ending with a whole character.
fn cut(text: &str) -> &str {
    let end = memchr::memchr(0, text.as_bytes()).unwrap_or(text.len());
    &text[..text[..end].floor_char_boundary(TEXT_MAX_LEN)]
}

#[cfg(test)]
mod tests;
