//! `COPY ... FROM STDIN`: where its rows go, and how they are laid out.
//!
//! Promises: an answer is certain or absent. Types do not protect what COPY brings in (S1), so a
//!           text or an option that is not understood to the last word gives `None`.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use pg_query::NodeEnum;
use pg_query::protobuf::{CopyStmt, DefElem, TransactionStmtKind};

use crate::copy_out::{parsed, text_of};

/// A `COPY ... FROM STDIN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyIn {
    /// The schema, where the statement names one.
    pub schema: Option<String>,
    /// The table's name, unquoted.
    pub table: String,
    /// The columns by name, in the order of the fields. Empty: all that can be written.
    pub columns: Vec<String>,
    /// How the rows are laid out.
    pub layout: CopyInLayout,
    /// Nothing in the same text ran before it, but what began a transaction.
    pub first: bool,
}

/// The layout of the rows, as the options set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyInLayout {
    /// The format.
    pub format: CopyFormat,
    /// Between fields.
    pub delimiter: u8,
    /// What stands for NULL.
    pub null: Vec<u8>,
    /// What stands for the column's default (PostgreSQL 16 and later).
    pub default: Option<Vec<u8>>,
    /// The first line is no row.
    pub header: bool,
    /// The encoding, where it is not the client's.
    pub encoding: Option<String>,
}

/// The format of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyFormat {
    /// Lines with backslash escapes.
    Text,
    /// CSV.
    Csv {
        /// Around fields.
        quote: u8,
        /// Before a quote within quotes.
        escape: u8,
    },
    /// The binary format.
    Binary,
}

/// The `COPY ... FROM STDIN` statements of a text, in order; `None` stands for one whose rows must go
/// as they come. Empty, too, for a text that is not understood. Costs one search of the text when it
/// does not say `STDIN`.
pub fn copies_in(text: &[u8]) -> Vec<Option<CopyIn>> {
    if !may_copy_in(text) {
        return Vec::new();
    }
    let Some(parsed) = parsed(text) else {
        return Vec::new();
    };
    let statements = parsed.protobuf.stmts.iter();
    let mut before = Before::Nothing;
    let mut copies = Vec::new();
    for statement in statements {
        let node = statement.stmt.as_ref().and_then(|raw| raw.node.as_ref());
        match node {
            Some(NodeEnum::CopyStmt(copy)) if is_from_client(copy) => {
                let known = before != Before::Anything;
                let read = known.then(|| read(copy, before == Before::Nothing));
                copies.push(read.flatten());
                before = before.max(Before::Copies);
            }
            Some(NodeEnum::TransactionStmt(transaction)) => {
                let begins = [
                    TransactionStmtKind::TransStmtBegin,
                    TransactionStmtKind::TransStmtStart,
                ];
                if !begins.contains(&transaction.kind()) {
                    before = before.max(Before::Copies);
                }
            }
            _ => before = Before::Anything,
        }
    }
    copies
}

/// Whether [`copies_in`] is worth calling: the text says `STDIN`, and is no longer than one that copies.
pub fn may_copy_in(text: &[u8]) -> bool {
    text.len() <= LONGEST && STDIN.is_match(text)
}

/// Rows do not stand in the text.
const LONGEST: usize = 64 * 1024;

/// What of the same text has run before a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Before {
    Nothing,
    /// Copies, and the ends of transactions.
    Copies,
    /// Something that may set anything.
    Anything,
}

static STDIN: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(["stdin"])
        .expect("one short pattern builds")
});

fn is_from_client(copy: &CopyStmt) -> bool {
    copy.is_from && !copy.is_program && copy.filename.is_empty()
}

fn read(copy: &CopyStmt, first: bool) -> Option<CopyIn> {
    let relation = copy.relation.as_ref()?;
    if !relation.catalogname.is_empty() {
        return None;
    }
    let columns = copy
        .attlist
        .iter()
        .map(|name| match name.node.as_ref() {
            Some(NodeEnum::String(name)) => Some(name.sval.clone()),
            _ => None,
        })
        .collect::<Option<Vec<String>>>()?;
    Some(CopyIn {
        schema: (!relation.schemaname.is_empty()).then(|| relation.schemaname.clone()),
        table: relation.relname.clone(),
        columns,
        layout: read_layout(copy)?,
        first,
    })
}

/// None when an option is not known, or not well formed.
fn read_layout(copy: &CopyStmt) -> Option<CopyInLayout> {
    let options = copy
        .options
        .iter()
        .map(|option| match option.node.as_ref() {
            Some(NodeEnum::DefElem(option)) => Some(option.as_ref()),
            _ => None,
        })
        .collect::<Option<Vec<&DefElem>>>()?;
    let (mut format, mut header) = ("text", false);
    let (mut delimiter, mut null, mut default, mut encoding) = (None, None, None, None);
    let (mut quote, mut escape) = (None, None);
    for option in options {
        match option.defname.as_str() {
            "format" => format = text_of(option)?,
            "delimiter" => delimiter = Some(byte_of(option)?),
            "null" => null = Some(text_of(option)?.as_bytes().to_vec()),
            "default" => default = Some(text_of(option)?.as_bytes().to_vec()),
            "header" => header = header_of(option)?,
            "quote" => quote = Some(byte_of(option)?),
            "escape" => escape = Some(byte_of(option)?),
            "encoding" => encoding = Some(text_of(option)?.to_owned()),
            // What they decide is NULL or not, kept or refused: never how a row is cut, nor what a
            // field with a value in it means.
            "freeze" | "force_null" | "force_not_null" | "on_error" | "log_verbosity"
            | "reject_limit" => {}
            _ => return None,
        }
    }
    let format = match format {
        "text" => CopyFormat::Text,
        "csv" => {
            let quote = quote.unwrap_or(b'"');
            let escape = escape.unwrap_or(quote);
            // Bytes with a meaning of their own while lines are told apart.
            let clear =
                quote != b'\\' && ![quote, escape].iter().any(|b| matches!(b, b'\n' | b'\r'));
            clear.then_some(CopyFormat::Csv { quote, escape })?
        }
        "binary" => CopyFormat::Binary,
        _ => return None,
    };
    let csv = matches!(format, CopyFormat::Csv { .. });
    Some(CopyInLayout {
        format,
        delimiter: delimiter.unwrap_or(if csv { b',' } else { b'\t' }),
        null: null.unwrap_or_else(|| if csv { Vec::new() } else { br"\N".to_vec() }),
        default,
        header,
        encoding,
    })
}

fn byte_of(option: &DefElem) -> Option<u8> {
    match text_of(option)?.as_bytes() {
        [byte] => Some(*byte),
        _ => None,
    }
}

/// Whether there is a header line: as good as none is said by leaving the value out.
fn header_of(option: &DefElem) -> Option<bool> {
    let Some(argument) = option.arg.as_ref() else {
        return Some(true);
    };
    match argument.node.as_ref()? {
        NodeEnum::Boolean(value) => Some(value.boolval),
        NodeEnum::Integer(value) => match value.ival {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        },
        NodeEnum::String(value) => match value.sval.to_ascii_lowercase().as_str() {
            "true" | "on" | "match" => Some(true),
            "false" | "off" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> CopyInLayout {
        CopyInLayout {
            format: CopyFormat::Text,
            delimiter: b'\t',
            null: br"\N".to_vec(),
            default: None,
            header: false,
            encoding: None,
        }
    }

    fn csv(quote: u8, escape: u8) -> CopyInLayout {
        CopyInLayout {
            format: CopyFormat::Csv { quote, escape },
            delimiter: b',',
            null: Vec::new(),
            ..text()
        }
    }

    /// Old and new spellings of the options; what is not certain is None.
    #[test]
    fn reads_layouts() {
        let binary = CopyInLayout {
            format: CopyFormat::Binary,
            ..text()
        };
        let with = |options: &str| {
            let copies = copies_in(format!("copy t from stdin {options}").as_bytes());
            assert_eq!(copies.len(), 1, "{options}");
            copies.into_iter().next().flatten().map(|copy| copy.layout)
        };
        for (options, expected) in [
            ("", Some(text())),
            ("with (format text)", Some(text())),
            ("csv", Some(csv(b'"', b'"'))),
            ("(format csv, quote '~')", Some(csv(b'~', b'~'))),
            (
                "(format csv, escape '\\', quote '''')",
                Some(csv(b'\'', b'\\')),
            ),
            (
                "with csv quote as '|' force not null a",
                Some(csv(b'|', b'|')),
            ),
            (
                "(format csv, force_null (a), force_not_null (b), freeze)",
                Some(csv(b'"', b'"')),
            ),
            ("binary", Some(binary.clone())),
            ("(format binary)", Some(binary)),
            (
                "(header)",
                Some(CopyInLayout {
                    header: true,
                    ..text()
                }),
            ),
            (
                "csv header",
                Some(CopyInLayout {
                    header: true,
                    ..csv(b'"', b'"')
                }),
            ),
            (
                "(format csv, header match)",
                Some(CopyInLayout {
                    header: true,
                    ..csv(b'"', b'"')
                }),
            ),
            ("(header false)", Some(text())),
            ("(header 0)", Some(text())),
            (
                "(delimiter '|', null 'nil', encoding 'LATIN1', default '\\D')",
                Some(CopyInLayout {
                    delimiter: b'|',
                    null: b"nil".to_vec(),
                    default: Some(b"\\D".to_vec()),
                    encoding: Some("LATIN1".to_owned()),
                    ..text()
                }),
            ),
            ("(on_error ignore, log_verbosity verbose)", Some(text())),
            ("(delimiter '||')", None),
            ("(header 2)", None),
            ("(format xml)", None),
            ("(format csv, quote '\\')", None),
            ("(surprise)", None),
        ] {
            assert_eq!(with(options), expected, "{options}");
        }
    }

    /// The target, and what stood before it in the text.
    #[test]
    fn reads_targets() {
        let read = |sql: &str| {
            let copies = copies_in(sql.as_bytes());
            let shown = copies.into_iter().map(|copy| {
                let copy = copy?;
                let schema = copy.schema.map_or(String::new(), |schema| schema + ".");
                let columns = copy.columns.join(",");
                Some((format!("{schema}{}({columns})", copy.table), copy.first))
            });
            shown.collect::<Vec<_>>()
        };
        let first = |target: &str| Some((target.to_owned(), true));
        let later = |target: &str| Some((target.to_owned(), false));
        assert_eq!(
            read("COPY \"My Docs\" (a, \"B\") FROM STDIN"),
            [first("My Docs(a,B)")]
        );
        assert_eq!(
            read("copy s.docs from stdin where a > 1"),
            [first("s.docs()")]
        );
        assert_eq!(
            read("begin; copy a from stdin; copy b from stdin; commit; copy c from stdin"),
            [first("a()"), later("b()"), later("c()")]
        );
        assert_eq!(
            read("copy a from stdin; select f(); copy b from stdin"),
            [first("a()"), None]
        );
        assert_eq!(read("set search_path = x; copy a from stdin csv"), [None]);
        assert_eq!(read("commit; copy a from stdin"), [later("a()")]);
        assert_eq!(read("copy d.s.t from stdin"), [None]);
        assert_eq!(read("copy t from '/tmp/stdin'"), []);
        assert_eq!(read("copy t to stdout; select 'stdin'"), []);
        assert_eq!(read("copy t from stdin nonsense"), []);
    }
}
