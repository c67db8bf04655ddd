//! `toastrack serve`, `install`, `offload`, `restore` and `uninstall`, from the outside.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::common::{fail, run, succeed};
use crate::server::{Serving, signal, wait, write_config};
use toastrack_testkit::Cluster;
use tokio_postgres::{Client, NoTls};

async fn connect(conninfo: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(conninfo, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn text(client: &Client, sql: &str) -> String {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

/// The way of an operator: install, offload, serve, write and read through it and in
/// SQL of the server itself, look at the admin API, restore, uninstall.
#[tokio::test(flavor = "multi_thread")]
async fn whole_way() {
    let cluster = Cluster::start().unwrap();
    cluster.create_database("app").unwrap();
    let database = cluster.connection_string("app");
    let directory = tempfile::tempdir().unwrap();
    let address = cluster.socket_path().display().to_string();
    let config = write_config(directory.path(), &address, "");

    assert!(succeed(&["install", "-d", &database]).contains("\ninstalled: "));
    assert!(succeed(&["install", "-d", &database]).starts_with("already installed: "));
    let direct = connect(&database).await;
    direct
        .batch_execute("create table docs(id int, body text, note text)")
        .await
        .unwrap();
    let said = succeed(&["offload", "docs.body", "-d", &database, "--dry-run"]);
    assert!(said.contains("ALTER TABLE"), "{said}");
    let type_of = "select format_type(atttypid, atttypmod) from pg_attribute \
                   where attrelid = 'docs'::regclass and attname = 'body'";
    assert_eq!(text(&direct, type_of).await, "text");
    succeed(&[
        "offload",
        "docs.body",
        "-d",
        &database,
        "--threshold",
        "1KiB",
    ]);
    assert_eq!(text(&direct, type_of).await, "toastrack.text");
    fail(&["uninstall", "-d", &database], 1);
    fail(&["offload", "docs.nothing", "-d", &database], 1);

    let serving = Serving::start(&config);
    let (host, port) = serving.proxy.split_once(':').unwrap();
    let through = connect(&format!("host={host} port={port} user=postgres dbname=app")).await;
    let value = "caf\u{e9} ".repeat(1000);
    through
        .execute("insert into docs values (1, $1, $2)", &[&value, &value])
        .await
        .unwrap();
    let body = "select body from docs";
    assert_eq!(text(&through, body).await, value);
    // In the row stands a reference, and SQL in the server sees the value all the same.
    let size = "select pg_column_size(body)::text from docs";
    assert_eq!(text(&direct, size).await, "63");
    assert_eq!(
        text(&direct, "select (body = note)::text from docs").await,
        "true"
    );

    assert!(serving.get("/healthz", None).0.contains("200"));
    assert!(serving.get("/readyz", None).0.contains("200"));
    assert!(serving.get("/api/v1/stats", None).0.contains("401"));
    let token_file = directory.path().join("admin-token");
    let mode = fs::metadata(&token_file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let token = fs::read_to_string(&token_file).unwrap();
    let (_, stats) = serving.get("/api/v1/stats", Some(token.trim()));
    let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
    assert_eq!(stats["columns"][0]["values_offloaded"], 1, "{stats}");
    assert_eq!(stats["resolver"]["values_resolved"], 1, "{stats}");
    assert_eq!(stats["proxy"]["values_resolved"], 1, "{stats}");

    let refused = run(&["restore", "docs.body", "-d", &database]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(said.contains("cannot, because:\n    1 "), "{said}");
    assert_eq!(serving.stop().code(), Some(0));

    direct.execute("delete from docs", &[]).await.unwrap();
    succeed(&["restore", "docs.body", "-d", &database]);
    assert_eq!(text(&direct, type_of).await, "text");
    succeed(&["uninstall", "-d", &database]);
}

/// A store that is in use is refused, and so is an address that is taken; each says so.
#[tokio::test(flavor = "multi_thread")]
async fn second_instance_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    // There is no server: the sidecar starts all the same, and is not ready.
    let config = write_config(directory.path(), "/nonexistent/.s.PGSQL.1", "");
    let first = Serving::start(&config);
    assert!(first.get("/healthz", None).0.contains("200"));
    assert!(first.get("/readyz", None).0.contains("503"));
    let said = fail(&["serve", "--config", config.to_str().unwrap()], 1);
    assert!(said.contains("store"), "{said}");

    let other = tempfile::tempdir().unwrap();
    let config = write_config(other.path(), "/nonexistent/.s.PGSQL.1", "");
    let taken = format!("address = \"{}\"", first.proxy);
    let text = fs::read_to_string(&config).unwrap();
    fs::write(
        &config,
        text.replacen("address = \"127.0.0.1:0\"", &taken, 1),
    )
    .unwrap();
    let said = fail(&["serve", "--config", config.to_str().unwrap()], 1);
    assert!(said.contains(&first.proxy), "{said}");
}

/// SIGTERM lets a transaction finish; the drain ends with the session.
#[tokio::test(flavor = "multi_thread")]
async fn drain_waits_for_a_transaction() {
    let cluster = Cluster::start().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let address = format!("127.0.0.1:{}", cluster.port());
    let config = write_config(directory.path(), &address, "");
    let mut serving = Serving::start(&config);
    let (host, port) = serving.proxy.split_once(':').unwrap();
    let mut through = connect(&format!("host={host} port={port} user=postgres")).await;
    through
        .batch_execute("create table t(v text)")
        .await
        .unwrap();
    let transaction = through.transaction().await.unwrap();
    transaction
        .execute("insert into t values ('a')", &[])
        .await
        .unwrap();
    signal(&serving.child, "TERM");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(serving.child.try_wait().unwrap().is_none());
    transaction
        .execute("insert into t values ('b')", &[])
        .await
        .unwrap();
    transaction.commit().await.unwrap();
    drop(through);
    assert_eq!(wait(&mut serving.child).code(), Some(0));
    let direct = connect(&cluster.connection_string("postgres")).await;
    assert_eq!(text(&direct, "select count(*)::text from t").await, "2");
}

/// A configuration with problems is not served; the problems are those of check-config.
#[test]
fn bad_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let config = write_config(directory.path(), "/x", "[cache]\nsize = 1.5\n");
    let path = config.to_str().unwrap();
    let served = run(&["serve", "--config", path]);
    let checked = run(&["check-config", path]);
    assert_eq!(served.status.code(), Some(1));
    assert_eq!(served.stderr, checked.stderr);
}

/// What would see references is named, and has to be accepted.
#[tokio::test(flavor = "multi_thread")]
async fn differences_have_to_be_accepted() {
    let cluster = Cluster::start().unwrap();
    let database = cluster.connection_string("postgres");
    succeed(&["install", "-d", &database]);
    let direct = connect(&database).await;
    direct
        .batch_execute(
            "create table docs(body text);
             create function log() returns trigger language plpgsql as
             $$ begin raise notice '%', row_to_json(new); return new; end $$;
             create trigger log before insert on docs for each row execute function log()",
        )
        .await
        .unwrap();
    let offload = ["offload", "docs.body", "-d", &database];
    let refused = run(&offload);
    assert_eq!(refused.status.code(), Some(1));
    let (plan, reason) = (
        String::from_utf8_lossy(&refused.stdout).into_owned(),
        String::from_utf8_lossy(&refused.stderr).into_owned(),
    );
    assert!(plan.contains("log"), "{plan}");
    assert!(reason.contains("--accept-differences"), "{reason}");
    let type_of = "select format_type(atttypid, null) from pg_attribute \
                   where attrelid = 'docs'::regclass and attname = 'body'";
    assert_eq!(text(&direct, type_of).await, "text");
    succeed(&[&offload[..], &["--accept-differences"]].concat());
    assert_eq!(text(&direct, type_of).await, "toastrack.text");
}
