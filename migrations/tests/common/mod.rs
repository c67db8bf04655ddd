//! One private cluster for each test binary, with a database for each test.

#![allow(
    dead_code,
    reason = "each test binary uses its own part of this module"
)]

pub(crate) mod sidecar;
pub(crate) mod twins;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use toastrack_migrations::{ServerSettings, install};
use toastrack_testkit::Cluster;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// The cluster of this test binary. It is in a static and so never dropped; its watcher removes it when the
/// process has ended.
pub(crate) fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        Cluster::builder()
            .setting("max_parallel_workers_per_gather", "0")
            .setting("wal_level", "logical")
            .start()
            .unwrap()
    })
}

/// A new empty database.
pub(crate) async fn empty_database() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let admin = connect("postgres").await;
    // Two at a time would find template1 in use.
    static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _guard = ONE_AT_A_TIME.lock().await;
    admin
        .batch_execute(&format!("CREATE DATABASE {name}"))
        .await
        .unwrap();
    name
}

/// A connection to `database` as the superuser.
pub(crate) async fn connect(database: &str) -> Client {
    connect_with(&cluster().connection_string(database)).await
}

/// A connection with this connection string.
pub(crate) async fn connect_with(conninfo: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(conninfo, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A connection to a new database with the schema installed and nothing registered.
pub(crate) async fn installed() -> Client {
    let database = empty_database().await;
    let mut client = connect(&database).await;
    install(&mut client, &ServerSettings::default())
        .await
        .unwrap();
    client
}

/// The rows of the last statement, each as its fields' texts joined by `|`; NULL is `∅`.
pub(crate) async fn rows(client: &Client, sql: &str) -> Vec<String> {
    try_rows(client, sql)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// As [`rows`], with the server's error as `SQLSTATE message`.
pub(crate) async fn try_rows(client: &Client, sql: &str) -> Result<Vec<String>, String> {
    let messages = client
        .simple_query(sql)
        .await
        .map_err(|error| match error.as_db_error() {
            Some(server) => format!("{} {}", server.code().code(), server.message()),
            None => error.to_string(),
        })?;
    Ok(messages
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(
                (0..row.len())
                    .map(|index| row.get(index).unwrap_or("∅").to_owned())
                    .collect::<Vec<_>>()
                    .join("|"),
            ),
            _ => None,
        })
        .collect())
}

/// The one field of the one row.
pub(crate) async fn one(client: &Client, sql: &str) -> String {
    let found = rows(client, sql).await;
    assert_eq!(found.len(), 1, "{sql}: {found:?}");
    found.into_iter().next().unwrap()
}

/// The error of a statement that has to fail.
pub(crate) async fn failure(client: &Client, sql: &str) -> String {
    match try_rows(client, sql).await {
        Ok(found) => panic!("{sql} did not fail: {found:?}"),
        Err(error) => error,
    }
}

/// A new directory that the server can be let into; removed with the cluster.
pub(crate) fn server_directory(name: &str) -> std::path::PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = cluster().base_dir().join(format!("{name} {number}"));
    std::fs::create_dir(&path).unwrap();
    path
}

/// Makes the directory and all in it the server's.
pub(crate) fn give_to_server(path: &std::path::Path) {
    let (uid, gid) = cluster().server_uid_gid();
    std::os::unix::fs::chown(path, Some(uid), Some(gid)).unwrap();
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            give_to_server(&entry.unwrap().path());
        }
    }
}
