//! Moving columns in and out: no rewrite, nothing lost, and a refusal for what stands in the way.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::time::Duration;

use common::sidecar::{Sidecar, Way};
use common::{connect, failure, installed, one, rows};
use toastrack_migrations::{
    ColumnKind, ColumnPlan, Error, Kind, RunOptions, Target, catalog, plan_offload, plan_restore,
    run_offload, run_restore, uninstall,
};
use tokio_postgres::Client;

const OPTIONS: RunOptions = RunOptions {
    lock_timeout: Duration::from_secs(5),
    accept_differences: false,
};

fn target(text: &str) -> Target {
    Target::parse(text).unwrap()
}

async fn offload(client: &mut Client, column: &str, threshold: Option<u32>) -> ColumnPlan {
    let plan = plan_offload(client, &target(column), threshold)
        .await
        .unwrap();
    assert!(plan.is_possible(), "{plan}");
    run_offload(client, &plan, threshold, OPTIONS)
        .await
        .unwrap_or_else(|error| panic!("{error}\n{plan}"));
    plan
}

async fn restore(client: &mut Client, column: &str) -> ColumnPlan {
    let plan = plan_restore(client, &target(column)).await.unwrap();
    assert!(plan.is_possible(), "{plan}");
    run_restore(client, &plan, OPTIONS)
        .await
        .unwrap_or_else(|error| panic!("{error}\n{plan}"));
    plan
}

async fn refusals(client: &Client, column: &str) -> Vec<String> {
    plan_offload(client, &target(column), None)
        .await
        .unwrap()
        .refusals
}

fn mentions(lines: &[String], word: &str) -> bool {
    lines.iter().any(|line| line.contains(word))
}

/// Everything that the catalogs say of the columns of a table.
const DESCRIPTION: &str = "
    SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attcollation, a.attstorage, a.attcompression,
           a.attstattarget, a.attnotnull, pg_get_expr(d.adbin, d.adrelid), pg_relation_filenode(a.attrelid)
    FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = 'docs'::regclass AND a.attnum > 0 ORDER BY a.attnum";

const CONTENT: &str = "SELECT md5(string_agg(d::text, ',' ORDER BY id)) FROM docs d";

/// A column of each type, with length, collation, storage, compression, statistics target, default and NOT NULL,
/// goes in and comes back exactly as it was, in the same file, with the same rows.
#[tokio::test(flavor = "multi_thread")]
async fn every_type_goes_in_and_comes_back() {
    let mut client = installed().await;
    client
        .batch_execute(
            "CREATE TABLE docs (id int, body text COLLATE \"POSIX\" NOT NULL DEFAULT 'none', v varchar, n varchar(40) DEFAULT 'x',
                                j json, data jsonb DEFAULT '{}', raw bytea);
             ALTER TABLE docs ALTER body SET STORAGE EXTERNAL, ALTER data SET COMPRESSION pglz, ALTER raw SET STATISTICS 77;
             INSERT INTO docs SELECT i, 'b' || i, 'v', repeat('n', i % 40), '{ }', '{\"a\": 1}', '\\x00' FROM generate_series(1, 3000) i",
        )
        .await
        .unwrap();
    let before = rows(&client, DESCRIPTION).await;
    let content = one(&client, CONTENT).await;
    for (column, kind) in [
        ("body", ColumnKind::Text),
        ("v", ColumnKind::Varchar),
        ("n", ColumnKind::Varchar),
        ("j", ColumnKind::Json),
        ("data", ColumnKind::Jsonb),
        ("raw", ColumnKind::Bytea),
    ] {
        offload(&mut client, &format!("docs.{column}"), Some(1024)).await;
        let found = catalog(&client).await.unwrap();
        let entry = found.tables[0]
            .columns
            .iter()
            .find(|c| c.name == column)
            .unwrap();
        assert_eq!(entry.offloaded, Some(kind));
        assert_eq!(entry.threshold, Some(1024));
        assert_eq!(entry.type_modifier, if column == "n" { 44 } else { -1 });
    }
    let during = rows(&client, DESCRIPTION).await;
    let nodes = |lines: &[String]| -> Vec<String> {
        lines
            .iter()
            .map(|line| line.rsplit('|').next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(nodes(&during), nodes(&before));
    assert!(during[1].starts_with("body|toastrack.text|"), "{during:?}");
    assert!(
        during[3].starts_with("n|toastrack.\"varchar\"(40)|"),
        "{during:?}"
    );
    assert_eq!(one(&client, CONTENT).await, content);
    // Storage and compression stay while it is offloaded.
    assert_eq!(during[1].split('|').nth(3), Some("e"));
    assert_eq!(during[5].split('|').nth(4), Some("p"));
    client
        .batch_execute("INSERT INTO docs (id) VALUES (0); DELETE FROM docs WHERE id = 0")
        .await
        .unwrap();
    for column in ["body", "v", "n", "j", "data", "raw"] {
        restore(&mut client, &format!("docs.{column}")).await;
    }
    assert_eq!(rows(&client, DESCRIPTION).await, before);
    assert_eq!(one(&client, CONTENT).await, content);
    assert_eq!(
        one(&client, "SELECT count(*) FROM toastrack.column_settings").await,
        "0"
    );
    // Nothing of the table holds on to the schema any more.
    uninstall(&mut client).await.unwrap();
}

/// A `varchar(n)` keeps its limit: values that are too long fail, trailing blanks are cut, and a reference counts
/// with the length of its value.
#[tokio::test(flavor = "multi_thread")]
async fn a_varchar_keeps_its_length() {
    let mut client = installed().await;
    let sidecar = Sidecar::start().await;
    sidecar.register(&mut client, Way::Direct).await;
    client
        .batch_execute(
            "CREATE TABLE docs (id int, n varchar(10)); INSERT INTO docs VALUES (1, '0123456789')",
        )
        .await
        .unwrap();
    offload(&mut client, "docs.n", None).await;
    let fits = sidecar.literal(ColumnKind::Varchar, b"toast:abcd").await;
    let blanks = sidecar
        .literal(ColumnKind::Varchar, b"0123456789    ")
        .await;
    let long = sidecar.literal(ColumnKind::Varchar, b"0123456789x").await;
    for (value, expected) in [
        ("'0123456789'", Ok("0123456789")),
        ("'0123456789   '", Ok("0123456789")),
        (
            "'0123456789x'",
            Err("22001 value too long for type character varying(10)"),
        ),
        (&fits, Ok("toast:abcd")),
        (&blanks, Ok("0123456789")),
        (
            &long,
            Err("22001 value too long for type character varying(10)"),
        ),
    ] {
        let sql = format!("INSERT INTO docs VALUES (2, {value}) RETURNING n::text");
        let found = common::try_rows(&client, &sql).await;
        match expected {
            Ok(text) => assert_eq!(found.unwrap(), [text], "{value}"),
            Err(text) => assert_eq!(found.unwrap_err(), text, "{value}"),
        }
        client
            .batch_execute("DELETE FROM docs WHERE id = 2")
            .await
            .unwrap();
    }
    // The reference itself stays in the row.
    client
        .batch_execute(&format!("INSERT INTO docs VALUES (3, {fits})"))
        .await
        .unwrap();
    assert_eq!(
        format!(
            "'{}'",
            one(&client, "SELECT n FROM docs WHERE id = 3").await
        ),
        fits
    );
    // An explicit cast cuts.
    assert_eq!(
        one(&client, "SELECT n::varchar(3) FROM docs WHERE id = 3").await,
        "toa"
    );
    assert_eq!(
        one(
            &client,
            &format!("SELECT {long}::toastrack.varchar(4)::text")
        )
        .await,
        "0123"
    );
    // A wider limit rewrites nothing.
    let node = "SELECT pg_relation_filenode('docs')";
    let before = one(&client, node).await;
    client
        .batch_execute("ALTER TABLE docs ALTER n TYPE toastrack.varchar(20)")
        .await
        .unwrap();
    assert_eq!(one(&client, node).await, before);
}

/// A partitioned table and its partitions move together, settings of single partitions included; a partition
/// alone is refused.
#[tokio::test(flavor = "multi_thread")]
async fn partitions_move_together() {
    let mut client = installed().await;
    client
        .batch_execute(
            "CREATE TABLE docs (id int, body varchar(50)) PARTITION BY RANGE (id);
             CREATE TABLE docs_1 PARTITION OF docs FOR VALUES FROM (0) TO (10);
             CREATE TABLE docs_2 (extra int, body varchar(50), id int);
             ALTER TABLE docs_2 DROP COLUMN extra;
             ALTER TABLE docs ATTACH PARTITION docs_2 FOR VALUES FROM (10) TO (20);
             ALTER TABLE docs_1 ALTER body SET STORAGE MAIN, ALTER body SET STATISTICS 9;
             INSERT INTO docs SELECT i, 'body ' || i FROM generate_series(0, 19) i",
        )
        .await
        .unwrap();
    let state = "SELECT attrelid::regclass, format_type(atttypid, atttypmod), attstorage, attstattarget, pg_relation_filenode(attrelid)
                 FROM pg_attribute WHERE attname = 'body' AND attrelid IN ('docs'::regclass, 'docs_1'::regclass, 'docs_2'::regclass) ORDER BY 1";
    let before = rows(&client, state).await;
    assert!(mentions(
        &refusals(&client, "docs_1.body").await,
        "partitions move together"
    ));
    offload(&mut client, "docs.body", Some(10)).await;
    let during = rows(&client, state).await;
    assert!(
        during
            .iter()
            .all(|line| line.contains("toastrack.\"varchar\"(50)")),
        "{during:?}"
    );
    assert!(during[1].contains("|m|9|"), "{during:?}");
    assert_eq!(catalog(&client).await.unwrap().tables.len(), 3);
    assert_eq!(
        one(
            &client,
            "SELECT string_agg(upper(body), ' ' ORDER BY id) FROM docs WHERE id IN (1, 11)"
        )
        .await,
        "BODY 1 BODY 11"
    );
    restore(&mut client, "docs.body").await;
    assert_eq!(rows(&client, state).await, before);
}

/// Restoring is refused while a reference is left, with their number; ordinary data that looks like one does not
/// count; the advice in the refusal works.
#[tokio::test(flavor = "multi_thread")]
async fn restoring_is_refused_while_references_are_left() {
    let mut client = installed().await;
    let sidecar = Sidecar::start().await;
    sidecar.register(&mut client, Way::Callback).await;
    let lookalike = {
        // A reference of another store.
        let other = Sidecar::start().await;
        other.literal(ColumnKind::Text, b"of another store").await
    };
    client
        .batch_execute(&format!(
            "CREATE TABLE docs (id int, body text); INSERT INTO docs VALUES (1, 'inline'), (2, {lookalike}), (3, 'toast: no'), (4, NULL)"
        ))
        .await
        .unwrap();
    offload(&mut client, "docs.body", None).await;
    for id in [5, 6] {
        let literal = sidecar
            .literal(ColumnKind::Text, format!("value {id}").as_bytes())
            .await;
        client
            .batch_execute(&format!("INSERT INTO docs VALUES ({id}, {literal})"))
            .await
            .unwrap();
    }
    let plan = plan_restore(&client, &target("docs.body")).await.unwrap();
    assert_eq!(plan.refusals.len(), 1, "{plan}");
    assert!(
        plan.refusals[0].starts_with("2 values are still kept by references"),
        "{plan}"
    );
    let error = run_restore(&mut client, &plan, OPTIONS).await.unwrap_err();
    assert!(matches!(error, Error::Refused(_)));

    let advice = plan.refusals[0].split(": ").nth(1).unwrap().to_owned();
    client.batch_execute(&advice).await.unwrap();
    restore(&mut client, "docs.body").await;
    assert_eq!(
        rows(&client, "SELECT body FROM docs ORDER BY id").await,
        [
            "inline",
            lookalike.trim_matches('\''),
            "toast: no",
            "∅",
            "value 5",
            "value 6"
        ]
    );
}

/// Indexes of the default classes and on expressions follow and go on working; others are refused with what to
/// do, and that works.
#[tokio::test(flavor = "multi_thread")]
async fn indexes_follow_or_are_refused() {
    let mut client = installed().await;
    let sidecar = Sidecar::start().await;
    sidecar.register(&mut client, Way::Direct).await;
    client
        .batch_execute(
            "CREATE TABLE docs (id int, body text, data jsonb);
             CREATE UNIQUE INDEX by_body ON docs (body); CREATE INDEX hashed ON docs USING hash (body);
             CREATE INDEX upper_body ON docs (upper(body)); CREATE INDEX partly ON docs (id) WHERE body LIKE 'a%';
             CREATE INDEX by_k ON docs ((data ->> 'k')); CREATE INDEX words ON docs USING gin (to_tsvector('english', body));
             CREATE INDEX pattern ON docs (body text_pattern_ops); CREATE INDEX keys ON docs USING gin (data);
             CREATE INDEX ranges ON docs USING brin (body);
             INSERT INTO docs SELECT i, 'word' || i, jsonb_build_object('k', i) FROM generate_series(1, 2000) i; ANALYZE docs",
        )
        .await
        .unwrap();
    let found = refusals(&client, "docs.body").await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        mentions(&found, "index pattern (btree, text_pattern_ops)")
            && mentions(&found, "index ranges (brin, "),
        "{found:?}"
    );
    let found = refusals(&client, "docs.data").await;
    assert!(
        mentions(
            &found,
            "create it on the expression ((data::jsonb) jsonb_ops)"
        ),
        "{found:?}"
    );

    client
        .batch_execute("DROP INDEX pattern, keys, ranges")
        .await
        .unwrap();
    let plan = offload(&mut client, "docs.body", None).await;
    for index in ["by_body", "hashed", "upper_body", "partly", "words"] {
        assert!(
            mentions(&plan.notices, &format!("index {index} is rebuilt")),
            "{plan}"
        );
    }
    offload(&mut client, "docs.data", None).await;
    client
        .batch_execute("CREATE INDEX keys ON docs USING gin ((data::jsonb) jsonb_ops); CREATE INDEX pattern ON docs ((body::text) text_pattern_ops)")
        .await
        .unwrap();
    client
        .batch_execute("SET enable_seqscan = off; ANALYZE docs")
        .await
        .unwrap();
    let reference = sidecar
        .literal(ColumnKind::Text, b"a value by reference")
        .await;
    client
        .batch_execute(&format!(
            "INSERT INTO docs VALUES (0, {reference}, '{{\"k\": 0}}')"
        ))
        .await
        .unwrap();
    for (condition, index, expected) in [
        ("body = 'word77'", "by_body|hashed", "77"),
        ("body = 'a value by reference'", "by_body|hashed", "0"),
        ("body > 'word998'", "by_body", "999"),
        ("upper(body) = 'WORD5'", "upper_body", "5"),
        ("body LIKE 'a%'", "partly", "0"),
        ("data ->> 'k' = '9'", "by_k", "9"),
        (
            "to_tsvector('english', body) @@ to_tsquery('reference')",
            "words",
            "0",
        ),
        ("data @> '{\"k\": 8}'", "keys", "8"),
        ("body::text LIKE 'word123%' AND id < 1000", "pattern", "123"),
    ] {
        let sql = format!("SELECT id FROM docs WHERE {condition}");
        assert_eq!(rows(&client, &sql).await, [expected], "{condition}");
        let explained = rows(&client, &format!("EXPLAIN {sql}")).await.join("\n");
        assert!(
            index
                .split('|')
                .any(|name| explained.contains(&format!(" {name}"))),
            "{condition}: {explained}"
        );
    }
    // Uniqueness is that of the values (C41): inline against reference, reference against reference.
    let again = sidecar
        .literal(ColumnKind::Text, b"a value by reference")
        .await;
    assert_ne!(again, reference);
    for value in [again.as_str(), "'a value by reference'"] {
        let error = failure(
            &client,
            &format!("INSERT INTO docs VALUES (-1, {value}, NULL)"),
        )
        .await;
        assert!(error.starts_with("23505"), "{error}");
        let upsert = format!(
            "INSERT INTO docs VALUES (-1, {value}, NULL) ON CONFLICT (body) DO UPDATE SET id = docs.id RETURNING id"
        );
        assert_eq!(one(&client, &upsert).await, "0");
    }

    client
        .batch_execute("DELETE FROM docs WHERE id = 0")
        .await
        .unwrap();
    restore(&mut client, "docs.body").await;
    restore(&mut client, "docs.data").await;
    assert_eq!(
        rows(&client, "SELECT id FROM docs WHERE body = 'word77'").await,
        ["77"]
    );
    client.batch_execute("REINDEX TABLE docs").await.unwrap();
}

/// What Postgres would not change under a dependent is refused, each with its name.
#[tokio::test(flavor = "multi_thread")]
async fn dependents_that_stand_in_the_way_are_named() {
    let client = installed().await;
    client
        .batch_execute(
            "CREATE TABLE keys (k text PRIMARY KEY);
             CREATE TABLE docs (id int, body text REFERENCES keys, n int GENERATED ALWAYS AS (length(body)) STORED,
                                upper_id text GENERATED ALWAYS AS (id::text) STORED);
             CREATE VIEW shouted AS SELECT upper(body) FROM docs;
             CREATE MATERIALIZED VIEW kept AS SELECT body FROM docs;
             CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
             CREATE TRIGGER watch AFTER UPDATE OF body ON docs FOR EACH ROW EXECUTE FUNCTION f();
             CREATE POLICY mine ON docs USING (body = current_user);
             CREATE FUNCTION g() RETURNS text LANGUAGE sql BEGIN ATOMIC SELECT max(body) FROM docs; END;
             CREATE TABLE parted (body text) PARTITION BY LIST (body);
             CREATE DOMAIN note AS text; CREATE TABLE others (i int, n note, a text[], c char(3));
             CREATE TYPE pair AS (x text); CREATE TABLE typed OF pair;
             CREATE TABLE parent (body text); CREATE TABLE child () INHERITS (parent)",
        )
        .await
        .unwrap();
    let has_row_filters = one(&client, "SHOW server_version_num").await.as_str() >= "150000";
    if has_row_filters {
        client
            .batch_execute("CREATE PUBLICATION p FOR TABLE docs WHERE (body = 'x')")
            .await
            .unwrap();
    }
    let found = refusals(&client, "docs.body").await;
    for name in [
        "view shouted",
        "materialized view kept",
        "trigger watch",
        "policy mine",
        "column n of table docs",
        "function g()",
        "foreign key docs_body_fkey",
    ] {
        assert!(mentions(&found, name), "{name} is not in {found:#?}");
    }
    assert_eq!(mentions(&found, "publication"), has_row_filters);
    assert_eq!(found.len(), 7 + usize::from(has_row_filters), "{found:#?}");
    for (column, reason) in [
        ("keys.k", "foreign key docs_body_fkey"),
        ("docs.upper_id", "is generated"),
        ("parted.body", "partition key"),
        ("others.i", "of type integer"),
        ("others.n", "of type note"),
        ("others.a", "of type text[]"),
        ("others.c", "of type character(3)"),
        ("typed.x", "typed table"),
        ("child.body", "topmost parent"),
        ("shouted.upper", "is not a table"),
        ("toastrack.config.value", "system table"),
    ] {
        let found = refusals(&client, column).await;
        assert!(mentions(&found, reason), "{column}: {found:?}");
    }
    for (column, what) in [("nowhere.body", "no table"), ("docs.nothing", "no column")] {
        let error = plan_offload(&client, &target(column), None)
            .await
            .unwrap_err();
        assert!(
            matches!(&error, Error::NotFound(text) if text.contains(what)),
            "{error}"
        );
    }
    let restore = plan_restore(&client, &target("docs.body")).await.unwrap();
    assert!(mentions(&restore.refusals, "is not offloaded"), "{restore}");
}

/// Triggers, functions, views over whole rows and publications that make text of rows are named, and stop the
/// move until they are accepted.
#[tokio::test(flavor = "multi_thread")]
async fn what_composes_text_has_to_be_accepted() {
    let mut client = installed().await;
    client
        .batch_execute(
            "CREATE TABLE docs (id int, body text); CREATE TABLE log (line text);
             CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS
                 'BEGIN INSERT INTO log VALUES (row_to_json(NEW)::text); RETURN NEW; END';
             CREATE TRIGGER audit AFTER INSERT ON docs FOR EACH ROW EXECUTE FUNCTION audit();
             CREATE FUNCTION quiet() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
             CREATE TRIGGER quiet BEFORE INSERT ON docs FOR EACH ROW EXECUTE FUNCTION quiet();
             CREATE FUNCTION export() RETURNS text LANGUAGE sql AS 'SELECT format(''%s'', max(body)) FROM docs';
             CREATE FUNCTION count_docs() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM docs';
             CREATE VIEW texts AS SELECT d::text FROM docs d; CREATE VIEW wholes AS SELECT d FROM docs d;
             CREATE PUBLICATION feed FOR ALL TABLES",
        )
        .await
        .unwrap();
    let plan = plan_offload(&client, &target("docs.body"), None)
        .await
        .unwrap();
    assert!(plan.is_possible(), "{plan}");
    assert_eq!(plan.differences.len(), 4, "{plan}");
    for name in [
        "trigger audit on docs",
        "function export()",
        "publication feed",
        "view texts",
    ] {
        assert!(mentions(&plan.differences, name), "{plan}");
    }
    assert!(
        plan.to_string()
            .contains("will see references instead of values")
    );
    let error = run_offload(&mut client, &plan, None, OPTIONS)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    assert_eq!(one(&client, "SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'docs'::regclass AND attname = 'body'").await, "text");
    let accepted = RunOptions {
        accept_differences: true,
        ..OPTIONS
    };
    run_offload(&mut client, &plan, None, accepted)
        .await
        .unwrap();
    assert_eq!(catalog(&client).await.unwrap().tables.len(), 1);
}

/// CHECK constraints and domains over plain types go on firing on values, inline or by reference.
#[tokio::test(flavor = "multi_thread")]
async fn checks_go_on_firing() {
    let mut client = installed().await;
    let sidecar = Sidecar::start().await;
    sidecar.register(&mut client, Way::Direct).await;
    client
        .batch_execute("CREATE TABLE docs (id int, body text, CONSTRAINT no_fox CHECK (body NOT LIKE '%fox%')); INSERT INTO docs VALUES (1, 'dog')")
        .await
        .unwrap();
    let plan = offload(&mut client, "docs.body", None).await;
    assert!(mentions(&plan.notices, "CHECK constraint no_fox"), "{plan}");
    for value in [
        "'a fox'".to_owned(),
        sidecar
            .literal(ColumnKind::Text, b"a fox by reference")
            .await,
    ] {
        let error = failure(&client, &format!("INSERT INTO docs VALUES (2, {value})")).await;
        assert!(error.starts_with("23514"), "{error}");
    }
    let fine = sidecar
        .literal(ColumnKind::Text, b"a dog by reference")
        .await;
    client
        .batch_execute(&format!("INSERT INTO docs VALUES (2, {fine})"))
        .await
        .unwrap();
}

/// A table that is in use is not waited for beyond the lock timeout, and a table that changed since the plan
/// is not touched.
#[tokio::test(flavor = "multi_thread")]
async fn locks_time_out_and_stale_plans_are_refused() {
    let mut client = installed().await;
    client
        .batch_execute("CREATE TABLE docs (id int, body text)")
        .await
        .unwrap();
    let plan = plan_offload(&client, &target("docs.body"), None)
        .await
        .unwrap();
    let other = connect(&one(&client, "SELECT current_database()").await).await;
    other
        .batch_execute("BEGIN; SELECT * FROM docs")
        .await
        .unwrap();
    let hasty = RunOptions {
        lock_timeout: Duration::from_millis(50),
        ..OPTIONS
    };
    let error = run_offload(&mut client, &plan, None, hasty)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), Kind::Retry, "{error}");
    other
        .batch_execute("COMMIT; CREATE INDEX late ON docs (body)")
        .await
        .unwrap();
    let error = run_offload(&mut client, &plan, None, OPTIONS)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Stale), "{error}");
    offload(&mut client, "docs.body", None).await;
}

/// Offloading again changes the threshold alone, and the column's statistics are not collected.
#[tokio::test(flavor = "multi_thread")]
async fn the_threshold_changes_alone_and_analyze_reads_no_value() {
    let mut client = installed().await;
    let sidecar = Sidecar::start().await;
    sidecar.register(&mut client, Way::None).await;
    client
        .batch_execute("CREATE TABLE \"My docs\" (id int, \"Body\" text)")
        .await
        .unwrap();
    let column = "\"My docs\".\"Body\"";
    offload(&mut client, column, None).await;
    let threshold =
        async |client: &Client| catalog(client).await.unwrap().tables[0].columns[1].threshold;
    assert_eq!(threshold(&client).await, None);
    let plan = offload(&mut client, column, Some(4096)).await;
    assert_eq!(plan.statements.len(), 1, "{plan}");
    assert_eq!(threshold(&client).await, Some(4096));
    // With statistics, this would fail: there is no way to read the values.
    for value in [b"one".as_slice(), b"two"] {
        let literal = sidecar.literal(ColumnKind::Text, value).await;
        client
            .batch_execute(&format!("INSERT INTO \"My docs\" VALUES (1, {literal})"))
            .await
            .unwrap();
    }
    client.batch_execute("ANALYZE \"My docs\"").await.unwrap();
}

/// A quoted name, a schema, and a name that SQL would fold.
#[tokio::test(flavor = "multi_thread")]
async fn names_are_found_as_sql_finds_them() {
    let mut client = installed().await;
    client
        .batch_execute("CREATE SCHEMA \"S p\"; CREATE TABLE \"S p\".\"it's\" (\"a\"\"b\\\" text, \"user\" jsonb)")
        .await
        .unwrap();
    offload(&mut client, r#""S p"."it's"."a""b\""#, Some(9)).await;
    offload(&mut client, r#""S p"."it's".USER"#, Some(9)).await;
    let found = catalog(&client).await.unwrap();
    let columns: Vec<_> = found.tables[0]
        .columns
        .iter()
        .map(|c| (c.name.as_str(), c.threshold))
        .collect();
    assert_eq!(columns, [("a\"b\\", Some(9)), ("user", Some(9))]);
    restore(&mut client, r#""S p"."it's"."a""b\""#).await;
    restore(&mut client, r#""S p"."it's"."user""#).await;
}
