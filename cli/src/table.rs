//! Table names as people write them.

use std::fmt;
use std::str::FromStr;

/// A table name with or without its schema, as the server would read it: parts
/// outside of double quotes are folded to lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableName {
    schema: Option<String>,
    table: String,
}

impl fmt::Display for TableName {
    /// Every part quoted, to stand in a statement.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(schema) = &self.schema {
            write!(f, "{}.", quote(schema))?;
        }
        f.write_str(&quote(&self.table))
    }
}

impl FromStr for TableName {
    type Err = String;

    fn from_str(text: &str) -> Result<TableName, String> {
        let mut parts = split(text)?;
        let table = parts.pop();
        match (table, parts.pop(), parts.pop()) {
            (Some(table), schema, None) => Ok(TableName { schema, table }),
            _ => Err(format!("`{text}` is not TABLE or SCHEMA.TABLE")),
        }
    }
}

fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The parts between dots, unquoted and folded.
fn split(text: &str) -> Result<Vec<String>, String> {
    let malformed = || format!("`{text}` is not a table name");
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let (part, after) = if let Some(quoted) = rest.strip_prefix('"') {
            toastrack_migrations::quoted_name(quoted).ok_or_else(malformed)?
        } else {
            let end = rest.find('.').unwrap_or(rest.len());
            let part = &rest[..end];
            if part.contains(|c: char| c == '"' || c.is_whitespace() || c.is_control()) {
                return Err(malformed());
            }
            (part.to_lowercase(), &rest[end..])
        };
        if part.is_empty() || part.contains('\0') {
            return Err(malformed());
        }
        parts.push(part);
        if after.is_empty() {
            return Ok(parts);
        }
        rest = after.strip_prefix('.').ok_or_else(malformed)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names are folded and quoted as the server does it.
    #[test]
    fn names() {
        for (text, quoted) in [
            ("docs", "\"docs\""),
            ("Docs", "\"docs\""),
            ("app.docs", "\"app\".\"docs\""),
            ("\"App.x\".\"a\"\"b\"", "\"App.x\".\"a\"\"b\""),
        ] {
            assert_eq!(text.parse::<TableName>().unwrap().to_string(), quoted);
        }
        for text in [
            "", ".", "a.", "a.b.c", "\"a", "a\"b", "a b", "\"\"", "\"a\"b",
        ] {
            assert!(text.parse::<TableName>().is_err(), "{text}");
        }
    }
}
