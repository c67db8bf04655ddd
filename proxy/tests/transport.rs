//! Unix sockets between clients and the proxy.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use common::{Rig, RigOptions};
use toastrack_proxy::UnixListen;

/// A rig that listens in a directory of its own.
async fn unix_rig(directory: &tempfile::TempDir) -> Rig {
    let path = directory.path().to_path_buf();
    Rig::with(RigOptions {
        adjust: Some(Box::new(|options, _| {
            options.listen_unix = Some(UnixListen { path, mode: 0o700 });
        })),
        ..RigOptions::default()
    })
    .await
}

/// Proves that psql and a driver find the socket by directory and port, that values go in and come
/// back over it as over TCP, that a cancel request works over it, and that the file is private and
/// gone with the proxy.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_over_a_unix_socket() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = unix_rig(&directory).await;
    let file = directory.path().join(format!(".s.PGSQL.{}", rig.port));
    let mode = std::fs::metadata(&file).expect("a socket").permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);

    let host = directory.path().display().to_string();
    let conninfo = format!(
        "host={host} port={} user=postgres dbname=postgres",
        rig.port
    );
    let client = common::connect(&conninfo).await;
    client
        .batch_execute("create table docs(id int, body toastrack.text)")
        .await
        .expect("creates");
    let body = "u".repeat(3_000_000);
    client
        .execute("insert into docs values (1, $1)", &[&body])
        .await
        .expect("inserts");
    let tcp = rig.through().await;
    for client in [&client, &tcp] {
        let row = client.query_one("select body from docs", &[]).await;
        assert_eq!(row.expect("reads").get::<_, String>(0), body);
    }

    let psql = |through: &str, port: u16| {
        let sql = "select id, md5(body), body from docs";
        let output = Command::new("psql")
            .args(["-X", "-A", "-U", "postgres", "-d", "postgres", "-c", sql])
            .args(["-h", through, "-p", &port.to_string()])
            .output()
            .expect("psql runs");
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    assert_eq!(psql(&host, rig.port), psql("127.0.0.1", rig.port));

    let cancel = client.cancel_token();
    let sleeping = tokio::spawn(async move { client.batch_execute("select pg_sleep(60)").await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    cancel
        .cancel_query(tokio_postgres::NoTls)
        .await
        .expect("cancels");
    let ended = sleeping.await.expect("no panic").expect_err("is cancelled");
    assert_eq!(ended.code().map(|code| code.code()), Some("57014"));
    rig.stop().await;
    assert!(!file.exists(), "the socket file is left");
}

/// Proves that a socket that another proxy listens on is not taken from it.
#[tokio::test(flavor = "multi_thread")]
async fn a_live_socket_is_not_taken() {
    let directory = tempfile::tempdir().expect("a directory");
    let rig = unix_rig(&directory).await;
    let path = directory.path().join(format!(".s.PGSQL.{}", rig.port));
    let taken = rig.another(|options| {
        options.listen_unix = Some(UnixListen {
            path: path.clone(),
            mode: 0o700,
        });
    });
    let error = taken.await.err().expect("is refused").to_string();
    assert!(
        error.contains(&path.display().to_string()) && error.contains("another process listens"),
        "{error}"
    );
    let conninfo = format!(
        "host={} port={} user=postgres dbname=postgres",
        directory.path().display(),
        rig.port
    );
    let client = common::connect(&conninfo).await;
    client.batch_execute("select 1").await.expect("answers");
    rig.stop().await;
}
