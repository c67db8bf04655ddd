//! Which literals of which texts are found, and how positions map back.

mod common;

use common::{kind_of, tables};
use toastrack_sql::{Analyzer, Edit, LiteralKind, apply_edits};

const MIN_LEN: usize = 8;

/// The text with each site's literal replaced by the letter of its spelling and
/// its column: `P1`, `E2`, `D3`; that is, what `replace_range` covers.
fn sites_of(text: &str) -> String {
    let plan = Analyzer::new(16).query(&tables(), text, MIN_LEN);
    let mut edits = Vec::new();
    for site in &plan.literals {
        assert_eq!(site.kind, kind_of(site.column), "{text}");
        let token = &text[site.range.clone()];
        let body = &text[site.body.clone()];
        let letter = match site.literal {
            LiteralKind::Plain => {
                assert_eq!(token, format!("'{body}'"), "{text}");
                'P'
            }
            LiteralKind::Escape => {
                assert_eq!(&token[1..], format!("'{body}'"), "{text}");
                'E'
            }
            LiteralKind::Dollar => {
                assert!(token.starts_with('$') && token.ends_with('$'), "{text}");
                'D'
            }
        };
        assert!(site.replace_range.start <= site.range.start, "{text}");
        assert!(site.replace_range.end >= site.range.end, "{text}");
        edits.push(Edit {
            range: site.replace_range.clone(),
            replacement: format!("{letter}{}", site.column).into(),
            param: None,
        });
    }
    assert!(plan.understood || edits.is_empty(), "{text}");
    apply_edits(text, &edits).0
}

fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(sites_of(text), *expected, "{text}");
    }
}

fn check_none(texts: &[&str]) {
    for text in texts {
        assert_eq!(sites_of(text), *text);
    }
}

#[test]
fn literals_in_direct_assignments() {
    check(&[
        (
            "INSERT INTO docs (id, body) VALUES (1, 'long enough')",
            "INSERT INTO docs (id, body) VALUES (1, P1)",
        ),
        (
            "INSERT INTO docs (id, body) VALUES (1, 'short')",
            "INSERT INTO docs (id, body) VALUES (1, 'short')",
        ),
        (
            "INSERT INTO docs (body) VALUES ('1234567')",
            "INSERT INTO docs (body) VALUES ('1234567')",
        ),
        (
            "INSERT INTO docs (body) VALUES ('12345678')",
            "INSERT INTO docs (body) VALUES (P1)",
        ),
        (
            "INSERT INTO docs (body) VALUES (E'long\\n enough')",
            "INSERT INTO docs (body) VALUES (E1)",
        ),
        (
            "INSERT INTO docs (body) VALUES (e'it\\'s; \\\\')",
            "INSERT INTO docs (body) VALUES (E1)",
        ),
        (
            "INSERT INTO docs (body) VALUES ($$long ' enough$$)",
            "INSERT INTO docs (body) VALUES (D1)",
        ),
        (
            "INSERT INTO docs (body) VALUES ($q$long $$ enough$q$)",
            "INSERT INTO docs (body) VALUES (D1)",
        ),
        (
            "INSERT INTO docs (body) VALUES ('it''s; long')",
            "INSERT INTO docs (body) VALUES (P1)",
        ),
        (
            "INSERT INTO docs (title, body, data) VALUES ('a long title', 'a long body', '{\"a\": [1, 2]}')",
            "INSERT INTO docs (title, body, data) VALUES ('a long title', P1, P2)",
        ),
        (
            "INSERT INTO docs (body) VALUES ('the first'), ('x'), (NULL), ('the second')",
            "INSERT INTO docs (body) VALUES (P1), ('x'), (NULL), (P1)",
        ),
        (
            "UPDATE docs SET body = 'long enough', id = 12345678901 WHERE id = 12",
            "UPDATE docs SET body = P1, id = 12345678901 WHERE id = 12",
        ),
        (
            "UPDATE docs SET (body, note) = ('long enough', 'also long')",
            "UPDATE docs SET (body, note) = (P1, P3)",
        ),
        (
            "INSERT INTO docs (id, body) VALUES (1, 'long enough') ON CONFLICT (id) DO UPDATE SET body = 'another long'",
            "INSERT INTO docs (id, body) VALUES (1, P1) ON CONFLICT (id) DO UPDATE SET body = P1",
        ),
        (
            "INSERT INTO docs (body) SELECT 'long enough' WHERE true",
            "INSERT INTO docs (body) SELECT P1 WHERE true",
        ),
        (
            "MERGE INTO docs USING s ON true WHEN MATCHED THEN UPDATE SET body = 'long enough'",
            "MERGE INTO docs USING s ON true WHEN MATCHED THEN UPDATE SET body = P1",
        ),
        (
            "BEGIN; INSERT INTO docs (body) VALUES ('long enough'); -- 'x\nUPDATE pair SET a = 'long enough'; COMMIT;",
            "BEGIN; INSERT INTO docs (body) VALUES (P1); -- 'x\nUPDATE pair SET a = P30; COMMIT;",
        ),
        (
            "/* é 'x */ INSERT INTO docs (title, body) VALUES ('é', 'long enough é')",
            "/* é 'x */ INSERT INTO docs (title, body) VALUES ('é', P1)",
        ),
        (
            "WITH x AS (INSERT INTO docs (body) VALUES ('long enough') RETURNING id) SELECT 'long enough' FROM x",
            "WITH x AS (INSERT INTO docs (body) VALUES (P1) RETURNING id) SELECT 'long enough' FROM x",
        ),
        (
            "COPY (INSERT INTO docs (body) VALUES ('long enough') RETURNING id) TO STDOUT",
            "COPY (INSERT INTO docs (body) VALUES (P1) RETURNING id) TO STDOUT",
        ),
        (
            "INSERT INTO docs (body) VALUES (('long enough'))",
            "INSERT INTO docs (body) VALUES ((P1))",
        ),
    ]);
}

#[test]
fn casts_are_replaced_with_their_literal() {
    check(&[
        (
            "UPDATE docs SET data = '{\"a\": 1234}'::jsonb",
            "UPDATE docs SET data = P2",
        ),
        (
            "UPDATE docs SET data = ('{\"a\": 1234}')::jsonb, id = 1",
            "UPDATE docs SET data = P2, id = 1",
        ),
        (
            "UPDATE docs SET data = (('{\"a\": 1234}'::jsonb))",
            "UPDATE docs SET data = ((P2))",
        ),
        (
            "UPDATE docs SET data = CAST('{\"a\": 1234}' AS jsonb)",
            "UPDATE docs SET data = P2",
        ),
        (
            "UPDATE docs SET data = CAST(('{\"a\": 1234}') AS pg_catalog.jsonb)",
            "UPDATE docs SET data = P2",
        ),
        (
            "UPDATE docs SET data = jsonb '{\"a\": 1234}'",
            "UPDATE docs SET data = P2",
        ),
        (
            "UPDATE docs SET data = pg_catalog.jsonb E'{\"a\": 1234}'",
            "UPDATE docs SET data = E2",
        ),
        (
            "UPDATE docs SET raw = '\\x0011223344'::bytea",
            "UPDATE docs SET raw = P4",
        ),
        (
            "UPDATE docs SET raw = E'\\\\x0011223344'::bytea",
            "UPDATE docs SET raw = E4",
        ),
        (
            "UPDATE docs SET note = 'long enough'::character varying",
            "UPDATE docs SET note = P3",
        ),
        (
            "UPDATE docs SET body = 'long enough'::varchar",
            "UPDATE docs SET body = P1",
        ),
        (
            "INSERT INTO docs (meta) VALUES ('{\"a\": 1234}'::json)",
            "INSERT INTO docs (meta) VALUES (P5)",
        ),
        (
            "INSERT INTO docs (data) VALUES (($${\"a\": 1234}$$)::jsonb)",
            "INSERT INTO docs (data) VALUES (D2)",
        ),
    ]);
}

#[test]
fn reserved_beginnings_are_found_at_any_length() {
    check(&[
        (
            "UPDATE docs SET body = 'toast:'",
            "UPDATE docs SET body = P1",
        ),
        (
            "UPDATE docs SET body = $$toast:$$",
            "UPDATE docs SET body = D1",
        ),
        (
            "UPDATE docs SET body = E'\\164oast'",
            "UPDATE docs SET body = E1",
        ),
        ("UPDATE docs SET body = E't'", "UPDATE docs SET body = E't'"),
        (
            "UPDATE docs SET data = ' \"t\"'",
            "UPDATE docs SET data = P2",
        ),
        (
            "UPDATE docs SET meta = '\"t\"'",
            "UPDATE docs SET meta = '\"t\"'",
        ),
        (
            "UPDATE docs SET meta = '\"toast:\"'",
            "UPDATE docs SET meta = P5",
        ),
        ("UPDATE docs SET raw = '\\xF75'", "UPDATE docs SET raw = P4"),
        (
            "UPDATE docs SET raw = '\\x00'",
            "UPDATE docs SET raw = '\\x00'",
        ),
        (
            "UPDATE docs SET title = 'toast:'",
            "UPDATE docs SET title = 'toast:'",
        ),
    ]);
}

#[test]
fn what_is_left_inline() {
    check_none(&[
        "SELECT * FROM docs WHERE body = 'long enough'",
        "DELETE FROM docs WHERE body = 'long enough'",
        "UPDATE docs SET body = 'long enough' || body",
        "UPDATE docs SET body = upper('long enough')",
        "UPDATE docs SET body = 'long enough' COLLATE \"C\"",
        "UPDATE docs SET body = 'long ' 'enough'",
        "UPDATE docs SET body = 'long '\n'enough'",
        "UPDATE docs SET body = N'long enough'",
        "UPDATE docs SET body = U&'long enough'",
        "UPDATE docs SET raw = b'010101010101'",
        "UPDATE docs SET data = '{\"a\": 1234}'::text::jsonb",
        "UPDATE docs SET data = '{\"a\": 1234}'::json",
        "UPDATE docs SET note = 'long enough'::varchar(20)",
        "UPDATE docs SET data = text('{\"a\": 1234}')",
        "UPDATE docs SET data['a'] = '\"long enough\"'",
        "UPDATE docs SET made = 'long enough'",
        "UPDATE other SET body = 'long enough' -- docs",
        "INSERT INTO docs (title) VALUES ('long enough')",
        "INSERT INTO docs (body) SELECT 'long enough' UNION SELECT 'also long'",
        // What outlives its transaction outside of tables, or prints its values.
        "PREPARE p AS INSERT INTO docs (body) VALUES ('long enough')",
        "CREATE RULE r AS ON UPDATE TO docs DO INSTEAD (INSERT INTO docs (body) VALUES ('long enough'); UPDATE docs SET body = 'long enough')",
        "CREATE FUNCTION f() RETURNS void BEGIN ATOMIC INSERT INTO docs (body) VALUES ('long enough'); UPDATE docs SET body = 'long enough'; END",
        "CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ INSERT INTO docs (body) VALUES ('long enough') $$",
        "DO $$ BEGIN INSERT INTO docs (body) VALUES ('long enough'); END $$",
        "EXPLAIN ANALYZE INSERT INTO docs (body) VALUES ('long enough')",
        // Not understood.
        "INSERT INTO docs (body) VALUES ('long enough'",
        "INSERT INTO docs (body) VALUES ('long enough)",
        "INSERT INTO docs (body) VALUES ('long enough'); UPDATE docs SET SET body = 'long enough'",
        "",
    ]);
}

#[test]
fn statements_are_counted() {
    let count = |text: &str| {
        Analyzer::new(16)
            .query(&tables(), text, MIN_LEN)
            .statement_count
    };
    assert_eq!(count("SELECT 1 FROM docs"), 1);
    assert_eq!(count("BEGIN; SELECT ';' FROM docs; ; COMMIT; -- x"), 3);
    assert_eq!(count("-- docs"), 0);
    assert_eq!(count("SELECT 1; SELECT 2"), 0);
}

/// Places are right when everything before them is shorter in the skeleton, and
/// a cached skeleton serves texts with other values.
#[test]
fn texts_that_differ_in_values_share_an_analysis() {
    let analyzer = Analyzer::new(16);
    let tables = tables();
    for i in [1_usize, 22, 333, 123_456_789, 99_999_999_999] {
        let title = "é'' ;".repeat(i % 50);
        let body = format!("body {i} {}", "x".repeat(i % 1000));
        let text = format!(
            "/* {title} */ INSERT INTO docs (id, title, body, data) VALUES ({i}, '{title}', '{body}', '{{\"a\": {i}}}'::jsonb)"
        );
        let plan = analyzer.query(&tables, &text, 1);
        let found: Vec<&str> = plan
            .literals
            .iter()
            .map(|site| &text[site.replace_range.clone()])
            .collect();
        assert_eq!(
            found,
            [format!("'{body}'"), format!("'{{\"a\": {i}}}'::jsonb")]
        );
    }
}

#[test]
fn a_literal_is_replaced_by_a_typed_reference() {
    let text = "UPDATE docs SET data = '{\"a\": 1234}'::jsonb WHERE id = 1";
    let plan = Analyzer::new(16).query(&tables(), text, MIN_LEN);
    let (edited, _) = apply_edits(text, [&plan.literals[0].edit("\"toast:it's\"")]);
    assert_eq!(
        edited,
        "UPDATE docs SET data = '\"toast:it''s\"'::toastrack.jsonb WHERE id = 1"
    );
}

fn edit(range: std::ops::Range<usize>, replacement: &'static str) -> Edit {
    Edit {
        range,
        replacement: replacement.into(),
        param: None,
    }
}

#[test]
fn positions_map_back() {
    // "é" is one character and two bytes.
    let text = "é 12345 abc 67 z";
    let edits = [edit(3..8, "xy"), edit(13..15, "longer")];
    let (edited, map) = apply_edits(text, &edits);
    assert_eq!(edited, "é xy abc longer z");
    let original = |position| map.original_position(position);
    assert_eq!([1, 2, 3, 4, 5, 6].map(original), [1, 2, 3, 3, 8, 9]);
    assert_eq!(
        [9, 10, 15, 16, 17, 18].map(original),
        [12, 13, 13, 15, 16, 17]
    );
    assert_eq!(original(0), 0);
    assert!(!map.is_identity());
    let (same, map) = apply_edits(text, []);
    assert!(same == text && map.is_identity() && map.original_position(7) == 7);
}

#[test]
fn impossible_edits_are_left_out() {
    let text = "é 12345";
    for bad in [edit(1..3, "x"), edit(3..100, "x"), edit(0..1, "x")] {
        assert_eq!(apply_edits(text, [&bad]).0, text);
    }
    let overlapping = [edit(3..6, "x"), edit(5..7, "y"), edit(7..8, "z")];
    assert_eq!(apply_edits(text, &overlapping).0, "é x4z");
}
