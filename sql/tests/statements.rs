//! Which parameters of which statements are found, and how the text changes.

mod common;

use common::{kind_of, tables};
use toastrack_sql::{Analyzer, RowShape, apply_edits};

/// `$2=1` for each parameter and its column; `~` when the client is told
/// another type than the column's, `+` when the parameter has other uses.
/// Then the edited text, if it differs.
fn plan_of(text: &str) -> (String, Option<String>) {
    let plan = Analyzer::new(16).statement(&tables(), text);
    let mut params = Vec::new();
    for site in &plan.params {
        assert_eq!(site.kind, kind_of(site.column), "{text}");
        let differs = if site.client_kind == site.kind {
            ""
        } else {
            "~"
        };
        let elsewhere = if site.only_assigned { "" } else { "+" };
        params.push(format!(
            "${}={}{differs}{elsewhere}",
            site.number, site.column
        ));
    }
    assert!(plan.understood || params.is_empty(), "{text}");
    let (edited, _) = apply_edits(text, &plan.edits);
    (params.join(" "), (edited != text).then_some(edited))
}

fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let (params, edited) = plan_of(text);
        assert_eq!((params.as_str(), edited), (*expected, None), "{text}");
    }
}

fn check_edits(cases: &[(&str, &str, &str)]) {
    for (text, expected, expected_text) in cases {
        let (params, edited) = plan_of(text);
        assert_eq!(
            (params.as_str(), edited.as_deref()),
            (*expected, Some(*expected_text)),
            "{text}"
        );
    }
}

#[test]
fn insert_values() {
    check(&[
        ("INSERT INTO docs (id, body) VALUES ($1, $2)", "$2=1"),
        ("insert into DOCS (ID, BODY) values ($1, $2)", "$2=1"),
        (
            "INSERT INTO docs VALUES ($1, $2, $3, $4, $5, $6, $7)",
            "$2=1 $4=2 $5=3 $6=4 $7=5",
        ),
        (
            "INSERT INTO docs VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            "$2=1 $4=2 $5=3 $6=4 $7=5 $9=7",
        ),
        (
            "INSERT INTO docs (body) VALUES ($1), ($2), ($3)",
            "$1=1 $2=1 $3=1",
        ),
        (
            "INSERT INTO docs (body, id) VALUES ($1, 1), (DEFAULT, 2), ($2, 3)",
            "$1=1 $2=1",
        ),
        (
            "INSERT INTO docs (id, body) VALUES (1, $1), (2, upper($2))",
            "$1=1",
        ),
        ("INSERT INTO docs VALUES (DEFAULT, $1)", "$1=1"),
        ("INSERT INTO docs AS d (body) VALUES ($1)", "$1=1"),
        ("INSERT INTO public.docs (body) VALUES ($1)", "$1=1"),
        ("INSERT INTO archive.docs (body) VALUES ($1)", "$1=11"),
        ("INSERT INTO elsewhere.docs (body) VALUES ($1)", "$1=1"),
        ("INSERT INTO docs (archived, body) VALUES ($1, $2)", "$2=11"),
        ("INSERT INTO db.archive.docs (body) VALUES ($1)", "$1=11"),
        (r#"INSERT INTO "docs" ("body") VALUES ($1)"#, "$1=1"),
        (r#"INSERT INTO "Docs" ("body") VALUES ($1)"#, ""),
        (r#"INSERT INTO docs ("Mixed", ID) VALUES ($1, $2)"#, "$1=7"),
        (r#"INSERT INTO docs (mixed, id) VALUES ($1, $2)"#, ""),
        (r#"INSERT INTO "Weird Table" ("Body") VALUES ($1)"#, "$1=20"),
        (r#"INSERT INTO "Weird Table" VALUES ($1)"#, "$1=20"),
        (
            "INSERT INTO docs (body) OVERRIDING SYSTEM VALUE VALUES ($1) RETURNING id, body",
            "$1=1",
        ),
        ("INSERT INTO docs (made, title) VALUES ($1, $2)", ""),
        ("INSERT INTO docs (body) VALUES (($1))", "$1=1"),
        ("INSERT INTO docs (id, body) VALUES ($2, $1)", "$1=1"),
        ("INSERT INTO docs (title, body) VALUES ($1, $1)", "$1=1+"),
        (
            "INSERT INTO docs (id, body) VALUES (length($1), $1)",
            "$1=1+",
        ),
        ("INSERT INTO docs (body) VALUES ($1) RETURNING $1", "$1=1+"),
        ("INSERT INTO pair (a, b) VALUES ($1, $1)", "$1=30"),
        ("INSERT INTO pair VALUES ($1, $2), ($2, $1)", "$1=30 $2=31"),
        ("INSERT INTO docs (body, data) VALUES ($1, $1)", ""),
        ("INSERT INTO docs (body, note) VALUES ($1, $1)", ""),
        ("INSERT INTO docs (body) VALUES ($70000)", ""),
        ("INSERT INTO docs (body) VALUES ($65535)", "$65535=1"),
        ("INSERT INTO docs (body) VALUES ($1); ", "$1=1"),
        (
            "-- docs\nINSERT INTO docs /* 'x */ (body) -- $2\n VALUES ($1)",
            "$1=1",
        ),
        (
            "INSERT INTO docs (title, body) VALUES ('it''s $9', $1)",
            "$1=1",
        ),
        (
            "INSERT INTO docs (title, body) VALUES ($$ $9 '$$, $1)",
            "$1=1",
        ),
    ]);
}

#[test]
fn insert_values_that_are_not_direct() {
    check(&[
        ("INSERT INTO docs (body) VALUES ($1 || 'x')", ""),
        ("INSERT INTO docs (body) VALUES (coalesce($1, ''))", ""),
        ("INSERT INTO docs (body) VALUES (NULLIF($1, ''))", ""),
        ("INSERT INTO docs (body) VALUES ((SELECT $1))", ""),
        (
            "INSERT INTO docs (body) VALUES (CASE WHEN true THEN $1 END)",
            "",
        ),
        ("INSERT INTO docs (body) VALUES ($1 COLLATE \"C\")", ""),
        ("INSERT INTO docs (body[1]) VALUES ($1)", ""),
        ("INSERT INTO docs (body.f) VALUES ($1)", ""),
        ("INSERT INTO docs (body) VALUES ($1) ORDER BY 1", ""),
        ("INSERT INTO docs (body) VALUES ($1), ($2) LIMIT 1", ""),
        (
            "INSERT INTO docs (body) WITH x AS (SELECT 1) VALUES ($1)",
            "",
        ),
        ("INSERT INTO docs (body) VALUES (?)", ""),
        ("INSERT INTO docs DEFAULT VALUES", ""),
        ("INSERT INTO plain_only VALUES ($1)", ""),
        ("INSERT INTO other (body) VALUES ($1) /* docs */", ""),
        ("INSERT INTO docs (nothing) VALUES ($1)", ""),
        ("INSERT INTO docs (nothing, body) VALUES ($1, $2)", ""),
        (
            "INSERT INTO docs VALUES ($1, $2, 3, 4, 5, 6, 7, 8, 9, 10)",
            "",
        ),
        (
            "INSERT INTO docs (body) VALUES ($1); INSERT INTO docs (body) VALUES ($1)",
            "",
        ),
    ]);
}

#[test]
fn insert_select() {
    check(&[
        ("INSERT INTO docs (id, body) SELECT $1, $2", "$2=1"),
        (
            "INSERT INTO docs SELECT 1, $1 FROM other WHERE x = $2",
            "$1=1",
        ),
        (
            "INSERT INTO docs (body) SELECT $1 AS b WHERE NOT EXISTS (SELECT 1 FROM docs)",
            "$1=1",
        ),
        (
            "INSERT INTO docs (body) SELECT $1 FROM generate_series(1, 3) LIMIT 2",
            "$1=1",
        ),
        (
            "INSERT INTO docs (body, id) WITH x AS (SELECT 1) SELECT $1, 1 FROM x",
            "$1=1",
        ),
        ("INSERT INTO docs (body, id) (SELECT $1, 1)", "$1=1"),
        (
            "INSERT INTO docs (body, id, title) SELECT $1, x.* FROM x",
            "$1=1",
        ),
        ("INSERT INTO docs (id, body) SELECT x.*, $1 FROM x", ""),
        ("INSERT INTO docs (id, body) SELECT *, $1 FROM x", ""),
        ("INSERT INTO docs (id, body) SELECT (x).*, $1 FROM x", ""),
        ("INSERT INTO docs (body) SELECT DISTINCT $1 FROM x", ""),
        ("INSERT INTO docs (body) SELECT $1 FROM x GROUP BY 1", ""),
        ("INSERT INTO docs (body) SELECT $1 FROM x ORDER BY 1", ""),
        ("INSERT INTO docs (body) SELECT $1 UNION ALL SELECT $2", ""),
        (
            "INSERT INTO docs (body) SELECT v.b FROM (VALUES ($1)) v(b)",
            "",
        ),
        ("INSERT INTO docs (body) SELECT unnest($1)", ""),
        ("INSERT INTO docs TABLE other", ""),
    ]);
}

#[test]
fn update() {
    check(&[
        ("UPDATE docs SET body = $1 WHERE id = $2", "$1=1"),
        (
            "update docs set body=$1,data=$2,title=$3 where id=$4",
            "$1=1 $2=2",
        ),
        ("UPDATE docs d SET body = $1 WHERE d.id = $2", "$1=1"),
        ("UPDATE docs AS d SET note = $1", "$1=3"),
        ("UPDATE ONLY docs SET body = $1", "$1=1"),
        ("UPDATE archive.docs SET body = $1", "$1=11"),
        (
            "UPDATE docs SET body = $1 FROM other o WHERE o.id = docs.id AND o.x = $2",
            "$1=1",
        ),
        ("UPDATE docs SET (body, data) = ($1, $2)", "$1=1 $2=2"),
        ("UPDATE docs SET (id, body) = ROW($1, $2)", "$2=1"),
        (
            "UPDATE docs SET (body, id) = ROW($1, DEFAULT), raw = $2",
            "$1=1 $2=4",
        ),
        ("UPDATE docs SET (body, data) = (SELECT $1, $2)", ""),
        ("UPDATE docs SET body = $1 WHERE body = $1", "$1=1+"),
        (
            "UPDATE docs SET body = $1 WHERE body IS DISTINCT FROM $1 AND id = $2",
            "$1=1+",
        ),
        ("UPDATE docs SET body = DEFAULT, title = $1", ""),
        ("UPDATE docs SET body = body || $1", ""),
        ("UPDATE docs SET body = coalesce($1, body)", ""),
        ("UPDATE docs SET data['a'] = $1", ""),
        ("UPDATE docs SET data = jsonb_set(data, '{a}', $1)", ""),
        ("UPDATE docs SET made = $1", ""),
        ("UPDATE other SET body = $1 FROM docs", ""),
        ("UPDATE docs SET body = $1 RETURNING id", "$1=1"),
        ("UPDATE docs SET body = $1 WHERE CURRENT OF c", "$1=1"),
    ]);
}

#[test]
fn upserts_and_merge() {
    check(&[
        (
            "INSERT INTO docs (id, body) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET body = $3",
            "$2=1 $3=1",
        ),
        (
            "INSERT INTO docs (id, body) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET body = EXCLUDED.body",
            "$2=1",
        ),
        (
            "INSERT INTO docs (id, body) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET body = $2",
            "$2=1",
        ),
        (
            "INSERT INTO docs (id, body) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET (body, data) = ($3, $4) WHERE docs.id > $5",
            "$2=1 $3=1 $4=2",
        ),
        (
            "INSERT INTO docs (body) VALUES ($1) ON CONFLICT DO NOTHING",
            "$1=1",
        ),
        (
            "MERGE INTO docs d USING src s ON d.id = s.id \
             WHEN MATCHED AND s.x = $9 THEN UPDATE SET body = $1, title = $2 \
             WHEN NOT MATCHED THEN INSERT (id, body) VALUES (s.id, $3)",
            "$1=1 $3=1",
        ),
        (
            "MERGE INTO docs USING src s ON docs.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, $1)",
            "$1=1",
        ),
        (
            "MERGE INTO docs USING (VALUES ($1, $2)) s(id, body) ON docs.id = s.id WHEN MATCHED THEN UPDATE SET body = s.body",
            "",
        ),
        (
            "MERGE INTO docs USING src s ON docs.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN DO NOTHING",
            "",
        ),
    ]);
}

#[test]
fn within_other_statements() {
    check(&[
        (
            "WITH x AS (INSERT INTO docs (body) VALUES ($1) RETURNING id) SELECT * FROM x",
            "$1=1",
        ),
        (
            "WITH x AS (UPDATE docs SET body = $1 RETURNING id), y AS (INSERT INTO pair VALUES ($2, $3)) SELECT 1",
            "$1=1 $2=30 $3=31",
        ),
        (
            "WITH x AS (SELECT 1) UPDATE docs SET body = $1 FROM x",
            "$1=1",
        ),
        (
            "WITH x AS (SELECT 1) INSERT INTO docs (body) SELECT $1 FROM x",
            "$1=1",
        ),
        (
            "WITH x AS (INSERT INTO docs (body) VALUES ($1)) DELETE FROM other",
            "$1=1",
        ),
        ("WITH docs AS (SELECT 1) SELECT $1", ""),
        ("EXPLAIN INSERT INTO docs (body) VALUES ($1)", "$1=1+"),
        (
            "EXPLAIN (ANALYZE, BUFFERS) UPDATE docs SET body = $1",
            "$1=1+",
        ),
        ("PREPARE p AS INSERT INTO docs (body) VALUES ($1)", ""),
        (
            "CREATE RULE r AS ON INSERT TO docs DO ALSO INSERT INTO pair VALUES ($1, $2)",
            "",
        ),
        ("DELETE FROM docs WHERE body = $1", ""),
        ("SELECT * FROM docs WHERE body = $1 FOR UPDATE", ""),
        ("SELECT $1 FROM docs", ""),
        ("COPY docs FROM STDIN", ""),
    ]);
}

#[test]
fn direct_casts() {
    check_edits(&[
        (
            "INSERT INTO docs (data) VALUES ($1::jsonb)",
            "$1=2",
            "INSERT INTO docs (data) VALUES ($1::toastrack.jsonb)",
        ),
        (
            "INSERT INTO docs (data) VALUES ($1 :: JSONB)",
            "$1=2",
            "INSERT INTO docs (data) VALUES ($1 :: toastrack.jsonb)",
        ),
        (
            "INSERT INTO docs (data) VALUES (($1)::jsonb)",
            "$1=2",
            "INSERT INTO docs (data) VALUES (($1)::toastrack.jsonb)",
        ),
        (
            "INSERT INTO docs (data) VALUES ((($1))::jsonb)",
            "$1=2",
            "INSERT INTO docs (data) VALUES ((($1))::toastrack.jsonb)",
        ),
        (
            "INSERT INTO docs (data) VALUES (CAST($1 AS jsonb))",
            "$1=2",
            "INSERT INTO docs (data) VALUES (CAST($1 AS toastrack.jsonb))",
        ),
        (
            "INSERT INTO docs (data) VALUES ($1::pg_catalog.jsonb)",
            "$1=2",
            "INSERT INTO docs (data) VALUES ($1::toastrack.jsonb)",
        ),
        (
            "INSERT INTO docs (data) VALUES ($1::\"pg_catalog\" . \"jsonb\")",
            "$1=2",
            "INSERT INTO docs (data) VALUES ($1::toastrack.jsonb)",
        ),
        (
            "UPDATE docs SET meta = $1::json, raw = $2::bytea, body = $3::text",
            "$1=5 $2=4 $3=1",
            "UPDATE docs SET meta = $1::toastrack.json, raw = $2::toastrack.bytea, body = $3::toastrack.text",
        ),
        (
            "UPDATE docs SET body = $1::varchar, note = $2::text",
            "$1=1~ $2=3~",
            "UPDATE docs SET body = $1::toastrack.text, note = $2::toastrack.varchar",
        ),
        (
            "UPDATE docs SET note = $1::character varying",
            "$1=3",
            "UPDATE docs SET note = $1::toastrack.varchar",
        ),
        (
            "UPDATE docs SET note = $1::VARCHAR",
            "$1=3",
            "UPDATE docs SET note = $1::toastrack.varchar",
        ),
        (
            "UPDATE docs SET body = $1::text WHERE body = $1::text",
            "$1=1+",
            "UPDATE docs SET body = $1::toastrack.text WHERE body = $1::text",
        ),
        (
            "INSERT INTO pair VALUES ($1::text, $1)",
            "$1=30",
            "INSERT INTO pair VALUES ($1::toastrack.text, $1)",
        ),
        (
            "INSERT INTO docs (title, data, id) VALUES ('a long title /* */ here', $1::jsonb, 123456)",
            "$1=2",
            "INSERT INTO docs (title, data, id) VALUES ('a long title /* */ here', $1::toastrack.jsonb, 123456)",
        ),
        (
            "/* été */ UPDATE docs SET title = 'é', data = $1::jsonb /* it's */ , note = $2",
            "$1=2 $2=3",
            "/* été */ UPDATE docs SET title = 'é', data = $1::toastrack.jsonb /* it's */ , note = $2",
        ),
        (
            "UPDATE docs SET (body, data) = ($1::text, $2::jsonb)",
            "$1=1 $2=2",
            "UPDATE docs SET (body, data) = ($1::toastrack.text, $2::toastrack.jsonb)",
        ),
    ]);
}

#[test]
fn casts_that_are_not_direct() {
    check(&[
        ("INSERT INTO docs (data) VALUES ($1::text::jsonb)", ""),
        ("INSERT INTO docs (data) VALUES ($1::json)", ""),
        ("INSERT INTO docs (meta) VALUES ($1::jsonb)", ""),
        ("INSERT INTO docs (body) VALUES ($1::varchar(10))", ""),
        ("INSERT INTO docs (body) VALUES ($1::char)", ""),
        ("INSERT INTO docs (body) VALUES ($1::text[])", ""),
        ("INSERT INTO docs (body) VALUES ($1::text ARRAY)", ""),
        ("INSERT INTO docs (body) VALUES ($1::myschema.text)", ""),
        ("INSERT INTO docs (body) VALUES ($1::\"TEXT\")", ""),
        ("INSERT INTO docs (body) VALUES ($1::toastrack.text)", ""),
        ("INSERT INTO docs (body) VALUES (text($1))", ""),
        (
            "INSERT INTO docs (body) VALUES (($1::text) COLLATE \"C\")",
            "",
        ),
        ("INSERT INTO docs (body) VALUES ($1::int)", ""),
        // Elsewhere a cast to another type: one declaration cannot serve both.
        ("UPDATE docs SET body = $1 WHERE id = $1::int", ""),
        ("UPDATE docs SET body = $1 WHERE id = CAST(($1) AS int)", ""),
        (
            "UPDATE docs SET body = $1 WHERE title = ANY($1::text[])",
            "",
        ),
        ("INSERT INTO pair VALUES ($1::text, $1::varchar)", ""),
        // The same type elsewhere, or none, is fine.
        ("UPDATE docs SET body = $1 WHERE title = $1::text", "$1=1+"),
        (
            "UPDATE docs SET body = $1 WHERE title = CAST($1 AS varchar)",
            "$1=1+",
        ),
        ("UPDATE docs SET body = $1 RETURNING $1 AS int", "$1=1+"),
        // A national type is spelled in a way that is not edited.
        ("UPDATE docs SET note = $1::national character varying", ""),
    ]);
}

#[test]
fn row_shapes() {
    let cases = [
        ("INSERT INTO docs (body) VALUES ($1)", RowShape::Fixed),
        ("/* x */ ((select 1))", RowShape::Fixed),
        ("WITH x AS (SELECT 1) SELECT * FROM docs", RowShape::Fixed),
        ("table docs", RowShape::Fixed),
        ("FETCH ALL FROM docs", RowShape::PerPortal),
        ("EXPLAIN UPDATE docs SET body = $1", RowShape::PerPortal),
        ("EXECUTE docs", RowShape::PerPortal),
        ("", RowShape::PerPortal),
    ];
    for (text, expected) in cases {
        let plan = Analyzer::new(16).statement(&tables(), text);
        assert_eq!(plan.row_shape, expected, "{text}");
    }
}

/// Texts that Postgres would refuse, or that are too much, have an empty plan
/// that says so; deep nesting does not overflow a small stack.
#[test]
fn what_is_not_understood_says_so() {
    let nested = |open: &str, close: &str, n: usize| {
        format!(
            "INSERT INTO docs (body) VALUES ($1, {}1{})",
            open.repeat(n),
            close.repeat(n)
        )
    };
    let texts = [
        "INSERT INTO docs (body) VALUES ($1".to_owned(),
        "INSERT INTO docs body VALUES ($1)".to_owned(),
        "INSERT INTO docs (body) VALUES ('\0', $1)".to_owned(),
        "INSERT INTO docs (body) VALUES ('$1".to_owned(),
        nested("(", ")", 100_000),
        nested("ARRAY[", "]", 100_000),
        nested("- ", "", 100_000),
        nested("not ", "", 100_000),
        nested("f(", ")", 5_000),
        nested("(select ", ")", 5_000),
        nested("(select * from ", ")", 5_000),
        nested("case when true then ", " end", 5_000),
        format!(
            "INSERT INTO docs (body, id) VALUES ($1, 1{})",
            "+1".repeat(100_000)
        ),
        format!(
            "INSERT INTO docs (body, id) VALUES ($1, 1{})",
            "::int".repeat(100_000)
        ),
        format!(
            "INSERT INTO docs (body) SELECT $1 {}",
            "union select 1 ".repeat(50_000)
        ),
        format!("INSERT INTO docs (body) VALUES ($1) -- {}", "+".repeat(10))
            + &"\n,($1)".repeat(1_000_000),
    ];
    std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(move || {
            for text in texts {
                let plan = Analyzer::new(16).statement(&tables(), &text);
                let start: String = text.chars().take(60).collect();
                assert!(!plan.understood, "{start}");
                assert!(plan.params.is_empty() && plan.edits.is_empty(), "{start}");
            }
            // The depths around the limit of the tree's decoder.
            for n in 0..120 {
                for (open, close) in [("f(", ")"), ("(select ", ")"), ("- ", ""), ("array[", "]")] {
                    let plan = Analyzer::new(16).statement(&tables(), &nested(open, close, n));
                    assert_eq!(plan.understood, plan.params.len() == 1);
                    assert!(plan.understood || n > 10);
                }
            }
        })
        .expect("a thread")
        .join()
        .expect("no panic");
}

/// One analyzer serves several sets of tables without confusing their plans.
#[test]
fn plans_are_kept_by_tables() {
    let analyzer = Analyzer::new(64);
    let text = "INSERT INTO docs (body) VALUES ($1)";
    let (first, second) = (tables(), tables());
    let plan = analyzer.statement(&first, text);
    assert!(std::sync::Arc::ptr_eq(
        &plan,
        &analyzer.statement(&first, text)
    ));
    assert!(std::sync::Arc::ptr_eq(
        &plan,
        &analyzer.statement(&first.clone(), text)
    ));
    assert!(!std::sync::Arc::ptr_eq(
        &plan,
        &analyzer.statement(&second, text)
    ));
    let none = toastrack_sql::Tables::default();
    assert!(none.is_empty() && analyzer.statement(&none, text).params.is_empty());
}

/// Everything that 65,535 parameters need is understood.
#[test]
fn the_largest_insert_is_understood() {
    let rows: Vec<String> = (0..13_107)
        .map(|i| {
            let n = i * 5;
            format!(
                "(${}, ${}, ${}, ${}::jsonb, ${})",
                n + 1,
                n + 2,
                n + 3,
                n + 4,
                n + 5
            )
        })
        .collect();
    let text = format!("INSERT INTO docs VALUES {}", rows.join(", "));
    let plan = Analyzer::new(16).statement(&tables(), &text);
    assert_eq!(plan.params.len(), 3 * 13_107);
    assert_eq!(plan.edits.len(), 13_107);
    let (edited, _) = apply_edits(&text, &plan.edits);
    assert_eq!(edited, text.replace("::jsonb", "::toastrack.jsonb"));
}

#[test]
fn mentions_ignores_case_and_finds_substrings() {
    let tables = tables();
    for text in [
        "docs",
        "DOCS",
        "x.dOcS;",
        "mydocs1",
        "\"Weird Table\"",
        "weird table",
        "a pair",
    ] {
        assert!(tables.mentions(text.as_bytes()), "{text}");
    }
    for text in ["", "doc s", "do", "plain_only", "select 1", "weird  table"] {
        assert!(!tables.mentions(text.as_bytes()), "{text}");
    }
}
