//! `COPY ... TO STDOUT`: how its rows will be laid out.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use pg_query::NodeEnum;
use pg_query::protobuf::{CopyStmt, DefElem};

/// The layout of the rows of one `COPY ... TO STDOUT`, as its options set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyOut {
    /// CSV, else text. Binary is told by the server's CopyOutResponse.
    pub csv: bool,
    /// Between fields.
    pub delimiter: u8,
    /// What stands for NULL.
    pub null: Vec<u8>,
    /// CSV: around fields.
    pub quote: u8,
    /// CSV: before a quote within quotes.
    pub escape: u8,
    /// CSV: every field that is not NULL is quoted.
    pub force_quote_all: bool,
}

impl Default for CopyOut {
    fn default() -> CopyOut {
        CopyOut {
            csv: false,
            delimiter: b'\t',
            null: br"\N".to_vec(),
            quote: b'"',
            escape: b'"',
            force_quote_all: false,
        }
    }
}

/// The `COPY ... TO STDOUT` statements of a text, in order. Empty, too, for a text that is not
/// understood. Costs one search of the text when it does not say `STDOUT`.
pub fn copies_out(text: &[u8]) -> Vec<CopyOut> {
    if text.len() > LONGEST || !STDOUT.is_match(text) {
        return Vec::new();
    }
    let Some(parsed) = parsed(text) else {
        return Vec::new();
    };
    let statements = parsed
        .protobuf
        .stmts
        .iter()
        .filter_map(|raw| raw.stmt.as_ref()?.node.as_ref());
    statements.filter_map(layout).collect()
}

/// A COPY of a query longer than this is unheard of, and costs more to parse than to guess.
const LONGEST: usize = 1 << 20;
/// The parser recurses with the nesting of its input.
const DEEPEST: usize = 1000;

/// The statements of a text, if it can be read.
pub(crate) fn parsed(text: &[u8]) -> Option<pg_query::ParseResult> {
    let opening = |byte: &&u8| matches!(byte, b'(' | b'[');
    if text.iter().filter(opening).count() > DEEPEST {
        return None;
    }
    pg_query::parse(std::str::from_utf8(text).ok()?, 0).ok()
}

static STDOUT: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(["stdout"])
        .expect("one short pattern builds")
});

fn layout(statement: &NodeEnum) -> Option<CopyOut> {
    let NodeEnum::CopyStmt(copy) = statement else {
        return None;
    };
    if copy.is_from || copy.is_program || !copy.filename.is_empty() {
        return None;
    }
    Some(read_options(copy))
}

fn read_options(copy: &CopyStmt) -> CopyOut {
    let options = || {
        copy.options
            .iter()
            .filter_map(|option| match option.node.as_ref() {
                Some(NodeEnum::DefElem(option)) => Some(option.as_ref()),
                _ => None,
            })
    };
    let csv = options().any(|option| {
        option.defname == "format" && text_of(option).is_some_and(|format| format == "csv")
    });
    let mut out = CopyOut {
        csv,
        ..CopyOut::default()
    };
    if csv {
        (out.delimiter, out.null) = (b',', Vec::new());
    }
    let byte_of = |option| text_of(option).and_then(|text| text.bytes().next());
    for option in options() {
        match option.defname.as_str() {
            "delimiter" => out.delimiter = byte_of(option).unwrap_or(out.delimiter),
            "null" => out.null = text_of(option).unwrap_or_default().as_bytes().to_vec(),
            "quote" => {
                out.quote = byte_of(option).unwrap_or(out.quote);
                out.escape = out.quote;
            }
            "force_quote" => out.force_quote_all = is_star(option),
            // "escape" below, since the quote is its default; the others do not change a row.
            _ => {}
        }
    }
    if let Some(escape) = options()
        .find(|option| option.defname == "escape")
        .and_then(byte_of)
    {
        out.escape = escape;
    }
    out
}

pub(crate) fn text_of(option: &DefElem) -> Option<&str> {
    match option.arg.as_ref()?.node.as_ref()? {
        NodeEnum::String(text) => Some(&text.sval),
        _ => None,
    }
}

fn is_star(option: &DefElem) -> bool {
    let argument = option
        .arg
        .as_ref()
        .and_then(|argument| argument.node.as_ref());
    matches!(argument, Some(NodeEnum::AStar(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Old and new spellings of the options, and what is no COPY to the client.
    #[test]
    fn reads_layouts() {
        let text = CopyOut::default();
        let csv = CopyOut {
            csv: true,
            delimiter: b',',
            null: Vec::new(),
            ..CopyOut::default()
        };
        for (sql, expected) in [
            ("copy docs to stdout", vec![text.clone()]),
            (
                "COPY docs (a, b) TO STDOUT WITH (FORMAT text)",
                vec![text.clone()],
            ),
            ("copy docs to stdout csv", vec![csv.clone()]),
            ("copy docs to stdout with csv header", vec![csv.clone()]),
            (
                "copy (select 1) to stdout (format csv, delimiter ';', null 'NIL', force_quote *)",
                vec![CopyOut {
                    delimiter: b';',
                    null: b"NIL".to_vec(),
                    force_quote_all: true,
                    ..csv.clone()
                }],
            ),
            (
                "copy t to stdout (format csv, escape '\\', quote '''')",
                vec![CopyOut {
                    quote: b'\'',
                    escape: b'\\',
                    ..csv.clone()
                }],
            ),
            (
                "copy t to stdout (format csv, quote '|')",
                vec![CopyOut {
                    quote: b'|',
                    escape: b'|',
                    ..csv.clone()
                }],
            ),
            (
                "copy t to stdout with delimiter '|' null 'x'",
                vec![CopyOut {
                    delimiter: b'|',
                    null: b"x".to_vec(),
                    ..text.clone()
                }],
            ),
            (
                "copy a to stdout; select 1; copy b to stdout csv",
                vec![text.clone(), csv.clone()],
            ),
            ("copy t from stdin", vec![]),
            ("copy t to '/tmp/stdout'", vec![]),
            ("select 'stdout'", vec![]),
            ("copy t to stdout nonsense", vec![]),
        ] {
            assert_eq!(copies_out(sql.as_bytes()), expected, "{sql}");
        }
    }
}
