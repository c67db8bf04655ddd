//! `toastrack.detoast`: both ways to a value, what is checked, and what happens when neither works.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::sidecar::{Sidecar, Way};
use common::{connect, connect_with, failure, installed, one, rows, try_rows};
use toastrack_migrations::{ColumnKind, ServerSettings, refresh_settings};
use toastrack_offload::Compression;

/// A value of each kind, of many lengths, by both ways, raw and compressed: exactly what was stored. Without the
/// resolver a compressed value cannot be read; with it both can, whatever directory is registered.
#[tokio::test(flavor = "multi_thread")]
async fn both_ways_give_the_value() {
    let mut client = installed().await;
    client
        .batch_execute("SET bytea_output = escape")
        .await
        .unwrap();
    for compression in [Compression::None, Compression::Lz4 { min_saving: 0.1 }] {
        let sidecar = Sidecar::start_with(compression).await;
        for len in [0, 1, 61, 62, 4096, 100_000, 1 << 20] {
            let text: String = "wörter und Wörter — "
                .chars()
                .cycle()
                .take(len / 2)
                .collect();
            let bytes: Vec<u8> = (0..len).map(|at| (at * 7 + at / 256) as u8).collect();
            let json = format!("{{\"b\": \"{text}\", \"a\": [1,2]}}");
            let too_long = json.len() > 1 << 20;
            for way in [Way::Direct, Way::Callback] {
                if way == Way::Direct && compression != Compression::None {
                    continue;
                }
                sidecar.register(&mut client, way).await;
                for kind in [
                    ColumnKind::Text,
                    ColumnKind::Varchar,
                    ColumnKind::Json,
                    ColumnKind::Bytea,
                ] {
                    let value = match kind {
                        ColumnKind::Json if too_long => continue,
                        ColumnKind::Json => json.as_bytes(),
                        ColumnKind::Bytea => &bytes,
                        _ => text.as_bytes(),
                    };
                    let literal = sidecar.literal(kind, value).await;
                    let plain = match kind {
                        ColumnKind::Bytea => format!("{literal}::toastrack.bytea::bytea"),
                        _ => format!("convert_to({literal}::toastrack.{kind}::text, 'UTF8')"),
                    };
                    let row = client
                        .query_one(&format!("SELECT {plain}"), &[])
                        .await
                        .unwrap();
                    assert!(
                        row.get::<_, Vec<u8>>(0) == value,
                        "{kind} of {len} bytes, {way:?}"
                    );
                }
            }
        }
        let canonical = r#"{"a": [1, 2], "b": "x"}"#;
        let literal = sidecar
            .literal(ColumnKind::Jsonb, canonical.as_bytes())
            .await;
        assert_eq!(
            one(
                &client,
                &format!("SELECT {literal}::toastrack.jsonb::jsonb")
            )
            .await,
            canonical
        );
    }
}

/// S4: a byte that changed in the segment is an error that names segment and offset, whichever way is registered,
/// for that value alone; the session goes on.
#[tokio::test(flavor = "multi_thread")]
async fn damage_is_an_error_that_names_the_place() {
    let mut client = installed().await;
    let sidecar = Sidecar::start().await;
    let settings = both(&sidecar, &mut client).await;
    let value = "a value that will be damaged on the disk".repeat(10);
    let reference = sidecar.put(ColumnKind::Text, value.as_bytes()).await;
    let other = sidecar.literal(ColumnKind::Text, b"another value").await;
    let literal = format!("'{}'", std::str::from_utf8(&reference.to_text()).unwrap());
    let sql = format!("SELECT {literal}::toastrack.text::text");
    assert_eq!(one(&client, &sql).await, value);

    let path = sidecar
        .directory
        .join(format!("segments/{:08x}.seg", reference.segment()));
    // In the payload, and in the header's length, identity and digest.
    for at in [200, 8, 30, 60] {
        let place = u64::from(reference.offset()) + at;
        flip(&path, place);
        let error = failure(&client, &sql).await;
        assert!(error.starts_with("XX001"), "{error}");
        assert!(error.contains(&reference.offset().to_string()), "{error}");
        assert_eq!(
            one(&client, &format!("SELECT {other}::toastrack.text::text")).await,
            "another value"
        );
        flip(&path, place);
        assert_eq!(one(&client, &sql).await, value);
    }
    drop(settings);
}

/// Registers both ways at once, as the sidecar does.
async fn both(sidecar: &Sidecar, client: &mut tokio_postgres::Client) -> ServerSettings {
    let settings = sidecar.settings(true, true);
    refresh_settings(client, &settings).await.unwrap();
    settings
}

fn flip(path: &std::path::Path, at: u64) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x40], at).unwrap();
}

/// With a directory registered, a value the server can read by itself needs no resolver, and one it cannot (it is
/// compressed, or the file is gone) comes from the resolver.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_directly_comes_from_the_resolver() {
    let mut client = installed().await;
    let mut sidecar = Sidecar::start_with(Compression::Lz4 { min_saving: 0.1 }).await;
    both(&sidecar, &mut client).await;
    let raw = sidecar
        .literal(ColumnKind::Text, b"no way to compress")
        .await;
    let packed = sidecar
        .literal(ColumnKind::Text, "word ".repeat(1000).as_bytes())
        .await;
    let read = |literal: &str| format!("SELECT md5({literal}::toastrack.text)");
    let expected = one(&client, "SELECT md5('no way to compress')").await;
    assert_eq!(one(&client, &read(&raw)).await, expected);
    assert_eq!(
        one(&client, "SELECT toastrack.dblink_get_connections() IS NULL").await,
        "t"
    );
    assert_eq!(
        one(&client, &read(&packed)).await,
        one(&client, "SELECT md5(repeat('word ', 1000))").await
    );
    assert_eq!(
        one(&client, "SELECT toastrack.dblink_get_connections()").await,
        "{toastrack_resolver}"
    );

    sidecar.stop_resolver().await;
    assert_eq!(one(&client, &read(&raw)).await, expected);
    assert!(try_rows(&client, &read(&packed)).await.is_err());
    sidecar.start_resolver().await;
    std::fs::rename(
        sidecar.directory.join("segments"),
        sidecar.directory.join("elsewhere"),
    )
    .unwrap();
    std::fs::create_dir(sidecar.directory.join("segments")).unwrap();
    common::give_to_server(&sidecar.directory);
    assert_eq!(one(&client, &read(&raw)).await, expected);
}

/// S5: what looks like a reference and is none of this store's is ordinary data, by either way, inline and in
/// every function; whatever the damage to its spelling.
#[tokio::test(flavor = "multi_thread")]
async fn lookalikes_are_ordinary_data() {
    let mut client = installed().await;
    let sidecar = Sidecar::start().await;
    both(&sidecar, &mut client).await;
    let genuine = sidecar.put(ColumnKind::Text, b"the value").await;
    let genuine = std::str::from_utf8(&genuine.to_text()).unwrap().to_owned();
    let mut lookalikes = vec![
        format!("toast:{}", "A".repeat(56)),
        format!("toast:{}", "_".repeat(56)),
        format!("toast:{}", " ".repeat(56)),
        format!("toast:{}", "=".repeat(56)),
        format!("toast:{}", "ä".repeat(28)),
        genuine.to_uppercase(),
        genuine[..61].to_owned(),
        format!("{genuine}x"),
        format!(" {}", &genuine[..61]),
        genuine.replace('-', "+"),
    ];
    // Each character changed: the fields are impossible, or not those of a record. The last six are the MAC, which
    // only the resolver can check.
    for at in 6..56 {
        let mut changed = genuine.clone().into_bytes();
        changed[at] = if changed[at] == b'Q' { b'R' } else { b'Q' };
        lookalikes.push(String::from_utf8(changed).unwrap());
    }
    lookalikes.retain(|text| *text != genuine);
    for text in &lookalikes {
        for expression in [
            format!("'{text}'::toastrack.text::text"),
            format!("'{text}'::toastrack.varchar::text"),
            format!("'\"{text}\"'::toastrack.jsonb::jsonb #>> '{{}}'"),
            format!("'\"{text}\"'::toastrack.json::json #>> '{{}}'"),
            format!("upper('{text}'::toastrack.text) = upper('{text}')"),
        ] {
            let found = one(&client, &format!("SELECT {expression}")).await;
            let expected = if expression.starts_with("upper") {
                "t"
            } else {
                text.as_str()
            };
            assert_eq!(found, expected, "{expression}");
        }
    }
    // A reference whose MAC alone is wrong: only by the resolver is it known for what it is. By file it gives the
    // value, which takes the identity of the value to make.
    let mut changed = genuine.clone();
    changed.replace_range(
        57..,
        if genuine.ends_with("QQQQQ") {
            "RRRRR"
        } else {
            "QQQQQ"
        },
    );
    let sql = format!("SELECT '{changed}'::toastrack.text::text");
    assert_eq!(one(&client, &sql).await, "the value");
    sidecar.register(&mut client, Way::Callback).await;
    assert_eq!(one(&client, &sql).await, changed);
    // A json document of the same size.
    let document = format!("{{\"k\": \"{}\"}}", "v".repeat(55));
    for kind in ["json", "jsonb"] {
        let found = one(
            &client,
            &format!("SELECT '{document}'::toastrack.{kind}::{kind}"),
        )
        .await;
        assert_eq!(found, document);
    }
    let zeros = "00".repeat(42);
    let bytes = format!("\\xf7544f4153540d0a{zeros}");
    assert_eq!(
        one(
            &client,
            &format!("SELECT '{bytes}'::toastrack.bytea::bytea")
        )
        .await,
        bytes
    );
}

/// With neither way the error says so, with SQLSTATE 58030 and a hint; the reference is never handed out as data.
#[tokio::test(flavor = "multi_thread")]
async fn no_way_is_an_error_with_a_hint() {
    let mut client = installed().await;
    let mut sidecar = Sidecar::start().await;
    let literal = sidecar.literal(ColumnKind::Text, b"the value").await;
    let sql = format!("SELECT {literal}::toastrack.text::text");
    let error = client.simple_query(&sql).await.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "58030");
    assert!(
        error.hint().unwrap().contains("toastrack serve"),
        "{error:?}"
    );

    sidecar.register(&mut client, Way::Callback).await;
    sidecar.stop_resolver().await;
    let error = failure(&client, &sql).await;
    let version: i32 = one(&client, "SHOW server_version_num")
        .await
        .parse()
        .unwrap();
    // Before version 17 the connection's own error stands: see sql/0003_resolver.up.sql.
    let expected = if version < 170_000 { "08001" } else { "58030" };
    assert!(error.starts_with(expected), "{error}");
}

/// A resolver that was restarted is connected to again by the same session, also inside a transaction.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_survives_a_restart_of_the_resolver() {
    let mut client = installed().await;
    let mut sidecar = Sidecar::start().await;
    sidecar.register(&mut client, Way::Callback).await;
    let literal = sidecar.literal(ColumnKind::Text, b"the value").await;
    let sql = format!("SELECT {literal}::toastrack.text::text");
    assert_eq!(one(&client, &sql).await, "the value");
    sidecar.stop_resolver().await;
    let error = failure(&client, &sql).await;
    assert!(
        error.starts_with("08001") || error.starts_with("58030"),
        "{error}"
    );
    sidecar.start_resolver().await;
    client.batch_execute("BEGIN").await.unwrap();
    assert_eq!(one(&client, &sql).await, "the value");
    sidecar.stop_resolver().await;
    sidecar.start_resolver().await;
    assert_eq!(one(&client, &sql).await, "the value");
    client.batch_execute("COMMIT").await.unwrap();
}

/// An ordinary role without any right on the schema's tables reads values, whatever its search path, which
/// cannot put functions of its own in the way.
#[tokio::test(flavor = "multi_thread")]
async fn an_ordinary_role_reads_values_and_cannot_interfere() {
    let mut admin = installed().await;
    let sidecar = Sidecar::start_with(Compression::Lz4 { min_saving: 0.1 }).await;
    both(&sidecar, &mut admin).await;
    let raw = sidecar.literal(ColumnKind::Jsonb, b"{\"k\": 1}").await;
    let packed = sidecar
        .literal(ColumnKind::Text, "word ".repeat(100).as_bytes())
        .await;
    let database = one(&admin, "SELECT current_database()").await;
    admin
        .batch_execute(&format!(
            "CREATE ROLE visitor LOGIN; CREATE SCHEMA visitor AUTHORIZATION visitor;
             CREATE TABLE docs (body toastrack.text, data toastrack.jsonb); GRANT ALL ON docs TO visitor;
             INSERT INTO docs VALUES ({packed}, {raw})"
        ))
        .await
        .unwrap();
    let conninfo = common::cluster()
        .connection_string(&database)
        .replace("user=postgres", "user=visitor");
    let visitor = connect_with(&conninfo).await;
    visitor
        .batch_execute(
            "SET search_path = visitor, pg_catalog, public;
             CREATE FUNCTION visitor.sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT $1';
             CREATE FUNCTION visitor.substr(bytea, int, int) RETURNS bytea LANGUAGE sql AS 'SELECT $1';
             CREATE FUNCTION visitor.raw(toastrack.text) RETURNS text LANGUAGE sql AS 'SELECT ''mine''';
             CREATE FUNCTION visitor.never(text, text) RETURNS bool LANGUAGE sql AS 'SELECT false';
             CREATE OPERATOR visitor.= (FUNCTION = visitor.never, LEFTARG = text, RIGHTARG = text);
             CREATE TABLE visitor.resolver (conninfo text)",
        )
        .await
        .unwrap();
    assert_eq!(
        one(&visitor, "SELECT md5(body), data -> 'k' FROM public.docs").await,
        format!(
            "{}|1",
            one(&admin, "SELECT md5(repeat('word ', 100))").await
        )
    );
}

/// Parallel workers detoast by both ways.
#[tokio::test(flavor = "multi_thread")]
async fn parallel_workers_detoast() {
    for way in [Way::Direct, Way::Callback] {
        let mut client = installed().await;
        let sidecar = Sidecar::start().await;
        sidecar.register(&mut client, way).await;
        let literal = sidecar
            .literal(
                ColumnKind::Text,
                "needle in the value ".repeat(20).as_bytes(),
            )
            .await;
        client
            .batch_execute(&format!(
                "CREATE TABLE docs (id int, body toastrack.text) WITH (parallel_workers = 2);
                 INSERT INTO docs SELECT i, {literal} FROM generate_series(1, 400) i;
                 SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
                 SET parallel_leader_participation = off; SET min_parallel_table_scan_size = 0"
            ))
            .await
            .unwrap();
        let sql = "SELECT count(*) FROM docs WHERE body LIKE '%needle%'";
        let explained = rows(&client, &format!("EXPLAIN (ANALYZE, COSTS OFF) {sql}"))
            .await
            .join("\n");
        assert!(explained.contains("Workers Launched: 2"), "{explained}");
        assert_eq!(one(&client, sql).await, "400");
    }
}

/// The planner inlines detoast: an inline value costs a look at its length, and is not even fetched from TOAST.
#[tokio::test(flavor = "multi_thread")]
async fn detoast_is_inlined() {
    let client = installed().await;
    client
        .batch_execute("CREATE TABLE docs (body toastrack.text, v toastrack.varchar(9), j toastrack.json, data toastrack.jsonb, raw toastrack.bytea)")
        .await
        .unwrap();
    for (column, kind) in [
        ("body", "text"),
        ("v", "varchar"),
        ("j", "json"),
        ("data", "jsonb"),
        ("raw", "bytea"),
    ] {
        let plan = rows(
            &client,
            &format!(
                "EXPLAIN (VERBOSE) SELECT 1 FROM docs WHERE {column}::{kind}::text = 'x' OFFSET 0"
            ),
        )
        .await
        .join("\n");
        assert!(plan.contains("toastrack.raw_length"), "{column}: {plan}");
    }
}

/// The schema of dblink may be another one, and may change; install finds it again.
#[tokio::test(flavor = "multi_thread")]
async fn dblink_may_stand_in_another_schema() {
    let database = common::empty_database().await;
    let mut client = connect(&database).await;
    client
        .batch_execute(
            "CREATE SCHEMA \"Else where\"; CREATE EXTENSION dblink SCHEMA \"Else where\"",
        )
        .await
        .unwrap();
    let sidecar = Sidecar::start().await;
    toastrack_migrations::install(&mut client, &sidecar.settings(false, true))
        .await
        .unwrap();
    let literal = sidecar.literal(ColumnKind::Text, b"the value").await;
    let sql = format!("SELECT {literal}::toastrack.text::text");
    assert_eq!(one(&client, &sql).await, "the value");
    client
        .batch_execute("ALTER EXTENSION dblink SET SCHEMA public")
        .await
        .unwrap();
    assert!(try_rows(&client, &sql).await.is_err());
    toastrack_migrations::install(&mut client, &ServerSettings::default())
        .await
        .unwrap();
    assert_eq!(one(&client, &sql).await, "the value");
    toastrack_migrations::uninstall(&mut client).await.unwrap();
    assert_eq!(
        one(
            &client,
            "SELECT count(*) FROM pg_extension WHERE extname = 'dblink'"
        )
        .await,
        "1"
    );
}

/// What one value costs in the server. Prints a table; run with `--ignored --nocapture`, in release for the setup.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures"]
async fn cost_of_detoast() {
    let mut client = installed().await;
    let sidecar = Sidecar::start().await;
    client
        .batch_execute("SET max_parallel_workers_per_gather = 0; SET jit = off")
        .await
        .unwrap();
    for (bytes, count) in [(200, 100_000), (8192, 20_000)] {
        client
            .batch_execute(&format!(
                "CREATE TABLE plain AS SELECT i AS id, (SELECT string_agg(md5(i::text || n), '') FROM generate_series(1, {bytes} / 32) n) AS body FROM generate_series(1, {count}) i;
                 CREATE TABLE docs AS SELECT id, body::toastrack.text AS body FROM plain"
            ))
            .await
            .unwrap();
        client.batch_execute("VACUUM ANALYZE plain").await.unwrap();
        client.batch_execute("VACUUM docs").await.unwrap();
        let plain = time(
            &client,
            "SELECT count(*) FROM plain WHERE length(body || '') > 0",
        )
        .await;
        let docs = time(
            &client,
            "SELECT count(*) FROM docs WHERE length(body || '') > 0",
        )
        .await;
        println!(
            "inline {bytes} B: plain {} us, offloaded {} us a row",
            plain.each(count),
            docs.each(count)
        );
        client
            .batch_execute("DROP TABLE plain, docs")
            .await
            .unwrap();
    }
    for bytes in [200, 8192, 65_536] {
        let count = 2_000;
        client.batch_execute("CREATE TABLE docs (id int, body toastrack.text); CREATE TABLE plain (id int, body text COMPRESSION pglz)").await.unwrap();
        for id in 0..count {
            let value: String = (0..bytes)
                .map(|at| {
                    char::from(b'a' + ((at * 31 + id as usize * 17 + at * at / 7) % 26) as u8)
                })
                .collect();
            let reference = sidecar.put(ColumnKind::Text, value.as_bytes()).await;
            let text = reference.to_text();
            client.batch_execute(&format!("INSERT INTO docs VALUES ({id}, '{}'); INSERT INTO plain VALUES ({id}, '{value}')", std::str::from_utf8(&text).unwrap())).await.unwrap();
        }
        let plain = time(
            &client,
            "SELECT count(*) FROM plain WHERE length(body || '') > 0",
        )
        .await;
        sidecar.register(&mut client, Way::Direct).await;
        let direct = time(
            &client,
            "SELECT count(*) FROM docs WHERE length(body || '') > 0",
        )
        .await;
        sidecar.register(&mut client, Way::Callback).await;
        let callback = time(
            &client,
            "SELECT count(*) FROM docs WHERE length(body || '') > 0",
        )
        .await;
        let alone = time(&client, "SELECT count(*) FROM docs WHERE length(body) > 0").await;
        println!(
            "reference to {bytes} B: plain TOAST {} us, by file {} us, by resolver {} us, length alone {} us a value",
            plain.each(count),
            direct.each(count),
            callback.each(count),
            alone.each(count)
        );
        client
            .batch_execute("DROP TABLE plain, docs")
            .await
            .unwrap();
    }
}

/// Ten runs after a first one, in microseconds each: time on the clock (the median), and time that the server's
/// process computed (the mean), which a busy machine does not change.
async fn time(client: &tokio_postgres::Client, sql: &str) -> Cost {
    let pid = one(client, "SELECT pg_backend_pid()").await;
    let computed = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap()
            .split_whitespace()
            .collect();
        let ticks = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
        ticks * 10_000.0
    };
    client.query_one(sql, &[]).await.unwrap();
    let before = computed();
    let mut times = Vec::new();
    for _ in 0..10 {
        let start = std::time::Instant::now();
        client.query_one(sql, &[]).await.unwrap();
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    Cost {
        clock: times[5],
        server: (computed() - before) / 10.0,
    }
}

/// Microseconds.
#[derive(Clone, Copy)]
struct Cost {
    clock: f64,
    server: f64,
}

impl Cost {
    /// For one of `count` values, as "clock (server)".
    fn each(self, count: i32) -> String {
        let count = f64::from(count);
        format!("{:.2} ({:.2})", self.clock / count, self.server / count)
    }
}
