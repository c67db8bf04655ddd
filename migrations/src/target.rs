//! `table.column` and `schema.table.column`, as a person writes them.

use std::fmt;

use crate::error::Error;

/// A column by name. Without a schema the table is looked up as SQL would, by the search path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The schema, if one was given.
    pub schema: Option<String>,
    /// The table.
    pub table: String,
    /// The column.
    pub column: String,
}

impl Target {
    /// Parses `table.column` or `schema.table.column`. As in SQL, a name without quotes is folded to lower
    /// case, and a name in double quotes stands as it is, `""` in it for one `"`.
    ///
    /// # Errors
    /// `BadTarget`.
    pub fn parse(given: &str) -> Result<Target, Error> {
        let bad = |reason| Error::BadTarget {
            given: given.to_owned(),
            reason,
        };
        let mut names = Vec::new();
        let mut rest = given;
        loop {
            let (name, after) = match rest.strip_prefix('"') {
                Some(quoted) => quoted_name(quoted).ok_or_else(|| bad("a quote is not closed"))?,
                None => {
                    let end = rest.find('.').unwrap_or(rest.len());
                    (rest[..end].to_lowercase(), &rest[end..])
                }
            };
            if name.is_empty() {
                return Err(bad("a name is empty"));
            }
            if !rest.starts_with('"') && name.contains(|c: char| c == '"' || c.is_whitespace()) {
                return Err(bad(
                    "a name with quotes or blanks in it needs double quotes",
                ));
            }
            names.push(name);
            match after.strip_prefix('.') {
                Some(next) => rest = next,
                None if after.is_empty() => break,
                None => return Err(bad("something follows a closing quote")),
            }
        }
        let column = names.pop().unwrap_or_default();
        let table = names.pop().ok_or_else(|| bad("there is no table"))?;
        let schema = names.pop();
        if names.is_empty() {
            Ok(Target {
                schema,
                table,
                column,
            })
        } else {
            Err(bad("there are too many names"))
        }
    }

    /// The table, quoted for SQL where it has to be.
    pub(crate) fn relation(&self) -> String {
        match &self.schema {
            Some(schema) => format!("{}.{}", quote_ident(schema), quote_ident(&self.table)),
            None => quote_ident(&self.table),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.relation(), quote_ident(&self.column))
    }
}

/// Reads a quoted identifier whose opening quote was taken off: the name, and what follows its
/// closing quote. `None` when there is none.
pub fn quoted_name(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"')?;
        name.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(after) => {
                name.push('"');
                rest = after;
            }
            None => return Some((name, rest)),
        }
    }
}

/// An identifier for SQL: in quotes unless it is plainly a lower-case name. Quotes some keywords' neighbours
/// too many rather than one too few: every name that could be a keyword gets them.
pub(crate) fn quote_ident(name: &str) -> String {
    let plain = name.bytes().enumerate().all(|(at, byte)| {
        byte.is_ascii_lowercase() || byte == b'_' || (at > 0 && byte.is_ascii_digit())
    }) && !RESERVED.contains(&name);
    if plain {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// Keywords of PostgreSQL that cannot be a column's or a table's name without quotes.
const RESERVED: &[&str] = &[
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "binary",
    "both",
    "case",
    "cast",
    "check",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "deferrable",
    "desc",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "false",
    "fetch",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "grant",
    "group",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "intersect",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "natural",
    "not",
    "notnull",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "outer",
    "overlaps",
    "placing",
    "primary",
    "references",
    "returning",
    "right",
    "select",
    "session_user",
    "similar",
    "some",
    "symmetric",
    "system_user",
    "table",
    "tablesample",
    "then",
    "to",
    "trailing",
    "true",
    "union",
    "unique",
    "user",
    "using",
    "variadic",
    "verbose",
    "when",
    "where",
    "window",
    "with",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Names with and without schema and quotes; what is no target says why.
    #[test]
    fn parses_targets() {
        for (given, expected) in [
            ("docs.body", Ok((None, "docs", "body"))),
            ("Public.Docs.BODY", Ok((Some("public"), "docs", "body"))),
            (r#""My ""Docs""".body"#, Ok((None, r#"My "Docs""#, "body"))),
            (r#"s."a.b"."C""#, Ok((Some("s"), "a.b", "C"))),
            ("body", Err("there is no table")),
            ("", Err("a name is empty")),
            ("docs.", Err("a name is empty")),
            (".body", Err("a name is empty")),
            ("a.b.c.d", Err("there are too many names")),
            (r#""docs.body"#, Err("a quote is not closed")),
            (r#""docs"x.body"#, Err("something follows a closing quote")),
            (
                "my docs.body",
                Err("a name with quotes or blanks in it needs double quotes"),
            ),
        ] {
            let found = Target::parse(given);
            match (found, expected) {
                (Ok(found), Ok((schema, table, column))) => {
                    assert_eq!(found.schema.as_deref(), schema, "{given}");
                    assert_eq!(
                        (found.table.as_str(), found.column.as_str()),
                        (table, column),
                        "{given}"
                    );
                    assert_eq!(Target::parse(&found.to_string()).unwrap(), found, "{given}");
                }
                (Err(Error::BadTarget { reason, .. }), Err(expected)) => {
                    assert_eq!(reason, expected, "{given}")
                }
                (found, expected) => panic!("{given}: {found:?}, expected {expected:?}"),
            }
        }
    }

    /// What SQL would fold or take for a keyword is quoted.
    #[test]
    fn quotes_identifiers() {
        for (name, quoted) in [
            ("body", "body"),
            ("_a1", "_a1"),
            ("1a", "\"1a\""),
            ("Body", "\"Body\""),
            ("user", "\"user\""),
            ("a\"b", "\"a\"\"b\""),
            ("größe", "\"größe\""),
        ] {
            assert_eq!(quote_ident(name), quoted);
        }
    }
}
