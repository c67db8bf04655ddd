//! Comparing values of the types: operator classes, collations, and what needs no value at all.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::sidecar::Way;
use common::twins::Twins;
use common::{failure, one};
use toastrack_migrations::ColumnKind;

/// min and max of text go through the cast and see the value.
#[tokio::test(flavor = "multi_thread")]
async fn min_and_max_see_the_value() {
    let twins = Twins::new(Way::Direct).await;
    for template in [
        "SELECT min(body), max(body) FROM {t}",
        "SELECT min(v), max(v) FROM {t}",
        "SELECT min(data) FROM {t}",
    ] {
        twins.same(template).await;
    }
}

/// GROUP BY, DISTINCT, ORDER BY, GREATEST need default operator classes: without them they fail, with
/// them they are right over values that stand inline here and as references there.
#[tokio::test(flavor = "multi_thread")]
async fn grouping_and_sorting_need_the_operator_classes() {
    let twins = Twins::new(Way::Direct).await;
    let statements = [
        "SELECT {c}, count(*) FROM {t} GROUP BY {c} ORDER BY count(*), length({c}::text)",
        "SELECT count(DISTINCT {c}) FROM {t}",
        "SELECT id FROM {t} ORDER BY {c}, id",
        "SELECT id FROM {t} ORDER BY {c} DESC NULLS LAST, id",
        "SELECT id FROM {t} WHERE {c} IN (SELECT {c} FROM {t} WHERE id = 2) ORDER BY id",
        "SELECT rank() OVER (ORDER BY {c}), id FROM {t} ORDER BY 1, 2",
    ];
    let compares = [
        "SELECT id FROM {t} WHERE {c} IS DISTINCT FROM (SELECT {c} FROM {t} WHERE id = 1) ORDER BY id",
        "SELECT id, nullif({c}, {c}) FROM {t} ORDER BY id",
        "SELECT a.id, b.id FROM {t} a, {t} b WHERE a.{c} < b.{c} ORDER BY 1, 2",
        "SELECT a.id, b.id FROM {t} a, {t} b WHERE a.{c} >= b.{c} ORDER BY 1, 2",
        "SELECT a.id, b.id FROM {t} a, {t} b WHERE a.{c} <> b.{c} ORDER BY 1, 2",
    ];
    for column in ["body", "v", "data", "raw"] {
        for template in statements.iter().chain(&compares) {
            let template = template.replace("{c}", column);
            // Reading back rather than handing the reference out, as the proxy does it for results.
            let template = match column {
                "data" => template.replacen("SELECT data", "SELECT data::jsonb", 1),
                "raw" => template.replacen("SELECT raw", "SELECT raw::bytea", 1),
                _ => template.replacen(
                    &format!("SELECT {column}"),
                    &format!("SELECT {column}::text"),
                    1,
                ),
            };
            twins.same(&template).await;
        }
        for setting in [
            "enable_hashagg",
            "enable_sort",
            "enable_hashjoin",
            "enable_mergejoin",
        ] {
            twins
                .client
                .batch_execute(&format!("SET {setting} = off"))
                .await
                .unwrap();
            twins
                .same(&format!(
                    "SELECT count(*) FROM (SELECT DISTINCT {column} FROM {{t}}) s"
                ))
                .await;
            twins
                .same(&format!(
                    "SELECT count(*) FROM {{t}} a JOIN {{t}} b USING ({column})"
                ))
                .await;
            twins.same(&format!("SELECT count(*) FROM (SELECT {column} FROM {{t}} WHERE id < 5 UNION SELECT {column} FROM {{t}}) s")).await;
            twins.same(&format!("SELECT count(*) FROM (SELECT {column} FROM {{t}} INTERSECT SELECT {column} FROM {{t}} WHERE id = 3) s")).await;
            twins.same(&format!("SELECT id FROM (SELECT DISTINCT ON ({column}) {column}, id FROM {{t}} ORDER BY {column}, id) s ORDER BY id")).await;
            twins
                .client
                .batch_execute(&format!("RESET {setting}"))
                .await
                .unwrap();
        }
        twins.same(&format!("SELECT id, greatest({column}, {column}) = least({column}, {column}) FROM {{t}} ORDER BY id")).await;
    }

    twins
        .client
        .batch_execute(
            "DROP OPERATOR FAMILY toastrack.text_ops USING btree; DROP OPERATOR FAMILY toastrack.text_ops USING hash;
             DROP OPERATOR FAMILY toastrack.varchar_ops USING btree; DROP OPERATOR FAMILY toastrack.varchar_ops USING hash",
        )
        .await
        .unwrap();
    for sql in [
        "SELECT body FROM docs GROUP BY body",
        "SELECT DISTINCT body FROM docs",
        "SELECT id FROM docs ORDER BY body",
        "SELECT greatest(body, body) FROM docs",
    ] {
        assert!(failure(&twins.client, sql).await.starts_with("42"), "{sql}");
    }
}

/// The comparisons know the collation, and equality under a nondeterministic one.
#[tokio::test(flavor = "multi_thread")]
async fn comparison_knows_the_collation() {
    let twins = Twins::new(Way::Direct).await;
    let client = &twins.client;
    client
        .batch_execute(
            "CREATE COLLATION insensitive (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
             CREATE TABLE plain_c (id int, body text COLLATE \"und-x-icu\", ci text COLLATE insensitive);
             CREATE TABLE docs_c (id int, body toastrack.text COLLATE \"und-x-icu\", ci toastrack.text COLLATE insensitive)",
        )
        .await
        .unwrap();
    let words = ["b", "A", "a", "B", "ä", "Z"];
    for (id, word) in words.iter().enumerate() {
        let literal = match id % 2 {
            0 => {
                twins
                    .sidecar
                    .literal(ColumnKind::Text, word.as_bytes())
                    .await
            }
            _ => format!("'{word}'"),
        };
        client
            .batch_execute(&format!(
                "INSERT INTO plain_c VALUES ({id}, '{word}', '{word}'); INSERT INTO docs_c VALUES ({id}, {literal}, {literal})"
            ))
            .await
            .unwrap();
    }
    for template in [
        "SELECT id FROM {t}_c ORDER BY body, id",
        "SELECT id FROM {t}_c ORDER BY body COLLATE \"C\", id",
        "SELECT a.id, b.id FROM {t}_c a JOIN {t}_c b ON a.ci = b.ci ORDER BY 1, 2",
        "SELECT count(DISTINCT ci), count(DISTINCT body) FROM {t}_c",
        "SELECT id FROM {t}_c WHERE ci = 'A' ORDER BY id",
        "SELECT id FROM {t}_c WHERE body < 'B' ORDER BY id",
    ] {
        twins.same(template).await;
    }
}

/// Length, and equality of two references, are answered from the references alone: there is no way to read here.
#[tokio::test(flavor = "multi_thread")]
async fn lengths_and_equal_references_read_nothing() {
    let twins = Twins::new(Way::None).await;
    twins
        .same("SELECT sum(length(body)), sum(octet_length(body)), sum(octet_length(raw)) FROM {t}")
        .await;
    for column in ["body", "v", "data", "raw"] {
        let value = |id: i32| format!("(SELECT {column} FROM docs WHERE id = {id})");
        for (operator, expected) in [
            ("=", "t"),
            ("<>", "f"),
            ("<", "f"),
            ("<=", "t"),
            (">", "f"),
            (">=", "t"),
            ("IS DISTINCT FROM", "f"),
        ] {
            let sql = format!("SELECT {} {operator} {}", value(1), value(3));
            assert_eq!(one(&twins.client, &sql).await, expected, "{sql}");
        }
        // Unequal ones have to be read.
        let sql = format!("SELECT {} = {}", value(1), value(4));
        assert!(failure(&twins.client, &sql).await.starts_with("58030"));
    }
    // The two have different addresses, so it is the identity that says so.
    assert_eq!(
        one(
            &twins.client,
            "SELECT count(DISTINCT toastrack.raw(body)) FROM docs WHERE id IN (1, 3)"
        )
        .await,
        "2"
    );
}
