//! Errors and notices of the server as the client would have got them: what they say about places in what
//! the client sent is said of what the client sent, not of what the proxy made of it.

use bytes::Bytes;
use toastrack_sql::EditMap;
use toastrack_wire::backend::ErrorFields;
use toastrack_wire::frame::HEADER_LEN;
use toastrack_wire::{Direction, encode_frame};

use crate::intercept::CopyTarget;

const POSITION: u8 = b'P';
const CONTEXT: u8 = b'W';
const SEVERITY: u8 = b'V';
const SQLSTATE: u8 = b'C';

/// The error with its position as it stands in the client's own text; None when it has none.
pub(super) fn with_original_position(frame: &Bytes, edits: &EditMap) -> Option<Vec<u8>> {
    with_field(frame, POSITION, |position| {
        let position: usize = std::str::from_utf8(position).ok()?.parse().ok()?;
        Some(edits.original_position(position).to_string().into_bytes())
    })
}

/// The error or notice with the line of a copy as the client counts lines; None when it is the same.
pub(super) fn with_original_line(frame: &Bytes, target: &CopyTarget) -> Option<Vec<u8>> {
    with_field(frame, CONTEXT, |context| {
        let lines = target.lines.lock();
        lines.context_of_client(context, &target.table)
    })
}

/// Whether the server ends the connection behind this error.
pub(super) fn ends_connection(frame: &Bytes) -> bool {
    let severity = field(frame, SEVERITY);
    severity.is_none_or(|severity| severity == b"FATAL" || severity == b"PANIC")
}

/// Whether the error says only that an error came before it.
pub(super) fn is_consequence(frame: &Bytes) -> bool {
    field(frame, SQLSTATE) == Some(b"25P02")
}

fn field(frame: &Bytes, code: u8) -> Option<&[u8]> {
    ErrorFields::parse(&frame[HEADER_LEN..]).ok()?.get(code)
}

/// The message with another value in one field; None when there is none to put.
fn with_field(
    frame: &Bytes,
    changed: u8,
    value: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let fields = ErrorFields::parse(&frame[HEADER_LEN..]).ok()?;
    let new = value(fields.get(changed)?)?;
    let mut body = Vec::with_capacity(frame.len());
    for (code, value) in fields.iter() {
        body.push(code);
        body.extend_from_slice(if code == changed { &new } else { value });
        body.push(0);
    }
    body.push(0);
    let mut out = Vec::with_capacity(body.len() + HEADER_LEN);
    encode_frame(&mut out, Direction::Backend, frame[0], &body).ok()?;
    Some(out)
}
