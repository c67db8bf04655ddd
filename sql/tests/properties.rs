//! Generated statements whose plan is known from how they were made, and texts
//! of no particular meaning.

mod common;

use common::{kind_of, tables};
use proptest::prelude::*;
use toastrack_sql::{Analyzer, apply_edits};

/// A value as written, and what is to stand in its place.
#[derive(Debug, Clone)]
struct Value {
    written: String,
    /// With the literal swapped for a reference.
    with_reference: String,
    /// With the parameter's cast changed.
    with_declaration: String,
}

impl Value {
    fn unchanged(written: String) -> Value {
        Value {
            with_reference: written.clone(),
            with_declaration: written.clone(),
            written,
        }
    }
}

/// White space and comments, with what might confuse a scanner in them.
fn blank() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => Just(" ".to_owned()),
        1 => Just("\n\t".to_owned()),
        1 => Just(" /* it's \"$$ /* ( */ ; */ ".to_owned()),
        1 => Just(" -- it's \"$$ (;\n".to_owned()),
    ]
}

fn literal() -> impl Strategy<Value = String> {
    let body = "[a-z'\\\\\";:$é()\n -]{0,12}";
    prop_oneof![
        body.prop_map(|b| format!("'{}'", b.replace('\'', "''"))),
        body.prop_map(|b| format!("E'{}'", b.replace('\\', "\\\\").replace('\'', "\\'"))),
        body.prop_map(|b| format!("$ta_g${}$ta_g$", b.replace("$ta_g$", ""))),
        "[a-z'\"]{0,12}".prop_map(|b| format!("$${b}$$")),
    ]
}

/// How a direct value may be cast: around it, `{}` for the value and `<>` for the type.
fn cast(kind: &'static str) -> impl Strategy<Value = (String, String)> {
    let types = match kind {
        "text" => vec!["text", "TEXT", "pg_catalog.text", "\"text\"", "varchar"],
        "varchar" => vec!["varchar", "character varying", "char varying", "text"],
        "jsonb" => vec![
            "jsonb",
            "JsonB",
            "pg_catalog . jsonb",
            "\"pg_catalog\".\"jsonb\"",
        ],
        _ => vec!["bytea", "pg_catalog.bytea"],
    };
    let forms = vec![
        "{}",
        "({})",
        "{}::<>",
        "({}) :: <>",
        "(({}::<>))",
        "CAST({} AS <>)",
        "cast((({})) as <>)",
    ];
    let forms = proptest::sample::select(forms);
    (forms, proptest::sample::select(types)).prop_map(|(f, t)| (f.to_owned(), t.to_owned()))
}

/// For an offloaded column of this kind; `#` stands for a parameter's number.
fn offloaded(kind: &'static str) -> impl Strategy<Value = Value> {
    let name = format!("toastrack.{kind}");
    let of_literal = (literal(), cast(kind)).prop_map({
        let name = name.clone();
        move |(literal, (form, ty))| {
            let written = form.replace("{}", &literal).replace("<>", &ty);
            let reference = format!("'ref'::{name}");
            let with_reference = match form.as_str() {
                "({})" => format!("({reference})"),
                "(({}::<>))" => format!("(({reference}))"),
                _ => reference,
            };
            Value {
                with_reference,
                ..Value::unchanged(written)
            }
        }
    });
    let of_param = cast(kind).prop_map(move |(form, ty)| Value {
        with_declaration: form.replace("{}", "$#").replace("<>", &name),
        ..Value::unchanged(form.replace("{}", "$#").replace("<>", &ty))
    });
    prop_oneof![3 => of_literal, 2 => of_param, 1 => other()]
}

/// Values that are no direct assignment.
fn other() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just("NULL".to_owned()),
        Just("DEFAULT".to_owned()),
        literal().prop_map(|l| format!("upper({l})")),
        literal().prop_map(|l| format!("{l} || {l}")),
        literal().prop_map(|l| format!("{l}::int")),
        literal().prop_map(|l| format!("{l}::text::jsonb")),
        Just("$#::text::jsonb".to_owned()),
        Just("coalesce($#, x)".to_owned()),
        Just("12345678".to_owned()),
    ]
    .prop_map(Value::unchanged)
}

/// For a plain column: anything, unchanged.
fn plain() -> impl Strategy<Value = Value> {
    prop_oneof![
        literal(),
        Just("$#".to_owned()),
        Just("$#::text".to_owned()),
        Just("-12.5".to_owned())
    ]
    .prop_map(Value::unchanged)
}

fn row() -> impl Strategy<Value = Vec<Value>> {
    (
        plain(),
        offloaded("text"),
        plain(),
        offloaded("jsonb"),
        offloaded("varchar"),
        offloaded("bytea"),
    )
        .prop_map(|(a, b, c, d, e, f)| vec![a, b, c, d, e, f])
}

#[derive(Debug, Clone)]
struct Statement {
    written: String,
    with_references: String,
    with_declarations: String,
}

/// Writes a statement from a template in which `{n}` is the nth value and `~` is blank.
fn statement() -> impl Strategy<Value = Statement> {
    const COLUMNS: [&str; 6] = ["id", "body", "title", "data", "note", "raw"];
    let insert =
        (proptest::collection::vec(row(), 1..4), any::<bool>()).prop_map(|(rows, named)| {
            let columns = if named {
                format!("({})~", COLUMNS.join(",~"))
            } else {
                String::new()
            };
            let mut pieces = vec![format!("INSERT~INTO~public.docs~{columns}VALUES~")];
            let mut values = Vec::new();
            for (i, row) in rows.into_iter().enumerate() {
                let open = if i == 0 { "(~" } else { ",(~" };
                for (j, value) in row.into_iter().enumerate() {
                    let before = if j == 0 { open } else { "~,~" };
                    pieces.last_mut().expect("one").push_str(before);
                    pieces.push(String::new());
                    values.push(value);
                }
                pieces.last_mut().expect("one").push_str("~)");
            }
            (pieces, values)
        });
    let update = row().prop_map(|row| {
        let mut pieces = vec!["UPDATE~docs~SET~".to_owned()];
        for (name, _) in COLUMNS.iter().zip(&row) {
            pieces
                .last_mut()
                .expect("one")
                .push_str(&format!("{name}~=~"));
            pieces.push("~,~".to_owned());
        }
        *pieces.last_mut().expect("one") = "~WHERE~id~=~1".to_owned();
        (pieces, row)
    });
    let blanks = proptest::collection::vec(blank(), 8);
    (prop_oneof![insert, update], blanks).prop_map(|((pieces, values), blanks)| {
        let write = |spelling: fn(&Value) -> &String| {
            let mut blanks = blanks.iter().cycle();
            let mut text = String::new();
            for (i, piece) in pieces.iter().enumerate() {
                for (j, part) in piece.split('~').enumerate() {
                    if j > 0 {
                        text.push_str(blanks.next().expect("a cycle"));
                    }
                    text.push_str(part);
                }
                if let Some(value) = values.get(i) {
                    text.push_str(&spelling(value).replace('#', &(i + 1).to_string()));
                }
            }
            text
        };
        Statement {
            written: write(|v| &v.written),
            with_references: write(|v| &v.with_reference),
            with_declarations: write(|v| &v.with_declaration),
        }
    })
}

/// What a tree says without places and with one name for each pair of types
/// that an edit exchanges.
fn structure(text: &str) -> String {
    let parsed = pg_query::parse(text, 0).unwrap_or_else(|e| panic!("{text}: {e}"));
    let written = parsed.deparse(Default::default()).expect("it was parsed");
    ["toastrack.", "pg_catalog.", "\""]
        .iter()
        .fold(written, |text, name| text.replace(name, ""))
        .replace("varchar", "text")
}

/// Pieces of SQL that make some sense next to each other.
fn soup() -> impl Strategy<Value = String> {
    const WORDS: &[&str] = &[
        "insert into docs",
        "update docs set",
        "body",
        "data",
        " = ",
        "values",
        "(",
        ")",
        ",",
        "$1",
        "$2",
        "'abc'",
        "E'a\\'b'",
        "$$",
        "$x$",
        "::",
        "jsonb",
        "text",
        "cast(",
        " as ",
        "select ",
        "*",
        ";",
        "with x as (",
        "on conflict do update set",
        "default",
        "'",
        "\"",
        "--",
        "\n",
        "/*",
        "*/",
        "1",
        "merge into docs using x on true when matched then update set",
        "returning",
        "from",
        "where",
        "row(",
        "[",
        "]",
        ".",
        "explain ",
        "copy (",
        "null",
        "é",
    ];
    proptest::collection::vec(proptest::sample::select(WORDS), 0..24)
        .prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Every direct literal is found and nothing else; what stands around stays as it was.
    #[test]
    fn literals_are_replaced_where_they_are_direct(statement in statement()) {
        let text = &statement.written;
        let plan = Analyzer::new(0).query(&tables(), text, 0);
        prop_assert!(plan.understood, "{}", text);
        prop_assert_eq!(plan.statement_count, 1);
        prop_assert!(plan.literals.iter().all(|s| s.kind == kind_of(s.column)));
        let edits: Vec<_> = plan.literals.iter().map(|site| site.edit("ref")).collect();
        let (edited, map) = apply_edits(text, &edits);
        prop_assert_eq!(&edited, &statement.with_references, "{}", text);
        pg_query::parse(&edited, 0).map_err(|e| TestCaseError::fail(format!("{edited}: {e}")))?;
        let end = |text: &str| text.chars().count() + 1;
        prop_assert_eq!(map.original_position(end(&edited)), end(text));
    }

    /// Casts of direct parameters change their type's name, and the tree stays the same.
    #[test]
    fn casts_are_edited_where_they_are_direct(statement in statement()) {
        let text = &statement.written;
        let plan = Analyzer::new(0).statement(&tables(), text);
        prop_assert!(plan.understood, "{}", text);
        let (edited, _) = apply_edits(text, &plan.edits);
        prop_assert_eq!(&edited, &statement.with_declarations, "{}", text);
        prop_assert_eq!(structure(&edited), structure(text), "{}", text);
    }

    /// Whatever the text: no panic; edits keep it a statement with the same
    /// tree; literals are what the text has at their place.
    #[test]
    fn texts_without_meaning_do_no_harm(text in soup()) {
        let analyzer = Analyzer::new(0);
        let plan = analyzer.statement(&tables(), &text);
        let (edited, _) = apply_edits(&text, &plan.edits);
        if !plan.params.is_empty() {
            prop_assert_eq!(structure(&edited), structure(&text), "{}", text);
        }
        let plan = analyzer.query(&tables(), &text, 0);
        let edits: Vec<_> = plan.literals.iter().map(|site| site.edit("ref")).collect();
        let (edited, _) = apply_edits(&text, &edits);
        if let Err(error) = pg_query::parse(&text, 0) {
            prop_assert!(pg_query::parse(&edited, 0).is_err(), "{}: {}", text, error);
        } else {
            prop_assert!(pg_query::parse(&edited, 0).is_ok(), "{}", edited);
        }
    }

    #[test]
    fn arbitrary_texts_do_not_panic(text in any::<String>(), tail in any::<String>()) {
        let text = format!("{text}update docs set body={tail}");
        let analyzer = Analyzer::new(0);
        let plan = analyzer.statement(&tables(), &text);
        let _ = apply_edits(&text, &plan.edits);
        let _ = analyzer.query(&tables(), &text, 0);
    }
}
