//! ANALYZE leaves offloaded columns alone.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::installed;

/// Proves: ANALYZE of a table with references asks nobody for their values. Nothing is registered
/// that could answer, so a single look would fail; other columns keep their statistics.
#[tokio::test]
async fn analyze_reads_no_value() {
    let client = installed().await;
    let reference = format!("toast:{}", "A".repeat(56));
    client
        .batch_execute(
            "CREATE TABLE docs (id int, body toastrack.text, name toastrack.varchar(100), \
             raw toastrack.bytea, doc toastrack.jsonb, log toastrack.json)",
        )
        .await
        .unwrap();
    client
        .batch_execute(&format!(
            "INSERT INTO docs SELECT i, '{reference}', '{reference}', \
             '\\xf7544f4153540d0a'::bytea || decode(repeat('00', 42), 'hex'), \
             '\"{reference}\"', '\"{reference}\"' FROM generate_series(1, 500) AS i"
        ))
        .await
        .unwrap();
    client.batch_execute("ANALYZE docs").await.unwrap();
    let columns: Vec<String> = client
        .query(
            "SELECT attname::text FROM pg_stats WHERE tablename = 'docs'",
            &[],
        )
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(columns, ["id"]);
}
