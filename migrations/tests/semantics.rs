//! What differs from plain columns. Each test shows one difference that `docs/semantics.md` lists, with references in
//! the rows and a session that talks to the server directly.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::sidecar::Way;
use common::twins::{LONG, Twins};
use common::{failure, one, rows, try_rows};
use toastrack_migrations::ColumnKind;

/// Where the proxy's tests of what the page lists are.
const PROXY_TESTS: [&str; 10] = [
    "copy_in/flow",
    "copy_in/lines",
    "copy_in/targets",
    "corruption",
    "differential/copy",
    "differential/params",
    "differential/scripts",
    "differential/start",
    "tls/scram",
    "tls/server",
];

/// Every test that the page names exists here or beside, and every test here is on the page.
#[test]
fn the_page_names_the_tests() {
    let root = env!("CARGO_MANIFEST_DIR");
    let read = |path: &str| std::fs::read_to_string(format!("{root}/{path}")).unwrap();
    let page = read("../docs/semantics.md");
    let here = read("tests/semantics.rs");
    let tests_of = |source: &str| -> Vec<String> {
        source
            .split("\n#[t")
            .filter_map(|attribute| attribute.split_once("fn "))
            .map(|(_, rest)| rest)
            .map(|rest| rest[..rest.find('(').unwrap()].to_owned())
            .collect()
    };
    for test in tests_of(&here)
        .iter()
        .filter(|test| *test != "the_page_names_the_tests")
    {
        assert!(
            page.contains(&format!("`{test}`")),
            "{test} is not on the page"
        );
    }
    let here_too = [
        "altering",
        "columns",
        "comparisons",
        "detoast",
        "dumps",
        "install",
        "section3",
        "semantics",
    ];
    let all: Vec<String> = here_too
        .iter()
        .map(|name| format!("tests/{name}.rs"))
        .chain(PROXY_TESTS.map(|name| format!("../proxy/tests/{name}.rs")))
        .flat_map(|path| tests_of(&read(&path)))
        .collect();
    for named in page.split('`').skip(1).step_by(2).filter(|word| {
        word.contains('_') && word.chars().all(|c| c.is_ascii_lowercase() || c == '_')
    }) {
        let known_words = [
            "row_to_json",
            "to_jsonb",
            "json_agg",
            "json_build_object",
            "array_agg",
            "concat_ws",
            "array_to_string",
            "to_json",
            "quote_literal",
            "string_agg",
            "jsonb_agg",
            "octet_length",
            "char_length",
            "jsonb_build_object",
            "bytea_output",
            "test_decoding",
            "string_to_array",
            "column_settings",
            "xmlelement",
            "text_pattern_ops",
            "jsonb_ops",
            "value_of",
            "client_encoding",
        ];
        assert!(
            named.starts_with("pg_")
                || known_words.contains(&named)
                || all.iter().any(|test| test == named),
            "`{named}` on the page is no test"
        );
    }
}

fn has_reference(text: &str) -> bool {
    text.contains("toast:AQ")
}

#[tokio::test(flavor = "multi_thread")]
async fn variadic_any_functions_see_references() {
    let twins = Twins::new(Way::Direct).await;
    for call in [
        "format('%s', body)",
        "format('%L', v)",
        "concat(body, '')",
        "concat_ws(',', body, 'x')",
        "json_build_object('k', body)::text",
        "json_build_array(body)::text",
        "jsonb_build_object('k', body)::text",
        "num_nonnulls(body)::text || format('%s', data)",
    ] {
        let found = one(
            &twins.client,
            &format!("SELECT {call} FROM docs WHERE id = 1"),
        )
        .await;
        assert!(has_reference(&found), "{call}: {found}");
        // The way around: an explicit cast.
        let cast = call
            .replace("body", "body::text")
            .replace("(v", "(v::text")
            .replace(", v)", ", v::text)")
            .replace("data", "data::jsonb");
        let plain = one(
            &twins.client,
            &format!("SELECT {call} FROM plain WHERE id = 1"),
        )
        .await;
        let found = one(
            &twins.client,
            &format!("SELECT {cast} FROM docs WHERE id = 1"),
        )
        .await;
        assert_eq!(found, plain, "{cast}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_rows_as_text_have_references() {
    let twins = Twins::new(Way::Direct).await;
    for call in [
        "docs",
        "docs::text",
        "(docs.*)::text",
        "ROW(body)::text",
        "array_agg(docs)::text",
    ] {
        let sql = format!("SELECT {call} FROM docs WHERE id = 1");
        let found = one(&twins.client, &sql).await;
        assert!(has_reference(&found), "{call}: {found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_as_json_have_references_to_text_but_values_of_json() {
    let twins = Twins::new(Way::Direct).await;
    for call in [
        "row_to_json(docs)",
        "to_jsonb(docs)",
        "json_agg(docs)",
        "jsonb_agg(docs)",
    ] {
        let found = one(
            &twins.client,
            &format!("SELECT {call}::text FROM docs WHERE id = 1"),
        )
        .await;
        assert!(has_reference(&found), "{call}");
        // body and v are references, the documents are themselves.
        assert_eq!(found.matches("toast:AQ").count(), 2, "{call}: {found}");
        assert_eq!(found.matches("\"deep\"").count(), 2, "{call}: {found}");
    }
    let found = one(
        &twins.client,
        "SELECT json_agg(body)::text FROM docs WHERE id = 1",
    )
    .await;
    assert!(has_reference(&found));
    twins
        .same("SELECT json_agg(body::text ORDER BY id) FROM {t}")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn text_as_json_fails_for_references() {
    let twins = Twins::new(Way::Direct).await;
    let literal = twins.sidecar.literal(ColumnKind::Text, b"{\"a\": 1}").await;
    twins
        .client
        .batch_execute(&format!(
            "INSERT INTO docs (id, body) VALUES (50, {literal}), (51, '{{\"a\": 1}}')"
        ))
        .await
        .unwrap();
    assert_eq!(
        one(&twins.client, "SELECT body::json FROM docs WHERE id = 51").await,
        "{\"a\": 1}"
    );
    assert!(
        failure(&twins.client, "SELECT body::json FROM docs WHERE id = 50")
            .await
            .starts_with("22P02")
    );
    for way_around in ["body::jsonb", "body::text::json"] {
        assert_eq!(
            one(
                &twins.client,
                &format!("SELECT {way_around} FROM docs WHERE id = 50")
            )
            .await,
            "{\"a\": 1}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arrays_as_text_have_references() {
    let twins = Twins::new(Way::Direct).await;
    let found = one(
        &twins.client,
        "SELECT array_agg(body)::text FROM docs WHERE id = 1",
    )
    .await;
    assert!(has_reference(&found));
    twins
        .same("SELECT array_agg(body ORDER BY id)::text[]::text FROM {t}")
        .await;
    twins
        .same("SELECT array_to_string(array_agg(body ORDER BY id), ',') FROM {t}")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn types_of_users_convert_the_reference() {
    let twins = Twins::new(Way::Direct).await;
    let literal = twins.sidecar.literal(ColumnKind::Text, b"happy").await;
    twins
        .client
        .batch_execute(&format!("CREATE TYPE mood AS ENUM ('happy'); INSERT INTO docs (id, body) VALUES (50, {literal}), (51, 'happy')"))
        .await
        .unwrap();
    assert_eq!(
        one(&twins.client, "SELECT body::mood FROM docs WHERE id = 51").await,
        "happy"
    );
    assert!(
        failure(&twins.client, "SELECT body::mood FROM docs WHERE id = 50")
            .await
            .starts_with("22P02")
    );
    assert_eq!(
        one(
            &twins.client,
            "SELECT body::text::mood FROM docs WHERE id = 50"
        )
        .await,
        "happy"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn xml_functions_have_references() {
    let twins = Twins::new(Way::Direct).await;
    let found = one(
        &twins.client,
        "SELECT xmlelement(name x, body)::text FROM docs WHERE id = 1",
    )
    .await;
    assert!(has_reference(&found));
    twins
        .same("SELECT xmlelement(name x, body::text)::text FROM {t} WHERE id = 1")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_by_a_direct_session_has_references() {
    use futures::TryStreamExt;
    let twins = Twins::new(Way::Direct).await;
    let copy = async |sql: &str| {
        let chunks: Vec<_> = twins
            .client
            .copy_out(sql)
            .await
            .unwrap()
            .try_collect()
            .await
            .unwrap();
        String::from_utf8(chunks.concat()).unwrap()
    };
    assert!(has_reference(&copy("COPY docs TO STDOUT").await));
    assert_eq!(
        copy("COPY (SELECT id, body::text FROM docs ORDER BY id) TO STDOUT").await,
        copy("COPY (SELECT id, body FROM plain ORDER BY id) TO STDOUT").await
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_type_has_another_name() {
    let twins = Twins::new(Way::Direct).await;
    assert_eq!(
        one(&twins.client, "SELECT pg_typeof(body) FROM docs LIMIT 1").await,
        "toastrack.text"
    );
    assert_eq!(
        failure(&twins.client, "SELECT body + 1 FROM docs").await,
        "42883 operator does not exist: toastrack.text + integer"
    );
    assert_eq!(
        failure(&twins.client, "SELECT body + 1 FROM plain").await,
        "42883 operator does not exist: text + integer"
    );
    assert_eq!(
        one(&twins.client, "SELECT data_type || ' ' || udt_schema FROM information_schema.columns WHERE table_name = 'docs' AND column_name = 'body'").await,
        "USER-DEFINED toastrack"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn physical_sizes_are_those_of_references() {
    let twins = Twins::new(Way::Direct).await;
    assert_eq!(
        one(
            &twins.client,
            "SELECT pg_column_size(body) FROM docs WHERE id = 1"
        )
        .await,
        "63"
    );
    twins
        .same("SELECT id, octet_length(body), length(body) FROM {t} ORDER BY id")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mixed_columns_may_have_another_common_type() {
    let twins = Twins::new(Way::Direct).await;
    let kind = |table: &str| {
        format!("SELECT pg_typeof(coalesce(body, 'x'::varchar)) FROM {table} LIMIT 1")
    };
    assert_eq!(one(&twins.client, &kind("plain")).await, "text");
    assert_eq!(one(&twins.client, &kind("docs")).await, "character varying");
    twins
        .same("SELECT id, coalesce(body, 'x'::varchar) FROM {t} ORDER BY id")
        .await;
    assert!(
        failure(
            &twins.client,
            "SELECT coalesce(body, 'x'::char(3)) FROM docs"
        )
        .await
        .starts_with("42")
    );
    twins
        .same("SELECT id, coalesce(body::text, 'x'::char(3)) FROM {t} ORDER BY id")
        .await;
    for other in ["v", "'x'::text", "'x'::name::text"] {
        twins
            .same(&format!(
                "SELECT id, coalesce(body, {other})::text FROM {{t}} ORDER BY id"
            ))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_reference_has_the_length_it_claims() {
    let twins = Twins::new(Way::Callback).await;
    let genuine = one(&twins.client, "SELECT body FROM docs WHERE id = 1").await;
    let mut forged = genuine.clone();
    forged.replace_range(
        57..,
        if genuine.ends_with("QQQQQ") {
            "RRRRR"
        } else {
            "QQQQQ"
        },
    );
    twins
        .client
        .batch_execute(&format!("INSERT INTO docs (id, body) VALUES (50, '{forged}'); INSERT INTO plain (id, body) VALUES (50, '{forged}')"))
        .await
        .unwrap();
    twins
        .same(&format!(
            "SELECT count(*) FROM {{t}} WHERE body::text = '{forged}'"
        ))
        .await;
    assert_eq!(
        one(&twins.client, "SELECT length(body) FROM docs WHERE id = 50").await,
        LONG.len().to_string()
    );
    assert_eq!(
        one(
            &twins.client,
            "SELECT length(body) FROM plain WHERE id = 50"
        )
        .await,
        "62"
    );
    assert_eq!(
        one(
            &twins.client,
            "SELECT length(body::text) FROM docs WHERE id = 50"
        )
        .await,
        "62"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unique_takes_values_that_are_too_long_for_a_plain_index() {
    let twins = Twins::new(Way::Direct).await;
    twins
        .client
        .batch_execute("CREATE TABLE plain_u (body text UNIQUE); CREATE TABLE docs_u (body toastrack.text UNIQUE)")
        .await
        .unwrap();
    let long = (0..900)
        .map(|n| format!("{:x}", n * 7919 + n))
        .collect::<String>();
    assert!(
        failure(
            &twins.client,
            &format!("INSERT INTO plain_u VALUES ('{long}')")
        )
        .await
        .starts_with("54000")
    );
    let reference = twins
        .sidecar
        .literal(ColumnKind::Text, long.as_bytes())
        .await;
    twins
        .client
        .batch_execute(&format!("INSERT INTO docs_u VALUES ({reference})"))
        .await
        .unwrap();
    let again = twins
        .sidecar
        .literal(ColumnKind::Text, long.as_bytes())
        .await;
    assert!(
        failure(
            &twins.client,
            &format!("INSERT INTO docs_u VALUES ({again})")
        )
        .await
        .starts_with("23505")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn copying_a_reference_into_a_short_varchar_fails() {
    use futures::SinkExt;
    let twins = Twins::new(Way::Direct).await;
    twins
        .client
        .batch_execute("CREATE TABLE short (n toastrack.varchar(20))")
        .await
        .unwrap();
    let literal = twins
        .sidecar
        .literal(ColumnKind::Varchar, b"toast: a value")
        .await;
    twins
        .client
        .batch_execute(&format!("INSERT INTO short VALUES ({literal})"))
        .await
        .unwrap();
    let line = format!("{}\n", literal.trim_matches('\''));
    let sink = twins.client.copy_in("COPY short FROM STDIN").await.unwrap();
    let mut sink = std::pin::pin!(sink);
    sink.send(bytes::Bytes::from(line)).await.unwrap();
    let error = sink.close().await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "22001");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_planner_has_no_statistics_of_the_column() {
    let twins = Twins::new(Way::Direct).await;
    twins
        .client
        .batch_execute("ANALYZE docs; ANALYZE plain")
        .await
        .unwrap();
    let known = |table: &str| {
        format!("SELECT count(*) FROM pg_stats WHERE tablename = '{table}' AND attname = 'body'")
    };
    assert_eq!(one(&twins.client, &known("plain")).await, "1");
    assert_eq!(one(&twins.client, &known("docs")).await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn untyped_parameters_with_two_meanings_need_the_proxy() {
    let twins = Twins::new(Way::Direct).await;
    let sql = |table: &str| format!("INSERT INTO {table} (body, id) VALUES ($1, length($1))");
    twins.client.prepare(&sql("plain")).await.unwrap();
    let error = twins.client.prepare(&sql("docs")).await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "42P08");
}

#[tokio::test(flavor = "multi_thread")]
async fn logical_decoding_has_references() {
    let twins = Twins::new(Way::Direct).await;
    let Ok(_) = try_rows(
        &twins.client,
        "SELECT pg_create_logical_replication_slot('semantics', 'test_decoding')",
    )
    .await
    else {
        panic!("the test cluster has no logical decoding");
    };
    twins
        .client
        .batch_execute("INSERT INTO docs (id, body) SELECT 60, body FROM docs WHERE id = 1")
        .await
        .unwrap();
    let changes = rows(
        &twins.client,
        "SELECT data FROM pg_logical_slot_get_changes('semantics', NULL, NULL)",
    )
    .await
    .join("\n");
    assert!(has_reference(&changes), "{changes}");
    twins
        .client
        .batch_execute("SELECT pg_drop_replication_slot('semantics')")
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn triggers_that_compose_text_see_references() {
    let twins = Twins::new(Way::Direct).await;
    twins
        .client
        .batch_execute(
            "CREATE TABLE audit (line text); CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS \
             'BEGIN INSERT INTO audit VALUES (row_to_json(NEW)::text); RETURN NEW; END'; \
             CREATE TRIGGER audit AFTER UPDATE ON docs FOR EACH ROW EXECUTE FUNCTION audit(); \
             UPDATE docs SET id = id WHERE id = 1",
        )
        .await
        .unwrap();
    assert!(has_reference(
        &one(&twins.client, "SELECT line FROM audit").await
    ));
}
