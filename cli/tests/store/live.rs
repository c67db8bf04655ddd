//! The subcommands beside `toastrack serve` and writers at work, and the way back from a backup.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use toastrack_testkit::Cluster;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

use crate::closed::{flip, lines};
use crate::common::{run, succeed};
use crate::server::{Serving, write_config};

async fn connect(conninfo: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(conninfo, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn through(serving: &Serving) -> Client {
    let (host, port) = serving.proxy.split_once(':').unwrap();
    connect(&format!(
        "host={host} port={port} user=postgres dbname=postgres"
    ))
    .await
}

/// The value of a row; no two are the same.
fn value(id: i32) -> String {
    let mut state = id as u64 + 1;
    let mut text = format!("row {id}: ");
    while text.len() < 3000 + (id as usize * 37) % 9000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        text.push_str(&format!("{state:016x}"));
    }
    text
}

struct Rig {
    cluster: Cluster,
    database: String,
    directory: TempDir,
    config: PathBuf,
}

impl Rig {
    fn start() -> Rig {
        let cluster = Cluster::builder()
            .setting("wal_level", "replica")
            .start()
            .unwrap();
        let database = cluster.connection_string("postgres");
        cluster
            .execute(
                "postgres",
                "create table docs(id int primary key, body text, raw bytea, many text[])",
            )
            .unwrap();
        let directory = tempfile::tempdir().unwrap();
        let server = cluster.socket_path().display().to_string();
        let config = write_config(directory.path(), &server, "");
        let text = fs::read_to_string(&config).unwrap();
        let small = text.replacen("segment_size = \"4 MiB\"", "segment_size = \"1 MiB\"", 1);
        assert_ne!(small, text);
        fs::write(&config, small).unwrap();
        succeed(&["install", "-d", &database]);
        for column in ["docs.body", "docs.raw"] {
            succeed(&["offload", column, "-d", &database, "--threshold", "1KiB"]);
        }
        Rig {
            cluster,
            database,
            directory,
            config,
        }
    }

    fn store(&self) -> String {
        self.path("store")
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }
}

/// Writers that insert rows of their own until they are told to stop.
struct Load {
    tasks: Vec<JoinHandle<()>>,
    ended: Arc<AtomicBool>,
    /// The greatest id of each writer that was committed.
    committed: Vec<Arc<AtomicI32>>,
}

const WRITERS: i32 = 3;

impl Load {
    async fn start(serving: &Serving, first: i32) -> Load {
        let ended = Arc::new(AtomicBool::new(false));
        let mut load = Load {
            tasks: Vec::new(),
            ended: Arc::clone(&ended),
            committed: Vec::new(),
        };
        for writer in 0..WRITERS {
            let client = through(serving).await;
            let insert = client
                .prepare("insert into docs(id, body, raw) values ($1, $2, $3)")
                .await
                .unwrap();
            let (ended, committed) = (Arc::clone(&ended), Arc::new(AtomicI32::new(-1)));
            load.committed.push(Arc::clone(&committed));
            load.tasks.push(tokio::spawn(async move {
                for id in (first + writer..).step_by(WRITERS as usize) {
                    let body = value(id);
                    let raw = body.as_bytes()[..2000].to_vec();
                    client.execute(&insert, &[&id, &body, &raw]).await.unwrap();
                    committed.store(id, Ordering::SeqCst);
                    if ended.load(Ordering::SeqCst) {
                        return;
                    }
                }
            }));
        }
        load
    }

    /// Every id that is committed for certain.
    fn committed(&self) -> Vec<i32> {
        let greatest = self.committed.iter().map(|id| id.load(Ordering::SeqCst));
        let mut ids: Vec<i32> = (0..WRITERS)
            .zip(greatest)
            .flat_map(|(writer, last)| (writer..=last).step_by(WRITERS as usize))
            .collect();
        ids.sort_unstable();
        ids
    }

    async fn some(&self, more: usize) {
        let before = self.committed().len();
        while self.committed().len() < before + more {
            assert!(self.tasks.iter().all(|task| !task.is_finished()));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn stop(self) {
        self.ended.store(true, Ordering::SeqCst);
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}

/// Verifies the store and follows the references of a database.
fn verify<'a>(config: &'a str, database: &'a str) -> [&'a str; 6] {
    ["store", "verify", "--config", config, "-d", database]
}

fn verify_in_json<'a>(config: &'a str, database: &'a str) -> Vec<&'a str> {
    [&verify(config, database)[..], &["--json"]].concat()
}

/// Runs a command off the reactor, so that writers go on.
async fn command(args: &[&str]) -> (Option<i32>, String, String) {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    tokio::task::spawn_blocking(move || {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = run(&args);
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    })
    .await
    .unwrap()
}

/// Proves: beside writers at work `verify` finds no damage, in the store and in the rows, however
/// often it runs; then a flipped byte is reported with the row that it belongs to, and only that row.
#[tokio::test(flavor = "multi_thread")]
async fn verify_beside_a_server_at_work() {
    let rig = Rig::start();
    let serving = Serving::start(&rig.config);
    let load = Load::start(&serving, 0).await;
    load.some(50).await;
    let config = rig.config.display().to_string();
    for _ in 0..6 {
        let committed = load.committed().len();
        let (code, said, error) = command(&verify_in_json(&config, &rig.database)).await;
        assert_eq!(code, Some(0), "{said} {error}");
        let summary = lines(&said).pop().unwrap();
        assert!(summary["rows"]["references"].as_u64().unwrap() as usize >= 2 * committed);
        assert_eq!(summary["rows"]["damaged"], 0);
        let (code, said, error) = command(&["store", "stat", "--config", &config]).await;
        assert_eq!(code, Some(0), "{said} {error}");
    }
    load.stop().await;

    let direct = connect(&rig.database).await;
    // The array of a value that is in the store holds its reference.
    direct
        .batch_execute(
            "create table lists(id int primary key, many toastrack.text[]);
             create table keyless(body toastrack.text);
             insert into lists select 1, array_agg(body order by id) from docs where id in (7, 8);
             insert into keyless select body from docs where id = 7",
        )
        .await
        .unwrap();
    let listed = succeed(&["store", "dump", "--list", "--config", &config]);
    let spelled: String = direct
        .query_one(
            "select toastrack.spelling(body) from docs where id = 7",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    let listed = lines(&listed);
    let chunk = listed.iter().find(|line| line["reference"] == *spelled);
    let chunk = chunk.unwrap();
    let segment = u32::from_str_radix(chunk["segment"].as_str().unwrap(), 16).unwrap();
    let offset = chunk["offset"].as_u64().unwrap();
    flip(rig.store().as_ref(), segment, offset + 300);
    let (code, said, error) = command(&verify(&config, &rig.database)).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(error.contains("3 values in rows"), "{error}");
    let rows: Vec<&str> = said.lines().filter(|l| l.starts_with("row: ")).collect();
    let place = format!("segment {segment:08x} at offset {offset}");
    assert_eq!(rows.len(), 3, "{said}");
    assert!(rows.iter().all(|row| row.contains(&place)), "{said}");
    for row in [
        "public.docs.body (id)=(7): ",
        "public.keyless.body ctid (0,1): ",
        "public.lists.many (id)=(1): ",
    ] {
        assert!(said.contains(row), "{row} {said}");
    }
    let (_, said, _) = command(&verify_in_json(&config, &rig.database)).await;
    let rows: Vec<_> = lines(&said)
        .into_iter()
        .filter(|line| line["event"] == "row")
        .collect();
    assert_eq!(rows.len(), 3);
    let docs = rows.iter().find(|row| row["table"] == "docs").unwrap();
    assert_eq!(docs["key"]["id"], "7");
    assert_eq!(docs["offset"], offset);
    serving.stop();
}

/// What `pg_basebackup` does, which not every installation of a server has.
async fn base_backup(rig: &Rig, to: &Path) {
    let client = connect(&rig.database).await;
    client
        .execute("select pg_backup_start('toastrack', true)", &[])
        .await
        .unwrap();
    let data = rig.cluster.data_dir().to_owned();
    copy_changing(&data, to);
    let row = client
        .query_one("select labelfile from pg_backup_stop(false)", &[])
        .await
        .unwrap();
    fs::write(to.join("backup_label"), row.get::<_, &str>(0)).unwrap();
    // The log up to the end of the backup, complete now.
    fs::remove_dir_all(to.join("pg_wal")).unwrap();
    copy_changing(&data.join("pg_wal"), &to.join("pg_wal"));
    let _ = fs::remove_file(to.join("postmaster.pid"));
}

/// Copies files that may come, go and change meanwhile.
fn copy_changing(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    let mode = fs::metadata(from).unwrap().permissions();
    fs::set_permissions(to, mode).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => copy_changing(&source, &target),
            Ok(kind) if kind.is_file() => match fs::copy(&source, &target) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                copied => {
                    copied.unwrap();
                }
            },
            Ok(_) | Err(_) => {}
        }
    }
}

/// Proves the documented backup and restore: base backup of the server, then the snapshot, both while
/// rows are written; then both are destroyed and restored, and every row of the base backup reads back
/// through the sidecar. `verify --database` agrees.
#[tokio::test(flavor = "multi_thread")]
async fn restored_from_a_backup() {
    let mut rig = Rig::start();
    let serving = Serving::start(&rig.config);
    let load = Load::start(&serving, 0).await;
    load.some(60).await;
    let before = load.committed();
    let backup = rig.cluster.base_dir().join("backup");
    base_backup(&rig, &backup).await;
    load.some(20).await;
    let config = rig.config.display().to_string();
    let snapshot = rig.path("snapshot");
    let (code, said, error) = command(&["store", "snapshot", &snapshot, "--config", &config]).await;
    assert_eq!(code, Some(0), "{said} {error}");
    load.some(60).await;
    load.stop().await;
    assert!(serving.stop().success());

    // Everything is lost.
    rig.cluster.stop().unwrap();
    fs::remove_dir_all(rig.store()).unwrap();
    let data = rig.cluster.data_dir().to_owned();
    fs::remove_dir_all(&data).unwrap();

    // The restore, as documented.
    fs::rename(&backup, &data).unwrap();
    let (uid, gid) = rig.cluster.server_uid_gid();
    let owner = Command::new("chown")
        .args(["-R", &format!("{uid}:{gid}")])
        .arg(&data)
        .status();
    assert!(owner.unwrap().success());
    fs::rename(&snapshot, rig.store()).unwrap();
    rig.cluster.restart().unwrap();
    let serving = Serving::start(&rig.config);
    let client = through(&serving).await;
    let rows = client
        .query("select id, body, raw from docs order by id", &[])
        .await
        .unwrap();
    let mut ids = Vec::new();
    for row in rows {
        let id: i32 = row.get(0);
        let body = value(id);
        assert_eq!(row.get::<_, &str>(1), body);
        assert_eq!(row.get::<_, &[u8]>(2), &body.as_bytes()[..2000]);
        ids.push(id);
    }
    assert!(before.iter().all(|id| ids.binary_search(id).is_ok()));
    let (code, said, error) = command(&verify(&config, &rig.database)).await;
    assert_eq!(code, Some(0), "{said} {error}");
    // And it goes on.
    let id = i32::MAX;
    client
        .execute(
            "insert into docs(id, body) values ($1, $2)",
            &[&id, &value(5)],
        )
        .await
        .unwrap();
    serving.stop();
}

/// Proves: a snapshot alone, put in place of a store that was destroyed, has every row that was
/// committed before it was taken; rows from after it are named by `verify`, all of them and no others.
#[tokio::test(flavor = "multi_thread")]
async fn rows_from_after_a_snapshot_are_named() {
    let rig = Rig::start();
    let serving = Serving::start(&rig.config);
    let load = Load::start(&serving, 0).await;
    load.some(40).await;
    let before = load.committed();
    let config = rig.config.display().to_string();
    let snapshot = rig.path("snapshot");
    let (code, said, error) = command(&["store", "snapshot", &snapshot, "--config", &config]).await;
    assert_eq!(code, Some(0), "{said} {error}");
    load.some(40).await;
    load.stop().await;
    assert!(serving.stop().success());
    fs::remove_dir_all(rig.store()).unwrap();
    fs::rename(&snapshot, rig.store()).unwrap();

    let (code, said, _) = command(&verify_in_json(&config, &rig.database)).await;
    assert_eq!(code, Some(1));
    let mut lost: Vec<i32> = lines(&said)
        .iter()
        .filter(|line| line["event"] == "row" && line["column"] == "body")
        .map(|line| line["key"]["id"].as_str().unwrap().parse().unwrap())
        .collect();
    lost.sort_unstable();
    assert!(lost.len() >= 30, "{}", lost.len());
    assert!(before.iter().all(|id| lost.binary_search(id).is_err()));

    let serving = Serving::start(&rig.config);
    let client = through(&serving).await;
    let ids = client
        .query("select id from docs order by id", &[])
        .await
        .unwrap();
    let mut read = 0;
    for id in ids.iter().map(|row| row.get::<_, i32>(0)) {
        let body = client
            .query_one("select body from docs where id = $1", &[&id])
            .await;
        match (body, lost.binary_search(&id).is_ok()) {
            (Ok(row), false) => {
                assert_eq!(row.get::<_, &str>(0), value(id));
                read += 1;
            }
            (Err(error), true) => {
                assert_eq!(error.code().unwrap().code(), "XX001", "{error}");
            }
            (body, lost) => panic!("row {id}: lost {lost}, read {}", body.is_ok()),
        }
    }
    assert!(read >= before.len());
    serving.stop();
}
