//! Moving a column to one of the types and back: what the server rewrites, and what it does not.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{failure, installed, one};
use toastrack_migrations::state;

/// `ALTER TABLE docs ALTER body TYPE toastrack.text` changes the description alone, and old values stay inline.
#[tokio::test(flavor = "multi_thread")]
async fn altering_to_the_type_keeps_the_relfilenode() {
    let client = installed().await;
    client
        .batch_execute(
            "CREATE TABLE docs (id int, body text, v varchar, j json, data jsonb, raw bytea);
             INSERT INTO docs SELECT i, repeat('x', i), 'v', '{}', '{\"a\": 1}', '\\x00' FROM generate_series(1, 3000) i",
        )
        .await
        .unwrap();
    let node = "SELECT pg_relation_filenode('docs')";
    let before = one(&client, node).await;
    let bytes = "SELECT md5(string_agg(d::text, ',' ORDER BY id)) FROM docs d";
    let old = one(&client, bytes).await;
    client
        .batch_execute(
            "ALTER TABLE docs ALTER body TYPE toastrack.text, ALTER v TYPE toastrack.varchar, ALTER j TYPE toastrack.json,
             ALTER data TYPE toastrack.jsonb, ALTER raw TYPE toastrack.bytea",
        )
        .await
        .unwrap();
    assert_eq!(one(&client, node).await, before);
    assert_eq!(one(&client, bytes).await, old);
}

/// Indexes on expressions of the column are rebuilt by the change, and CHECK constraints are verified again.
#[tokio::test(flavor = "multi_thread")]
async fn altering_rebuilds_expression_indexes_and_verifies_checks() {
    let client = installed().await;
    client
        .batch_execute(
            "CREATE TABLE docs (id int, body text, CONSTRAINT kept CHECK (length(body) < 10));
             CREATE INDEX by_upper ON docs (upper(body)); CREATE INDEX by_id ON docs (id);
             INSERT INTO docs VALUES (1, 'x');",
        )
        .await
        .unwrap();
    let nodes = "SELECT pg_relation_filenode('docs') || ' ' || pg_relation_filenode('by_id') || ' ' || pg_relation_filenode('by_upper')";
    let before: Vec<String> = one(&client, nodes)
        .await
        .split(' ')
        .map(str::to_owned)
        .collect();
    client
        .batch_execute("ALTER TABLE docs ALTER body TYPE toastrack.text")
        .await
        .unwrap();
    let after: Vec<String> = one(&client, nodes)
        .await
        .split(' ')
        .map(str::to_owned)
        .collect();
    assert_eq!(after[..2], before[..2]);
    assert_ne!(after[2], before[2]);
    assert!(
        failure(&client, "INSERT INTO docs VALUES (2, repeat('x', 10))")
            .await
            .starts_with("23514")
    );
}

/// Back by the recipe with casts: without its function the cast out is no rewrite either. All in one transaction.
#[tokio::test(flavor = "multi_thread")]
async fn altering_back_without_the_cast_function_keeps_the_relfilenode() {
    let client = installed().await;
    client
        .batch_execute("CREATE TABLE docs (body toastrack.text); INSERT INTO docs VALUES ('x')")
        .await
        .unwrap();
    let node = "SELECT pg_relation_filenode('docs')";
    let before = one(&client, node).await;
    client
        .batch_execute(
            "BEGIN; DROP CAST (toastrack.text AS text); CREATE CAST (toastrack.text AS text) WITHOUT FUNCTION AS IMPLICIT;
             ALTER TABLE docs ALTER body TYPE text; DROP CAST (toastrack.text AS text);
             CREATE CAST (toastrack.text AS text) WITH FUNCTION toastrack.detoast(toastrack.text) AS IMPLICIT; COMMIT",
        )
        .await
        .unwrap();
    assert_eq!(one(&client, node).await, before);
    assert_eq!(
        one(&client, "SELECT pg_typeof(body) FROM docs").await,
        "text"
    );
    assert!(state(&client).await.unwrap().is_ready());
}
