//! What an application sends, as views over a message body, and the same written again.
//!
//! Each `parse` takes the body behind tag and length and accepts it only when it is used up.
//! Strings are given as bytes: their encoding is the client's.

mod bind;

pub use bind::{Bind, encode_bind};

use crate::error::{Direction, EncodeError, MessageError};
use crate::frame::tag::frontend as tag;
use crate::reader::Reader;
use crate::writer::OpenFrame;

/// A Parse: a statement to prepare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parse<'a> {
    /// Name of the statement; empty for the unnamed one.
    pub name: &'a [u8],
    /// Text of the statement.
    pub query: &'a [u8],
    types: &'a [u8],
}

impl<'a> Parse<'a> {
    /// Reads a Parse body.
    ///
    /// # Errors
    /// When the body is not exactly a Parse.
    #[expect(
        clippy::self_named_constructors,
        reason = "every view is read with `parse`, the one of this name too"
    )]
    pub fn parse(body: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader::new("Parse", body);
        let name = reader.cstr("statement name")?;
        let query = reader.cstr("query")?;
        let count = reader.u16("the parameter type count")?;
        let types = reader.take(usize::from(count) * 4, "the parameter types")?;
        reader.end()?;
        Ok(Self { name, query, types })
    }

    /// How many parameter types are declared; the statement may have more or fewer.
    #[must_use]
    pub fn param_type_count(&self) -> usize {
        self.types.len() / 4
    }

    /// The declared type OID of parameter `i`, counted from 0. `0` leaves it to the server, and so
    /// does `None`: nothing is declared there.
    #[must_use]
    pub fn param_type(&self, i: usize) -> Option<u32> {
        let oid = self.types.get(i * 4..)?.first_chunk()?;
        Some(u32::from_be_bytes(*oid))
    }

    /// The declared type OIDs in order.
    pub fn param_types(&self) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        self.types
            .chunks_exact(4)
            .map(|oid| u32::from_be_bytes([oid[0], oid[1], oid[2], oid[3]]))
    }
}

/// Writes a Parse.
///
/// # Errors
/// `ZeroByte` in a string, `TooMany` types, `TooLong` for Postgres.
pub fn encode_parse(
    out: &mut Vec<u8>,
    name: &[u8],
    query: &[u8],
    types: &[u32],
) -> Result<(), EncodeError> {
    let expected = name.len() + query.len() + 4 + 4 * types.len();
    let mut frame = OpenFrame::begin(out, Direction::Frontend, tag::PARSE, expected)?;
    frame.push_cstr("statement name", name)?;
    frame.push_cstr("query", query)?;
    frame.push_count("parameter types", types.len())?;
    for oid in types {
        frame.push(&oid.to_be_bytes())?;
    }
    frame.finish();
    Ok(())
}

/// What a Describe or Close is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// A prepared statement.
    Statement,
    /// A portal.
    Portal,
}

impl Target {
    fn read(
        reader: &mut Reader<'_>,
        message: &'static str,
    ) -> Result<Result<Self, MessageError>, MessageError> {
        Ok(match reader.u8("the subtype")? {
            b'S' => Ok(Self::Statement),
            b'P' => Ok(Self::Portal),
            subtype => Err(MessageError::Subtype { message, subtype }),
        })
    }

    fn byte(self) -> u8 {
        match self {
            Self::Statement => b'S',
            Self::Portal => b'P',
        }
    }
}

/// A Describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Describe<'a> {
    /// What is described.
    pub target: Target,
    /// Its name; empty for the unnamed one.
    pub name: &'a [u8],
}

impl<'a> Describe<'a> {
    /// Reads a Describe body.
    ///
    /// # Errors
    /// When the body is not exactly a Describe.
    pub fn parse(body: &'a [u8]) -> Result<Self, MessageError> {
        let (target, name) = parse_target("DESCRIBE", body)?;
        Ok(Self { target, name })
    }
}

/// A Close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Close<'a> {
    /// What is closed.
    pub target: Target,
    /// Its name; empty for the unnamed one.
    pub name: &'a [u8],
}

impl<'a> Close<'a> {
    /// Reads a Close body.
    ///
    /// # Errors
    /// When the body is not exactly a Close.
    pub fn parse(body: &'a [u8]) -> Result<Self, MessageError> {
        let (target, name) = parse_target("CLOSE", body)?;
        Ok(Self { target, name })
    }
}

fn parse_target<'a>(
    message: &'static str,
    body: &'a [u8],
) -> Result<(Target, &'a [u8]), MessageError> {
    let mut reader = Reader::new(message, body);
    let target = Target::read(&mut reader, message)?;
    let name = reader.cstr("name")?;
    reader.end()?;
    Ok((target?, name))
}

/// Writes a Describe.
///
/// # Errors
/// `ZeroByte` in the name, `TooLong` for Postgres.
pub fn encode_describe(out: &mut Vec<u8>, target: Target, name: &[u8]) -> Result<(), EncodeError> {
    encode_target(out, tag::DESCRIBE, target, name)
}

/// Writes a Close.
///
/// # Errors
/// `ZeroByte` in the name, `TooLong` for Postgres.
pub fn encode_close(out: &mut Vec<u8>, target: Target, name: &[u8]) -> Result<(), EncodeError> {
    encode_target(out, tag::CLOSE, target, name)
}

fn encode_target(
    out: &mut Vec<u8>,
    tag: u8,
    target: Target,
    name: &[u8],
) -> Result<(), EncodeError> {
    let mut frame = OpenFrame::begin(out, Direction::Frontend, tag, name.len() + 2)?;
    frame.push(&[target.byte()])?;
    frame.push_cstr("name", name)?;
    frame.finish();
    Ok(())
}

/// An Execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execute<'a> {
    /// Name of the portal; empty for the unnamed one.
    pub portal: &'a [u8],
    /// Most rows to return; all of them for 0 or less.
    pub max_rows: i32,
}

impl<'a> Execute<'a> {
    /// Reads an Execute body.
    ///
    /// # Errors
    /// When the body is not exactly an Execute.
    pub fn parse(body: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader::new("Execute", body);
        let portal = reader.cstr("portal name")?;
        let max_rows = reader.i32("the row limit")?;
        reader.end()?;
        Ok(Self { portal, max_rows })
    }
}

/// Writes an Execute.
///
/// # Errors
/// `ZeroByte` in the name, `TooLong` for Postgres.
pub fn encode_execute(out: &mut Vec<u8>, portal: &[u8], max_rows: i32) -> Result<(), EncodeError> {
    let expected = portal.len() + 5;
    let mut frame = OpenFrame::begin(out, Direction::Frontend, tag::EXECUTE, expected)?;
    frame.push_cstr("portal name", portal)?;
    frame.push(&max_rows.to_be_bytes())?;
    frame.finish();
    Ok(())
}

/// A simple Query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query<'a> {
    /// One or more statements, without the NUL that ends them.
    pub text: &'a [u8],
}

impl<'a> Query<'a> {
    /// Reads a Query body.
    ///
    /// # Errors
    /// When the first NUL is not the last byte.
    pub fn parse(body: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader::new("Query", body);
        let text = reader.cstr("text")?;
        reader.end()?;
        Ok(Self { text })
    }
}

/// Writes a simple Query.
///
/// # Errors
/// `ZeroByte` in the text, `TooLong` for Postgres.
pub fn encode_query(out: &mut Vec<u8>, text: &[u8]) -> Result<(), EncodeError> {
    let expected = text.len() + 1;
    let mut frame = OpenFrame::begin(out, Direction::Frontend, tag::QUERY, expected)?;
    frame.push_cstr("query", text)?;
    frame.finish();
    Ok(())
}

/// Checks the body of a message that has none, such as Sync, Flush or CopyDone.
///
/// Not for Terminate: Postgres leaves without reading what it carries.
///
/// # Errors
/// When there are bytes; they are never the start of another message.
pub fn parse_empty(message: &'static str, body: &[u8]) -> Result<(), MessageError> {
    Reader::new(message, body).end()
}

/// Writes a Sync.
pub fn encode_sync(out: &mut Vec<u8>) {
    encode_empty(out, tag::SYNC);
}

/// Writes a Flush.
pub fn encode_flush(out: &mut Vec<u8>) {
    encode_empty(out, tag::FLUSH);
}

/// Writes a Terminate.
pub fn encode_terminate(out: &mut Vec<u8>) {
    encode_empty(out, tag::TERMINATE);
}

fn encode_empty(out: &mut Vec<u8>, tag: u8) {
    out.extend_from_slice(&[tag, 0, 0, 0, 4]);
}

#[cfg(test)]
mod tests;
