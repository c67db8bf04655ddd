//! Why no SQL has to be rewritten: each fact about the types that the design builds on, with references in the
//! rows, against the same statements on a plain table.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::sidecar::Way;
use common::twins::{LONG, Twins};
use common::{connect, empty_database, failure, one, rows};
use toastrack_migrations::ColumnKind;
use tokio_postgres::types::Type;

/// With a reference in the row, functions and operators of text see the value, by the parser's own cast.
#[tokio::test(flavor = "multi_thread")]
async fn functions_and_operators_see_the_value() {
    for way in [Way::Direct, Way::Callback] {
        let twins = Twins::new(way).await;
        for column in ["body", "v"] {
            let expressions: Vec<String> = [
                "length({c})",
                "left({c}, 9)",
                "substring({c} from 3 for 5)",
                "{c} LIKE '%fox%'",
                "{c} ILIKE '%FOX%'",
                "{c} ~ 'qu[i]ck'",
                "{c} || 'x'",
                "'x' || {c}",
                "{c} || {c}",
                "{c} || 5",
                "upper({c})",
                "md5({c})",
                "to_tsvector('english', {c})",
                "{c} = 'short'",
                "{c} > 'short'",
                "{c} <> ''",
                "{c} IN ('short', '42')",
                "{c} = ANY (ARRAY['short', '42'])",
                "{c} = ANY ('{short,42}')",
                "position('fox' in {c})",
                "replace({c}, 'fox', 'cat')",
                "regexp_replace({c}, 'fox', 'cat')",
                "{c}::text",
                "{c}::varchar",
                "{c}::varchar(7)",
                "{c}::char(7)",
                "starts_with({c}, 'The')",
                "split_part({c}, ' ', 2)",
                "overlay({c} placing 'zz' from 2)",
                "octet_length({c})",
                "char_length({c})",
                "bit_length({c})",
                "ascii({c})",
                "encode(convert_to({c}, 'UTF8'), 'hex')",
                "quote_literal({c})",
                "quote_nullable({c})",
                "to_json({c})",
                "to_jsonb({c})",
                "string_to_array({c}, ' ')",
                "{c} || NULL",
                "trim(both 'T' from {c})",
                "coalesce({c}, 'none') || '!'",
                "({c})::bytea",
                "hashtext({c})",
            ]
            .iter()
            .map(|expression| expression.replace("{c}", column))
            .collect();
            twins
                .same_expressions(&expressions.iter().map(String::as_str).collect::<Vec<_>>())
                .await;
            for template in [
                "SELECT string_agg({c}, ', ' ORDER BY id) FROM {t}",
                "SELECT array_to_string(array_agg({c} ORDER BY id), '|', 'none') FROM {t}",
                "SELECT a.id, b.id FROM {t} a JOIN {t} b ON a.{c} = b.{c} ORDER BY 1, 2",
                "SELECT a.id, b.id FROM {t} a JOIN plain b ON a.{c} = b.{c} ORDER BY 1, 2",
                "SELECT id FROM {t} WHERE {c} IN (SELECT {c} FROM plain) ORDER BY id",
                "SELECT {c}::text[] FROM (SELECT array_agg({c} ORDER BY id) AS {c} FROM {t}) s",
            ] {
                twins.same(&template.replace("{c}", column)).await;
            }
        }
    }
}

/// The same for jsonb and json, with the right hand side an unknown literal.
#[tokio::test(flavor = "multi_thread")]
async fn json_operators_and_functions_see_the_value() {
    let twins = Twins::new(Way::Direct).await;
    twins
        .same_expressions(&[
            "data -> 'k'",
            "data ->> 'k'",
            "data -> 'list' -> 0",
            "data #> '{list,1}'",
            "data #>> '{list,1}'",
            "data @> '{\"k\": \"first\"}'",
            "data <@ '{\"k\": \"third\", \"z\": 1}'",
            "data ? 'n'",
            "data ?| array['n', 'x']",
            "data ?& array['n', 'k']",
            "CASE WHEN jsonb_typeof(data) = 'object' THEN data - 'k' END",
            "CASE WHEN jsonb_typeof(data) = 'object' THEN data - '{k,n}'::text[] END",
            "CASE WHEN jsonb_typeof(data) = 'object' THEN data #- '{list,0}' END",
            "data @? '$.list[*] ? (@ > 2)'",
            "data @@ '$.n == 7'",
            "data || '{\"z\": 1}'",
            "'{\"z\": 1}' || data",
            "data || data",
            "data || jsonb_build_object('z', 1)",
            "'pre'::text || data",
            "data || 'post'::text",
            "data = '42'",
            "data > '42'",
            "data::text",
            "data::json",
            "data::varchar(9)",
            "jsonb_typeof(data)",
            "jsonb_pretty(data)",
            "jsonb_path_query_first(data, '$.k')",
            "CASE WHEN jsonb_typeof(data) = 'object' THEN jsonb_set(data, '{a}', '1') END",
            "to_jsonb(data)",
            "to_json(data)",
            "quote_literal(data)",
            "md5(data::text)",
            "to_tsvector('english', data)",
            "CASE WHEN jsonb_typeof(data) = 'number' THEN data::int END",
            "CASE WHEN jsonb_typeof(data) = 'number' THEN data::numeric END",
            "jsonb_build_object('d', data)",
            "row_to_json(ROW(data))",
            "j -> 'k'",
            "j ->> 'k'",
            "j #>> '{list,1}'",
            "j::text",
            "j::jsonb",
            "json_typeof(j)",
            "to_json(j)",
            "'pre'::text || j",
            "json_build_object('d', j)",
        ])
        .await;
    for template in [
        "SELECT id, e.value FROM {t}, LATERAL jsonb_each(CASE jsonb_typeof(data) WHEN 'object' THEN data ELSE '{}' END) e ORDER BY 1, 2",
        "SELECT jsonb_agg(data ORDER BY id) FROM {t}",
        "SELECT json_agg(data ORDER BY id) FROM {t}",
        "SELECT jsonb_object_agg(id, data) FROM {t}",
        "SELECT data, count(*) FROM (SELECT data::jsonb AS data FROM {t}) s GROUP BY data ORDER BY data",
        "SELECT DISTINCT j FROM {t}",
        "SELECT id FROM {t} WHERE j = '42'",
        "SELECT data -> 'k' -> FROM {t}",
    ] {
        twins.same(template).await;
    }
}

/// The same for bytea.
#[tokio::test(flavor = "multi_thread")]
async fn bytea_operators_and_functions_see_the_value() {
    let twins = Twins::new(Way::Direct).await;
    twins
        .same_expressions(&[
            "raw || '\\x00'",
            "'\\x00' || raw",
            "raw || raw",
            "raw || '\\x00'::bytea",
            "'pre'::text || raw",
            "length(raw)",
            "octet_length(raw)",
            "bit_length(raw)",
            "substring(raw from 2 for 3)",
            "get_byte(raw || '\\x00', 0)",
            "encode(raw, 'base64')",
            "convert_from(raw, 'UTF8')",
            "md5(raw)",
            "sha256(raw)",
            "raw = '\\x3432'",
            "raw > '\\x3432'",
            "raw LIKE '%fox%'",
            "position('fox'::bytea in raw)",
            "raw::text",
            "to_json(raw)",
            "trim('\\x54'::bytea from raw)",
        ])
        .await;
    twins
        .same("SELECT string_agg(raw, '\\x2c' ORDER BY id) FROM {t}")
        .await;
}

/// PL/pgSQL variables of the plain type, triggers that read NEW, views and SQL functions see the value.
#[tokio::test(flavor = "multi_thread")]
async fn plpgsql_triggers_views_and_sql_functions_see_the_value() {
    let twins = Twins::new(Way::Direct).await;
    twins
        .client
        .batch_execute(
            "CREATE TABLE seen (source text, id int, body text, k text);
             CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
             DECLARE b text := NEW.body; d jsonb;
             BEGIN
                d := NEW.data;
                INSERT INTO seen VALUES (TG_TABLE_NAME, NEW.id, b, d ->> 'k');
                IF NEW.body LIKE '%fox%' THEN NEW.id := NEW.id + 100; END IF;
                RETURN NEW;
             END $$;
             CREATE TRIGGER note BEFORE UPDATE ON plain FOR EACH ROW EXECUTE FUNCTION note();
             CREATE TRIGGER note BEFORE UPDATE ON docs FOR EACH ROW EXECUTE FUNCTION note();
             CREATE VIEW plain_v AS SELECT id, upper(body) AS u, data ->> 'k' AS k FROM plain;
             CREATE VIEW docs_v AS SELECT id, upper(body) AS u, data ->> 'k' AS k FROM docs;
             CREATE FUNCTION plain_f(int) RETURNS text LANGUAGE sql AS 'SELECT lower(body) FROM plain WHERE id = $1';
             CREATE FUNCTION docs_f(int) RETURNS text LANGUAGE sql AS 'SELECT lower(body) FROM docs WHERE id = $1';
             CREATE FUNCTION docs_body(int) RETURNS text LANGUAGE sql AS 'SELECT body FROM docs WHERE id = $1';
             CREATE FUNCTION plain_body(int) RETURNS text LANGUAGE sql AS 'SELECT body FROM plain WHERE id = $1';
             CREATE FUNCTION docs_p(int) RETURNS text LANGUAGE plpgsql AS
                 'BEGIN RETURN (SELECT body FROM docs WHERE id = $1); END';
             CREATE FUNCTION plain_p(int) RETURNS text LANGUAGE plpgsql AS
                 'BEGIN RETURN (SELECT body FROM plain WHERE id = $1); END';
             CREATE FUNCTION takes(text) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN length($1); END'",
        )
        .await
        .unwrap();
    twins.same("SELECT * FROM {t}_v ORDER BY id").await;
    for function in ["f", "body", "p"] {
        twins
            .same(&format!(
                "SELECT i, {{t}}_{function}(i) FROM generate_series(1, 9) i"
            ))
            .await;
    }
    twins
        .same("SELECT id, takes(body), takes(v) FROM {t} ORDER BY id")
        .await;
    twins
        .client
        .batch_execute("UPDATE plain SET v = 'new'; UPDATE docs SET v = 'new'")
        .await
        .unwrap();
    twins
        .same("SELECT id, body::text, v FROM {t} ORDER BY id")
        .await;
    twins
        .same("SELECT id, body, k FROM seen WHERE source = '{t}' ORDER BY id")
        .await;
    assert_eq!(one(&twins.client, "SELECT count(*) FROM seen").await, "16");
}

/// coalesce, CASE, UNION, array_agg, RETURNING and cursors hand the reference through unread: they work with no
/// way to read a value at all, and the reference comes out as it went in.
#[tokio::test(flavor = "multi_thread")]
async fn some_constructs_hand_the_reference_through_unread() {
    let twins = Twins::new(Way::None).await;
    let client = &twins.client;
    assert!(
        failure(client, "SELECT upper(body) FROM docs WHERE id = 1")
            .await
            .starts_with("58030")
    );
    let reference = one(client, "SELECT body FROM docs WHERE id = 1").await;
    assert!(
        reference.starts_with("toast:") && reference.len() == 62,
        "{reference}"
    );
    for sql in [
        "SELECT coalesce(body, 'none') FROM docs WHERE id = 1",
        "SELECT coalesce(NULL, body) FROM docs WHERE id = 1",
        "SELECT CASE WHEN id = 1 THEN body ELSE 'none' END FROM docs WHERE id = 1",
        "SELECT body FROM docs WHERE id = 1 UNION ALL SELECT body FROM docs WHERE false",
        "SELECT (array_agg(body))[1] FROM docs WHERE id = 1",
        "SELECT unnest(array_agg(body)) FROM docs WHERE id = 1",
        "UPDATE docs SET id = id WHERE id = 1 RETURNING body",
        "SELECT body FROM (SELECT * FROM docs WHERE id = 1 OFFSET 0) s",
        "WITH d AS MATERIALIZED (SELECT * FROM docs) SELECT body FROM d WHERE id = 1",
        "SELECT first_value(body) OVER (ORDER BY id) FROM docs WHERE id = 1",
        "SELECT (SELECT body FROM docs WHERE id = 1)",
        "BEGIN; DECLARE c CURSOR FOR SELECT body FROM docs WHERE id = 1; FETCH c; COMMIT",
    ] {
        assert_eq!(rows(client, sql).await.join("\n"), reference, "{sql}");
    }
    let jsonb = one(client, "SELECT data FROM docs WHERE id = 1").await;
    assert!(
        jsonb.starts_with("\"toast:") && jsonb.len() == 64,
        "{jsonb}"
    );
    let bytea = one(client, "SELECT raw FROM docs WHERE id = 1").await;
    assert!(
        bytea.starts_with("\\xf7544f4153540d0a") && bytea.len() == 102,
        "{bytea}"
    );
}

/// `prepare p as insert into docs (body) values ($1)`: Postgres infers the offloaded type for `$1`, and takes a
/// reference in text and in binary. An undeclared `$1` with two meanings fails; declared, it works.
#[tokio::test(flavor = "multi_thread")]
async fn parameters_are_inferred_or_declared_as_the_type() {
    let twins = Twins::new(Way::Direct).await;
    let client = &twins.client;
    let text = one(client, "SELECT 'toastrack.text'::regtype::oid").await;
    let statement = client
        .prepare("INSERT INTO docs (id, body) VALUES (20, $1)")
        .await
        .unwrap();
    assert_eq!(statement.params()[0].oid().to_string(), text);

    let both = "INSERT INTO docs (body, id) VALUES ($1, length($1))";
    let error = client.prepare(both).await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "42P08");

    let declared = statement.params()[0].clone();
    let statement = client
        .prepare_typed(both, std::slice::from_ref(&declared))
        .await
        .unwrap();
    let reference = one(client, "SELECT body FROM docs WHERE id = 1").await;
    client
        .execute_raw(&statement, [RawText(reference.clone())])
        .await
        .unwrap();
    let found = format!(
        "SELECT body, body::text FROM docs WHERE id = {}",
        LONG.len()
    );
    assert_eq!(one(client, &found).await, format!("{reference}|{LONG}"));

    // A parameter of the type that goes into a plain column is detoasted on the way.
    let statement = client
        .prepare_typed("INSERT INTO plain (id, body) VALUES (30, $1)", &[declared])
        .await
        .unwrap();
    client
        .execute_raw(&statement, [RawText(reference)])
        .await
        .unwrap();
    assert_eq!(
        one(client, "SELECT body FROM plain WHERE id = 30").await,
        LONG
    );
}

/// A string for a parameter of any type, as its bytes.
#[derive(Debug)]
struct RawText(String);

impl tokio_postgres::types::ToSql for RawText {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut tokio_postgres::types::private::BytesMut,
    ) -> Result<tokio_postgres::types::IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(tokio_postgres::types::IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    tokio_postgres::types::to_sql_checked!();
}

/// `'<reference>'::toastrack.text` is right in every typed context.
#[tokio::test(flavor = "multi_thread")]
async fn a_typed_literal_is_right_everywhere() {
    let twins = Twins::new(Way::Direct).await;
    let client = &twins.client;
    let reference = one(client, "SELECT body FROM docs WHERE id = 1").await;
    let typed = format!("'{reference}'::toastrack.text");
    client
        .batch_execute(&format!(
            "CREATE TABLE t (id int, body text, v varchar(200), a text[], d date); \
             INSERT INTO t (id, body, v) VALUES (1, {typed}, {typed}); \
             INSERT INTO docs (id, body) VALUES (21, {typed}); \
             UPDATE docs SET v = {typed} WHERE id = 21; \
             UPDATE t SET a = ARRAY[{typed}]"
        ))
        .await
        .unwrap();
    assert_eq!(one(client, "SELECT body FROM t").await, LONG);
    assert_eq!(one(client, "SELECT v FROM t").await, LONG);
    assert_eq!(one(client, "SELECT a[1] FROM t").await, LONG);
    assert_eq!(
        one(client, "SELECT body FROM docs WHERE id = 21").await,
        reference
    );
    assert_eq!(
        one(client, "SELECT v FROM docs WHERE id = 21").await,
        reference
    );
    assert_eq!(
        one(client, "SELECT v::text FROM docs WHERE id = 21").await,
        LONG
    );
    for (sql, expected) in [
        (format!("SELECT length({typed})"), LONG.len().to_string()),
        (
            format!("SELECT count(*) FROM plain WHERE body = {typed}"),
            "3".into(),
        ),
        (
            format!("SELECT count(*) FROM docs WHERE body = {typed}"),
            "4".into(),
        ),
        (format!("SELECT {typed} || '!'"), format!("{LONG}!")),
        (
            format!("SELECT 'yes' WHERE {typed} LIKE '%fox%'"),
            "yes".into(),
        ),
    ] {
        assert_eq!(one(client, &sql).await, expected, "{sql}");
    }
}

/// Without the operators in pg_catalog, `data || '{"z": 1}'` is anynonarray || text; with them it is right.
#[tokio::test(flavor = "multi_thread")]
async fn concatenation_needs_the_operators_in_pg_catalog() {
    let twins = Twins::new(Way::Direct).await;
    let sql = "SELECT data || '{\"z\": 1}' FROM docs WHERE id = 8";
    assert_eq!(one(&twins.client, sql).await, "[42, {\"z\": 1}]");
    twins
        .client
        .batch_execute(
            "BEGIN; DO $$ DECLARE o regoperator; BEGIN
                FOR o IN SELECT o.oid FROM pg_operator o JOIN pg_proc p ON p.oid = o.oprcode AND p.pronamespace = 'toastrack'::regnamespace WHERE o.oprname = '||' LOOP
                    EXECUTE format('DROP OPERATOR %s', o);
                END LOOP;
             END $$",
        )
        .await
        .unwrap();
    // Silently another operator: text next to text.
    assert_eq!(one(&twins.client, sql).await, "42{\"z\": 1}");
    twins.client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(one(&twins.client, sql).await, "[42, {\"z\": 1}]");
}

/// Overloads in pg_catalog are picked up, and do not take unknown literals away from text.
#[tokio::test(flavor = "multi_thread")]
async fn overloads_in_pg_catalog_are_picked_up() {
    let twins = Twins::new(Way::None).await;
    twins
        .same("SELECT id, length(body), length(v), length(raw) FROM {t} ORDER BY id")
        .await;
    twins
        .same("SELECT id, octet_length(body), char_length(v), bit_length(raw) FROM {t} ORDER BY id")
        .await;
    let unknown = "SELECT length('abc'), octet_length('äb'), char_length('äb'), bit_length('a'), quote_literal('a'), quote_nullable(NULL), \
                   length('abc'::varchar), length('ab '::char(3)), length('\\x0001'::bytea), length('abc'::name), 'a' || 'b', \
                   array_to_string(ARRAY[1, 2], ',')";
    let bare = connect(&empty_database().await).await;
    assert_eq!(one(&twins.client, unknown).await, one(&bare, unknown).await);
}

/// Explicit casts to other types see the value: one is defined for every type that the plain type converts to.
#[tokio::test(flavor = "multi_thread")]
async fn explicit_casts_to_other_types_see_the_value() {
    let twins = Twins::new(Way::Direct).await;
    let client = &twins.client;
    for (value, target) in [
        ("42", "int"),
        ("42", "bigint"),
        ("42.5", "numeric"),
        ("42.557", "numeric(4,2)"),
        ("4.5", "float8"),
        ("true", "boolean"),
        ("2026-12-01", "date"),
        ("2026-12-01 09:14:00+02", "timestamptz"),
        ("2026-12-01 09:14:00", "timestamp"),
        ("09:14", "time"),
        ("1 day", "interval"),
        ("0f57f4bd-5a5e-4b6c-8cd9-0d1b8b0a1c11", "uuid"),
        ("<a>x</a>", "xml"),
        ("{\"a\":1, \"b\":[]}", "jsonb"),
        ("$.a", "jsonpath"),
        ("10.0.0.1", "inet"),
        ("10.0.0.0/8", "cidr"),
        ("101", "bit(3)"),
        ("101", "varbit"),
        ("\\x0102", "bytea"),
        ("(1,2)", "point"),
        ("[1,5)", "int4range"),
        ("{[1,5),[7,9)}", "int4multirange"),
        ("{1,2,3}", "int[]"),
        ("{a,b}", "text[]"),
        ("fat & rat", "tsquery"),
        ("fat rat", "tsvector"),
        ("pg_class", "regclass"),
        ("a long name of something", "name"),
        ("a text that is cut", "char(5)"),
        ("a text that is cut", "varchar(5)"),
        ("xyz", "\"char\""),
        ("12.34", "money"),
        ("08:00:2b:01:02:03", "macaddr"),
        ("not a number", "int"),
        ("not a uuid", "uuid"),
        ("<a", "xml"),
    ] {
        for (kind, offloaded) in [
            (ColumnKind::Text, "toastrack.text"),
            (ColumnKind::Varchar, "toastrack.varchar"),
        ] {
            let reference = twins.sidecar.literal(kind, value.as_bytes()).await;
            let plain =
                common::try_rows(client, &format!("SELECT ('{value}'::{kind})::{target}")).await;
            let found = common::try_rows(
                client,
                &format!("SELECT ({reference}::{offloaded})::{target}"),
            )
            .await;
            match (&plain, &found) {
                (Ok(_), Ok(_)) => assert_eq!(found, plain, "{value}::{target}"),
                (Err(plain), Err(found)) => assert_eq!(found, plain, "{value}::{target}"),
                _ => panic!("{value}::{target}: plain {plain:?}, offloaded {found:?}"),
            }
        }
    }
    // Every way that the server offers for the plain type has its cast, or would use output text.
    let uncovered = rows(
        client,
        "SELECT p.typname || ' to ' || t.typname
         FROM pg_type p JOIN pg_type o ON o.typname = p.typname AND o.typnamespace = 'toastrack'::regnamespace
         JOIN pg_cast c ON c.castsource = p.oid JOIN pg_type t ON t.oid = c.casttarget AND t.oid <> p.oid
         WHERE p.typnamespace = 11 AND t.typnamespace = 11 AND NOT EXISTS (SELECT FROM pg_cast x WHERE x.castsource = o.oid AND x.casttarget = t.oid)",
    )
    .await;
    assert!(uncovered.is_empty(), "{uncovered:?}");
}

/// `data['k']` is refused by the parser: an error, not a wrong answer.
#[tokio::test(flavor = "multi_thread")]
async fn subscripting_is_refused() {
    let twins = Twins::new(Way::Direct).await;
    assert!(
        failure(&twins.client, "SELECT data['k'] FROM docs")
            .await
            .starts_with("42804")
    );
    assert!(
        failure(&twins.client, "UPDATE docs SET data['k'] = '1'")
            .await
            .starts_with("42804")
    );
    twins
        .same("SELECT id, (data::jsonb)['k'] FROM {t} ORDER BY id")
        .await;
}
