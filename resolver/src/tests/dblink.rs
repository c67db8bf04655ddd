//! With dblink, inside a private Postgres.

use std::time::Instant;

use toastrack_testkit::Cluster;
use tokio_postgres::{Client, NoTls};

use super::{Running, SECRET, value};
use crate::{Limits, ResolverListen, USER};

async fn superuser(cluster: &Cluster, database: &str) -> Client {
    let conninfo = cluster.connection_string(database);
    let (client, connection) = tokio_postgres::connect(&conninfo, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
        .batch_execute("create extension if not exists dblink")
        .await
        .unwrap();
    client
}

fn call(argument: &str) -> String {
    format!("select v from dblink('r', $$select toastrack.resolve('{argument}')$$) as t(v bytea)")
}

/// Proves that dblink logs in with SCRAM and gets values and SQLSTATEs, over TCP, from a database
/// in UTF8 and from one in another encoding, for which libpq first asks to change encodings.
#[tokio::test(flavor = "multi_thread")]
async fn dblink_gets_values_and_errors() {
    let cluster = Cluster::start().unwrap();
    cluster
        .execute(
            "postgres",
            "create database latin1 template template0 encoding 'LATIN1' lc_collate 'C' lc_ctype 'C'",
        )
        .unwrap();
    let running = Running::start(Limits::default()).await;
    for database in ["postgres", "latin1"] {
        let client = superuser(&cluster, database).await;
        let connect = format!("select dblink_connect('r', '{}')", running.conninfo());
        client.batch_execute(&connect).await.unwrap();
        for len in [0, 1, 10_000, 1 << 20] {
            let row = client.query_one(&call(&format!("len:{len}")), &[]).await;
            let found: Vec<u8> = row.unwrap().get(0);
            assert!(found == value(len), "{database} {len}");
        }
        for (argument, expected) in [
            ("corrupt", "XX001"),
            ("io", "58030"),
            ("toast:whatever", "TR001"),
        ] {
            let error = client.query(&call(argument), &[]).await.unwrap_err();
            assert_eq!(error.code().unwrap().code(), expected);
            let row = client.query_one(&call("len:5"), &[]).await.unwrap();
            assert_eq!(row.get::<_, Vec<u8>>(0), value(5));
        }
        client
            .batch_execute("select dblink_disconnect('r')")
            .await
            .unwrap();
    }
}

/// Proves that dblink with a wrong secret is told so and that the same session can try again.
#[tokio::test(flavor = "multi_thread")]
async fn dblink_with_a_wrong_secret_is_refused() {
    let cluster = Cluster::start().unwrap();
    let running = Running::start(Limits::default()).await;
    let client = superuser(&cluster, "postgres").await;
    let wrong = running.conninfo_as(USER, "not-the-secret-at-all");
    let error = client
        .batch_execute(&format!("select dblink_connect('r', '{wrong}')"))
        .await
        .unwrap_err();
    let detail = error
        .as_db_error()
        .unwrap()
        .detail()
        .unwrap_or_default()
        .to_owned();
    assert!(
        detail.contains("password authentication failed"),
        "{error:?}"
    );
    assert_eq!(running.stats().logins_refused, 1);
    let right = running.conninfo_as(USER, SECRET);
    client
        .batch_execute(&format!("select dblink_connect('r', '{right}')"))
        .await
        .unwrap();
}

/// Proves that dblink over the Unix socket works for a server of another user, through the group.
#[tokio::test(flavor = "multi_thread")]
async fn dblink_over_the_unix_socket() {
    let cluster = Cluster::start().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (_, gid) = cluster.server_uid_gid();
    std::os::unix::fs::chown(directory.path(), None, Some(gid)).unwrap();
    let passable = std::os::unix::fs::PermissionsExt::from_mode(0o750);
    std::fs::set_permissions(directory.path(), passable).unwrap();
    let address = ResolverListen::Unix {
        directory: directory.path().to_owned(),
        port: 6434,
        group_id: Some(gid),
    };
    let running = Running::start_at(address, Limits::default()).await;
    let client = superuser(&cluster, "postgres").await;
    let connect = format!("select dblink_connect('r', '{}')", running.conninfo());
    client.batch_execute(&connect).await.unwrap();
    let row = client.query_one(&call("len:9"), &[]).await.unwrap();
    assert_eq!(row.get::<_, Vec<u8>>(0), value(9));
}

/// Measures calls through dblink on one named connection, and the same calls to Postgres itself,
/// which answers a constant. Run with
/// `cargo test --release -p toastrack-resolver --lib -- --ignored --nocapture speed`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement, not a proof"]
async fn speed_of_calls_through_dblink() {
    let cluster = Cluster::start().unwrap();
    let directory = tempfile::tempdir_in(cluster.socket_dir()).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    let unix = ResolverListen::Unix {
        directory: directory.path().to_owned(),
        port: 6434,
        group_id: Some(cluster.server_uid_gid().1),
    };
    let tcp = ResolverListen::Tcp("127.0.0.1:0".parse().unwrap());
    let unix = Running::start_at(unix, Limits::default()).await;
    let tcp = Running::start_at(tcp, Limits::default()).await;
    let client = superuser(&cluster, "postgres").await;
    let ours = |len: usize| call(&format!("len:{len}"));
    let theirs = |len: usize| {
        format!("select v from dblink('r', 'select repeat(''x'', {len})::bytea') as t(v bytea)")
    };
    for round in 1..=3 {
        for (name, conninfo, query) in [
            ("unix", unix.conninfo(), &ours as &dyn Fn(usize) -> String),
            ("tcp", tcp.conninfo(), &ours),
            (
                "postgres, unix",
                cluster.socket_connection_string("postgres"),
                &theirs,
            ),
            (
                "postgres, tcp",
                cluster.connection_string("postgres"),
                &theirs,
            ),
        ] {
            let start = Instant::now();
            client
                .execute("select dblink_connect('r', $1)", &[&conninfo])
                .await
                .unwrap();
            println!("round {round}, {name}: log-in {:?}", start.elapsed());
            for (len, calls) in [(100, 2_000), (8_192, 2_000), (65_536, 500), (1 << 20, 50)] {
                let into = query(len).replacen("select v from", "select t.v into v from", 1);
                let looped = format!(
                    "do $do$ declare v bytea; begin for i in 1..{calls} loop {into}; end loop; end $do$"
                );
                let start = Instant::now();
                client.batch_execute(&looped).await.unwrap();
                let each = start.elapsed() / calls;
                println!("round {round}, {name}: {len} bytes, {each:?} a call");
            }
            client
                .batch_execute("select dblink_disconnect('r')")
                .await
                .unwrap();
        }
    }
}
