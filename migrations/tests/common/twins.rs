//! Two tables with the same values: `plain` as Postgres has them, `docs` offloaded, in part as references.

use toastrack_migrations::ColumnKind;
use tokio_postgres::Client;

use super::sidecar::{Sidecar, Way};
use super::{installed, one, try_rows};

/// A database with the twins in it, and the sidecar that holds the values.
pub(crate) struct Twins {
    pub(crate) client: Client,
    pub(crate) sidecar: Sidecar,
}

/// The values of the rows: id, whether it is a reference in `docs`, text, jsonb.
///
/// Equal values stand inline and as references at two addresses; text and varchar share the text, json and jsonb
/// the document, bytea has the text's bytes.
pub(crate) const ROWS: &[(i32, bool, Option<&str>, Option<&str>)] = &[
    (1, true, Some(LONG), Some(DOCUMENT)),
    (2, false, Some(LONG), Some(DOCUMENT)),
    (3, true, Some(LONG), Some(DOCUMENT)),
    (
        4,
        true,
        Some("äöü – Ελλάδα, a second text with a 'quote' and a \\ in it"),
        Some(r#"{"k": "second", "list": [1, 2]}"#),
    ),
    (5, false, Some("short"), Some(r#"{"k": "third"}"#)),
    (6, false, None, None),
    (7, false, Some(""), Some("{}")),
    (8, true, Some("42"), Some("42")),
];

/// The text of three rows.
pub(crate) const LONG: &str = "The quick brown fox jumps over the lazy dog, and the dog does not mind at all; he has seen foxes before.";
/// The document of three rows, as jsonb prints it.
pub(crate) const DOCUMENT: &str = r#"{"k": "first", "list": [3, 4, {"deep": true}], "n": 7}"#;

impl Twins {
    /// Makes both tables; `docs` reads its values in this way.
    pub(crate) async fn new(way: Way) -> Twins {
        let mut client = installed().await;
        let sidecar = Sidecar::start().await;
        sidecar.register(&mut client, way).await;
        client
            .batch_execute(
                "CREATE TABLE plain (id int, body text, v varchar(200), j json, data jsonb, raw bytea);
                 CREATE TABLE docs (id int, body toastrack.text, v toastrack.varchar(200), j toastrack.json,
                                    data toastrack.jsonb, raw toastrack.bytea)",
            )
            .await
            .unwrap();
        for (id, is_reference, text, document) in ROWS {
            let quoted = |value: &Option<&str>| match value {
                Some(value) => format!("'{}'", value.replace('\'', "''")),
                None => "NULL".to_owned(),
            };
            let raw = match text {
                Some(text) => format!("convert_to('{}', 'UTF8')", text.replace('\'', "''")),
                None => "NULL".to_owned(),
            };
            let (text_sql, document_sql) = (quoted(text), quoted(document));
            let insert = |table: &str, values: [&str; 5]| {
                format!("INSERT INTO {table} VALUES ({id}, {})", values.join(", "))
            };
            let plain = [
                &*text_sql,
                &*text_sql,
                &*document_sql,
                &*document_sql,
                &*raw,
            ];
            client.batch_execute(&insert("plain", plain)).await.unwrap();
            if !is_reference {
                client.batch_execute(&insert("docs", plain)).await.unwrap();
                continue;
            }
            let (text, document) = (text.unwrap().as_bytes(), document.unwrap().as_bytes());
            let references = [
                sidecar.literal(ColumnKind::Text, text).await,
                sidecar.literal(ColumnKind::Varchar, text).await,
                sidecar.literal(ColumnKind::Json, document).await,
                sidecar.literal(ColumnKind::Jsonb, document).await,
                sidecar.literal(ColumnKind::Bytea, text).await,
            ];
            let values = std::array::from_fn(|at| references[at].as_str());
            client.batch_execute(&insert("docs", values)).await.unwrap();
        }
        let twins = Twins { client, sidecar };
        let kept = one(
            &twins.client,
            "SELECT count(*) FILTER (WHERE toastrack.looks_like_reference(body)) || ' ' || \
             count(*) FILTER (WHERE toastrack.looks_like_reference(v)) || ' ' || \
             count(*) FILTER (WHERE toastrack.looks_like_reference(j)) || ' ' || \
             count(*) FILTER (WHERE toastrack.looks_like_reference(data)) || ' ' || \
             count(*) FILTER (WHERE toastrack.looks_like_reference(raw)) FROM docs",
        )
        .await;
        assert_eq!(kept, "4 4 4 4 4");
        twins
    }

    /// Runs the statement on both tables, `{t}` standing for the name; rows or SQLSTATE must be the same, and no
    /// reference may be among the rows.
    pub(crate) async fn same(&self, template: &str) {
        let plain = try_rows(&self.client, &template.replace("{t}", "plain")).await;
        let docs = try_rows(&self.client, &template.replace("{t}", "docs")).await;
        match (&plain, &docs) {
            (Ok(plain), Ok(docs)) => {
                assert_eq!(docs, plain, "{template}");
                assert!(
                    !docs
                        .iter()
                        .any(|row| row.contains("toast:") || row.contains("f7544f415354")),
                    "{template}: {docs:?}"
                );
            }
            (Err(plain), Err(docs)) => assert_eq!(docs[..5], plain[..5], "{template}: {docs}"),
            _ => panic!("{template}: plain {plain:?}, offloaded {docs:?}"),
        }
    }

    /// [`Twins::same`] for many expressions in the select list, each over all rows.
    pub(crate) async fn same_expressions(&self, expressions: &[&str]) {
        for expression in expressions {
            self.same(&format!("SELECT id, {expression} FROM {{t}} ORDER BY id"))
                .await;
        }
    }
}
