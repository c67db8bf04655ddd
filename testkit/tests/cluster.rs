//! Private clusters start, differ, restart on their port, and leave nothing behind.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use toastrack_testkit::{Cluster, TestkitError};

async fn text(conninfo: &str, sql: &str) -> String {
    let (client, connection) = tokio_postgres::connect(conninfo, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client.query_one(sql, &[]).await.unwrap().get(0)
}

fn runs(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn eventually(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Two clusters at once have ports and data of their own, over TCP and socket,
/// and a dropped cluster leaves neither process nor directory.
#[tokio::test]
async fn clusters_are_apart_and_are_removed() {
    let (first, second) = (Cluster::start().unwrap(), Cluster::start().unwrap());
    assert_ne!(first.port(), second.port());
    first.create_database("only \"here\"").unwrap();
    let name = text(
        &first.socket_connection_string("only \"here\""),
        "select current_database()::text",
    )
    .await;
    assert_eq!(name, "only \"here\"");
    let error = second.execute("only \"here\"", "select 1").unwrap_err();
    assert!(matches!(error, TestkitError::Statement { .. }), "{error}");
    assert!(error.to_string().contains("3D000"), "{error}");

    let reported = text(
        &first.connection_string("postgres"),
        "select current_setting('server_version_num')",
    )
    .await;
    assert_eq!(reported, first.version_num().to_string());

    let pid = first.server_pid().unwrap();
    let directory = first.base_dir().to_path_buf();
    assert!(runs(pid) && directory.exists());
    drop(first);
    assert!(!runs(pid) && !directory.exists());
}

/// Settings, access rules, the password and the durability reach the server.
#[tokio::test]
async fn settings_reach_the_server() {
    let cluster = Cluster::builder()
        .setting("wal_level", "logical")
        .setting("application_name", "it's")
        .hba_line("host all all 127.0.0.1/32 scram-sha-256")
        .superuser_password("o'pen sesame")
        .durable(true)
        .start()
        .unwrap();
    let conninfo = cluster.connection_string("postgres");
    assert_eq!(text(&conninfo, "show wal_level").await, "logical");
    assert_eq!(text(&conninfo, "show fsync").await, "on");
    let wrong = format!(
        "host=127.0.0.1 port={} user=postgres password=no",
        cluster.port()
    );
    let refused = tokio_postgres::connect(&wrong, tokio_postgres::NoTls).await;
    let error = refused.err().unwrap();
    assert_eq!(error.code().unwrap().code(), "28P01");
}

/// Committed rows outlive an immediate stop, and the port stays the same.
#[tokio::test]
async fn restart_keeps_rows_and_port() {
    let mut cluster = Cluster::start().unwrap();
    let port = cluster.port();
    cluster
        .execute("postgres", "create table t as select 'kept' as v")
        .unwrap();
    cluster.stop_immediate().unwrap();
    assert_eq!(cluster.server_pid(), None);
    assert!(cluster.execute("postgres", "select 1").is_err());
    cluster.restart().unwrap();
    assert_eq!(cluster.port(), port);
    let conninfo = cluster.connection_string("postgres");
    assert_eq!(text(&conninfo, "select v from t").await, "kept");
}

/// A directory too deep for a socket gets its socket elsewhere.
#[tokio::test]
async fn deep_directory_has_a_short_socket() {
    let deep = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .prefix(&"d".repeat(100))
        .tempdir()
        .unwrap();
    let cluster = Cluster::builder().directory(deep.path()).start().unwrap();
    assert!(cluster.data_dir().starts_with(deep.path()));
    let conninfo = cluster.socket_connection_string("postgres");
    assert_eq!(text(&conninfo, "show fsync").await, "off");
    let socket_dir = cluster.socket_dir().to_path_buf();
    drop(cluster);
    assert!(!socket_dir.exists());
}

/// A server that cannot start reports the end of its log.
#[test]
fn bad_setting_reports_the_log() {
    let error = Cluster::builder()
        .setting("no_such_setting", "1")
        .start()
        .unwrap_err();
    assert!(matches!(error, TestkitError::ServerEnded { .. }), "{error}");
    assert!(error.to_string().contains("no_such_setting"), "{error}");
}

/// A process killed with SIGKILL leaves no server: this test runs itself again
/// as that process, reads where its cluster is, and kills it.
#[test]
fn killed_owner_leaves_nothing() {
    if let Some(report) = std::env::var_os("TOASTRACK_TESTKIT_VICTIM") {
        let cluster = Cluster::start().unwrap();
        let pid = cluster.server_pid().unwrap();
        std::fs::write(&report, format!("{pid} {}\n", cluster.base_dir().display())).unwrap();
        std::thread::sleep(Duration::from_secs(600));
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("report");
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed_owner_leaves_nothing"])
        .env("TOASTRACK_TESTKIT_VICTIM", &report)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let read = || std::fs::read_to_string(&report).unwrap_or_default();
    eventually("the victim reports its cluster", || read().ends_with('\n'));
    let line = read();
    let (pid, base) = line.trim().split_once(' ').unwrap();
    let pid: u32 = pid.parse().unwrap();
    assert!(runs(pid));
    victim.kill().unwrap();
    victim.wait().unwrap();
    eventually("the watcher stops the server", || !runs(pid));
    eventually("the watcher removes the directory", || {
        !Path::new(base).exists()
    });
}
