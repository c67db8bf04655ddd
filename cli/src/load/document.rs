//! A document, and how its bytes decide the column it goes to.

use serde_json::Value;

/// One row to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Document {
    /// Where it came from, relative to the source; with `:N` behind for a line or element.
    pub(crate) path: String,
    pub(crate) content: Content,
}

/// The bytes, in the column that takes them as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// To `body`: UTF-8 without NUL.
    Text(String),
    /// To `data`: JSON that `jsonb` can hold.
    Json(String),
    /// To `raw`: everything else.
    Binary(Vec<u8>),
}

impl Content {
    /// What the bytes of a file are. `json` tells that its name says JSON; it counts
    /// as text when it is not.
    pub(crate) fn of_file(bytes: Vec<u8>, json: bool) -> Content {
        match String::from_utf8(bytes) {
            Ok(text) if json && json_problem(&text).is_none() => Content::Json(text),
            Ok(text) if !text.contains('\0') => Content::Text(text),
            Ok(text) => Content::Binary(text.into_bytes()),
            Err(error) => Content::Binary(error.into_bytes()),
        }
    }

    /// The `kind` column.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Content::Text(_) => "text",
            Content::Json(_) => "json",
            Content::Binary(_) => "binary",
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Content::Text(text) | Content::Json(text) => text.len(),
            Content::Binary(bytes) => bytes.len(),
        }
    }
}

/// Why `jsonb` would not take the text, or `None` when it does.
pub(crate) fn json_problem(text: &str) -> Option<String> {
    match serde_json::from_str::<Value>(text) {
        Err(error) => Some(error.to_string()),
        Ok(value) if holds_nul(&value) => {
            Some("a string holds \\u0000, which jsonb cannot store".to_owned())
        }
        Ok(_) => None,
    }
}

/// The parser bounds the depth, and so this recursion.
fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(values) => values.iter().any(holds_nul),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| name.contains('\0') || holds_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes go to the narrowest column that takes them unchanged.
    #[test]
    fn columns() {
        for (bytes, json, kind) in [
            (&b"plain \xc3\xa9"[..], false, "text"),
            (b"{\"a\": 1}", false, "text"),
            (b"{\"a\": 1}", true, "json"),
            (b"{\"a\": ", true, "text"),
            (b"{\"a\\u0000\": 1}", true, "text"),
            (b"[\"\\u0000\"]", true, "text"),
            (b"\"\\ud800\"", true, "text"),
            (b"with \0 inside", false, "binary"),
            (b"\xff\xfe", true, "binary"),
            (b"", false, "text"),
        ] {
            let content = Content::of_file(bytes.to_vec(), json);
            assert_eq!(content.kind(), kind, "{bytes:?}");
            assert_eq!(content.len(), bytes.len());
        }
    }
}
