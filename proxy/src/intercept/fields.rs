//! A field of a result: the reference in it, and the value in its place.

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;
use toastrack_offload::{BINARY_LEN, Identity, Reference, Store, ValueKind};
use toastrack_value::encoding::{self, ClientEncoding};
use toastrack_value::{array, bytea};
use tokio_postgres::types::Type;

use super::row::RowError;
use crate::catalog::Snapshot;

/// Values by identity.
pub(crate) type Values = HashMap<Identity, Bytes>;

/// What is to be replaced in a field.
pub(crate) enum Found {
    /// The whole field, which is a reference.
    Value(Reference, Spelling),
    /// Elements of an array; and, in a binary one, the element type in its header.
    Array(ArrayReferences),
}

/// An array that holds references, or a binary one that names a `toastrack.*` type.
pub(crate) struct ArrayReferences {
    kind: ValueKind,
    binary: bool,
    references: Vec<Reference>,
}

/// What stands around a reference in a field, and so around the value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spelling {
    /// Nothing: text, json, jsonb in text format, bytea in binary format.
    Plain,
    /// The version byte of jsonb in binary format.
    JsonbBinary,
    /// `bytea_output = hex`, as the server told by how it printed the reference.
    ByteaHex,
    /// `bytea_output = escape`.
    ByteaEscape,
}

impl Found {
    /// The references whose values are needed.
    pub(crate) fn references(&self) -> &[Reference] {
        match self {
            Found::Value(reference, _) => std::slice::from_ref(reference),
            Found::Array(array) => &array.references,
        }
    }
}

/// Looks at a field of a column of a `toastrack.*` type, or of an array of one.
pub(crate) fn find(
    store: &Store,
    kind: ValueKind,
    array: bool,
    binary: bool,
    field: &[u8],
) -> Option<Found> {
    if array {
        return find_array(store, kind, binary, field).map(Found::Array);
    }
    find_value(store, kind, binary, field)
        .map(|(reference, spelling)| Found::Value(reference, spelling))
}

/// Looks at a field whose type is not known.
pub(crate) fn find_untyped(
    store: &Store,
    catalog: &Snapshot,
    binary: bool,
    field: &[u8],
) -> Option<Found> {
    const KINDS: [ValueKind; 3] = [ValueKind::Text, ValueKind::Jsonb, ValueKind::Bytea];
    let json_in_binary = || find_value(store, ValueKind::Json, binary, field);
    let value = KINDS
        .into_iter()
        .find_map(|kind| find_value(store, kind, binary, field));
    if let Some((reference, spelling)) = value.or_else(json_in_binary) {
        return Some(Found::Value(reference, spelling));
    }
    if binary {
        let known = catalog.type_of(array::binary_element_oid(field)?)?;
        let kind = (!known.array).then_some(known.kind)?;
        return find_array(store, kind, binary, field).map(Found::Array);
    }
    if !matches!(field.first(), Some(b'{' | b'[')) {
        return None;
    }
    KINDS
        .into_iter()
        .find_map(|kind| find_array(store, kind, binary, field))
        .map(Found::Array)
}

fn find_value(
    store: &Store,
    kind: ValueKind,
    binary: bool,
    field: &[u8],
) -> Option<(Reference, Spelling)> {
    match (kind, binary) {
        (ValueKind::Jsonb, true) => {
            let text = field.strip_prefix(&[1])?;
            Some((store.parse(kind, text)?, Spelling::JsonbBinary))
        }
        (ValueKind::Bytea, false) => {
            let spelling = bytea_spelling(field)?;
            let bytes = bytea::decode(field).ok()?;
            Some((store.parse(kind, &bytes)?, spelling))
        }
        _ => Some((store.parse(kind, field)?, Spelling::Plain)),
    }
}

fn find_array(
    store: &Store,
    kind: ValueKind,
    binary: bool,
    field: &[u8],
) -> Option<ArrayReferences> {
    let reference = |element: &[u8]| find_value(store, kind, binary, element).map(|found| found.0);
    let mut references = Vec::new();
    if binary {
        for element in array::binary_elements(field) {
            references.extend(element.ok()?.and_then(reference));
        }
    } else {
        for element in array::text_elements(field) {
            references.extend(element.ok()?.value.as_deref().and_then(reference));
        }
    }
    // The header of a binary array names the element type, which the client is not to see.
    let found = ArrayReferences {
        kind,
        binary,
        references,
    };
    (binary || !found.references.is_empty()).then_some(found)
}

/// The field with values in place of references.
///
/// # Errors
/// A value that the client's encoding cannot express; an array that is none.
pub(crate) fn written<'v>(
    found: &Found,
    field: &[u8],
    values: &'v Values,
    encoding: ClientEncoding,
) -> Result<Cow<'v, [u8]>, RowError> {
    match found {
        Found::Value(reference, spelling) => {
            let value = values
                .get(&reference.identity())
                .ok_or(RowError::Unfetched)?;
            spelled(value, reference.kind(), *spelling, encoding)
        }
        Found::Array(array) => array.written(field, values, encoding).map(Cow::Owned),
    }
}

impl ArrayReferences {
    fn written(
        &self,
        field: &[u8],
        values: &Values,
        encoding: ClientEncoding,
    ) -> Result<Vec<u8>, RowError> {
        let mut left = self.references.iter().peekable();
        let replace = |element: &[u8]| -> Result<Option<Vec<u8>>, RowError> {
            let Some(next) = left.peek() else {
                return Ok(None);
            };
            let spelling = element_spelling(next, self.kind, self.binary, element);
            let Some(spelling) = spelling else {
                return Ok(None);
            };
            let value = values.get(&next.identity()).ok_or(RowError::Unfetched)?;
            left.next();
            spelled(value, self.kind, spelling, encoding).map(|value| Some(value.into_owned()))
        };
        let replaced = if self.binary {
            array::replace_binary_elements(field, Some(plain_oid(self.kind)), replace)
        } else {
            array::replace_text_elements(field, replace)
        };
        match replaced {
            Ok(array) => Ok(array.unwrap_or_else(|| field.to_vec())),
            Err(array::ArrayError::Element(error)) => Err(error),
            Err(array::ArrayError::Malformed(error)) => Err(RowError::Array(error)),
        }
    }
}

/// How `element` spells `reference`; None when it is another element.
fn element_spelling(
    reference: &Reference,
    kind: ValueKind,
    binary: bool,
    element: &[u8],
) -> Option<Spelling> {
    let spelling = reference.spelling();
    match (kind, binary) {
        (ValueKind::Jsonb, true) => {
            (*element.strip_prefix(&[1])? == *spelling).then_some(Spelling::JsonbBinary)
        }
        (ValueKind::Bytea, false) => {
            let style = bytea_spelling(element)?;
            (bytea::decode(element).ok()? == *spelling).then_some(style)
        }
        (ValueKind::Text | ValueKind::Varchar, _) => {
            (element == reference.to_text()).then_some(Spelling::Plain)
        }
        _ => (*element == *spelling).then_some(Spelling::Plain),
    }
}

/// A value as it stands in a field.
pub(crate) fn spelled(
    value: &[u8],
    kind: ValueKind,
    spelling: Spelling,
    encoding: ClientEncoding,
) -> Result<Cow<'_, [u8]>, RowError> {
    match spelling {
        Spelling::Plain if kind == ValueKind::Bytea => Ok(Cow::Borrowed(value)),
        Spelling::Plain => Ok(encoding::encode_for_client(value, encoding)?),
        Spelling::JsonbBinary => {
            let text = encoding::encode_for_client(value, encoding)?;
            Ok(Cow::Owned([&[1], &*text].concat()))
        }
        Spelling::ByteaHex => Ok(Cow::Owned(bytea::encode_hex(value))),
        Spelling::ByteaEscape => Ok(Cow::Owned(bytea::encode_escape(value))),
    }
}

fn plain_oid(kind: ValueKind) -> u32 {
    let plain = match kind {
        ValueKind::Text => Type::TEXT,
        ValueKind::Varchar => Type::VARCHAR,
        ValueKind::Json => Type::JSON,
        ValueKind::Jsonb => Type::JSONB,
        ValueKind::Bytea => Type::BYTEA,
    };
    plain.oid()
}

/// The style in which a bytea that may be a reference is printed; None when it can be none.
fn bytea_spelling(field: &[u8]) -> Option<Spelling> {
    if field.len() == bytea::hex_len(BINARY_LEN) && field.starts_with(br"\xf7544f4153540d0a") {
        return Some(Spelling::ByteaHex);
    }
    let longest = BINARY_LEN * 4;
    let escaped_magic = br"\367TOAST\015\012";
    (field.len() <= longest && field.starts_with(escaped_magic)).then_some(Spelling::ByteaEscape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toastrack_offload::BINARY_MAGIC;

    /// The magic as both settings of `bytea_output` print it is what fields are searched for.
    #[test]
    fn knows_the_magic_in_both_styles() {
        let padded =
            |start: Vec<u8>, len: usize| [start.clone(), vec![b'0'; len - start.len()]].concat();
        let hex = padded(bytea::encode_hex(BINARY_MAGIC), bytea::hex_len(BINARY_LEN));
        assert_eq!(bytea_spelling(&hex), Some(Spelling::ByteaHex));
        assert_eq!(bytea_spelling(&hex[1..]), None);
        let escape = padded(bytea::encode_escape(BINARY_MAGIC), 80);
        assert_eq!(bytea_spelling(&escape), Some(Spelling::ByteaEscape));
        assert_eq!(bytea_spelling(&[&escape[..], &[b'0'; 200]].concat()), None);
    }
}
