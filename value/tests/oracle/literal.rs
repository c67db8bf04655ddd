//! Literals against the lexer of Postgres.

use std::borrow::Cow;

use rand::Rng;
use rand::rngs::StdRng;
use toastrack_value::literal::{LiteralKind, decode_literal, long_literals, quote_literal};

use crate::generate::{mix, pick};
use crate::server::ask;

const CONTENT: &[&str] = &[
    "a",
    "b",
    "''",
    "''",
    "\\",
    "\\\\",
    "\\n",
    "\\'",
    "\"",
    "$",
    "$$",
    "$a$",
    "--",
    "/*",
    "*/",
    "\n",
    " ",
    "\u{e9}",
    "\\\u{e9}",
    "\\101",
    "\\8",
    "\\x41",
    "\\x",
    "\\u0041",
    "\\U00000041",
    "\\v",
    "E'",
    "toast:",
    ";",
];

fn literal(rng: &mut StdRng) -> String {
    let content = mix(rng, CONTENT, 6);
    match rng.random_range(0..10) {
        0..=2 => format!("'{content}'"),
        3..=5 => format!("{}'{content}'", pick(rng, &["E", "e"])),
        6 => format!("$${content}$$"),
        7 => format!("$a${content}$a$"),
        8 => format!("$_b\u{e9}1${content}$_b\u{e9}1$"),
        _ => format!(
            "{}'{content}'",
            pick(rng, &["N", "U&", "n", "u&", "B", "X"])
        ),
    }
}

/// What may stand between two tokens.
fn gap(rng: &mut StdRng) -> String {
    mix(
        rng,
        &[
            " ",
            "\n",
            "\t",
            "-- it's\n",
            "/* ' */",
            "/* /* ' */ $$ */",
            "/**/",
            "--$a$\r",
            "/*/*/ */ */",
            "/***/",
            "\u{c}",
        ],
        2,
    )
}

/// One element of an array constructor, with things around a literal that look like
/// the start of one.
fn item(rng: &mut StdRng) -> String {
    let literal = literal(rng);
    match rng.random_range(0..8) {
        0 => format!("(select {literal} as \"it's $$ \"\" --\")"),
        1 => format!("(select {literal} as e$a$)"),
        2 => format!("(select {literal} from (select 1.5e3*-1) E)"),
        3 => format!("coalesce({literal},{}null)", gap(rng)),
        4 => format!("{literal}\n{}'it'", gap(rng)),
        _ => literal,
    }
}

/// The scanner sees the tokens that Postgres sees, and decodes them alike.
#[test]
fn literals_are_found_and_decoded_as_postgres_does() {
    ask(async |client, mut rng| {
        let mut expressions = Vec::new();
        for _ in 0..12_000 {
            let items: Vec<_> = (0..rng.random_range(1..5))
                .map(|_| format!("{}{}{}", gap(&mut rng), item(&mut rng), gap(&mut rng)))
                .collect();
            expressions.push(format!("array[{}]::text[]", items.join(",")));
        }
        let (mut compared, mut decoded) = (0, 0);
        for batch in expressions.chunks(1000) {
            let rows = client
                .query(
                    "select t.value from unnest($1::text[]) with ordinality i(input, n), \
                     try_expression(input) t order by n",
                    &[&batch],
                )
                .await
                .expect("an answer");
            for (expression, row) in batch.iter().zip(rows) {
                let Some(expected) = row.get::<_, Option<Vec<String>>>(0) else {
                    continue;
                };
                let tokens: Vec<_> = long_literals(expression.as_bytes(), 0, &[]).collect();
                assert_eq!(tokens.len(), expected.len(), "{expression}");
                compared += 1;
                for (token, expected) in tokens.iter().zip(&expected) {
                    let source = &expression[token.range.clone()];
                    let ours = decode_literal(source.as_bytes());
                    if token.kind == LiteralKind::Other {
                        assert!(ours.is_err(), "{source}");
                    }
                    if let Ok(ours) = ours {
                        decoded += 1;
                        assert_eq!(ours, Cow::Borrowed(expected.as_bytes()), "{source}");
                    }
                }
            }
        }
        println!("{compared} expressions, {decoded} literals");
        assert!(compared > 3000 && decoded > 6000);
    });
}

/// `quote_literal` is Postgres' own.
#[test]
fn literals_are_quoted_as_postgres_quotes_them() {
    ask(async |client, mut rng| {
        let values: Vec<_> = (0..1000).map(|_| mix(&mut rng, CONTENT, 5)).collect();
        let rows = client
            .query(
                "select quote_literal(v) from unnest($1::text[]) with ordinality i(v, n) order by n",
                &[&values],
            )
            .await
            .expect("an answer");
        for (value, row) in values.iter().zip(rows) {
            let ours = quote_literal(value.as_bytes());
            assert_eq!(String::from_utf8_lossy(&ours), row.get::<_, &str>(0));
        }
    });
}
