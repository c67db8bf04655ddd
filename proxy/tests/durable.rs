//! S3: the value behind a reference is durable before the reference can become visible.

mod common;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::disk::{HookedDisk, Hooks};
use common::{DiskOf, Rig, RigOptions};
use parking_lot::{Condvar, Mutex};
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{Client, Error};

/// A real disk whose `fdatasync` of segments returns when the test lets it.
static GATE: Gate = Gate {
    state: Mutex::new(State {
        closed: false,
        fail: false,
        waiting: 0,
    }),
    changed: Condvar::new(),
};

struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    closed: bool,
    /// What comes through fails.
    fail: bool,
    waiting: usize,
}

const PATIENCE: Duration = Duration::from_secs(20);
/// How long something that must not happen is waited for.
const QUIET: Duration = Duration::from_millis(300);

impl Gate {
    fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.fail = false;
    }

    fn open(&self, fail: bool) {
        let mut state = self.state.lock();
        state.closed = false;
        state.fail = fail;
        self.changed.notify_all();
    }

    fn pass(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        state.waiting += 1;
        while state.closed {
            self.changed.wait(&mut state);
        }
        state.waiting -= 1;
        if state.fail {
            return Err(io::Error::other("the test says so"));
        }
        Ok(())
    }

    fn is_waited_at(&self) -> bool {
        self.state.lock().waiting > 0
    }
}

/// Opens the gate when a test fails, so that the store behind it can be closed.
struct OpenAtEnd;

impl Drop for OpenAtEnd {
    fn drop(&mut self) {
        GATE.open(false);
    }
}

/// Proves: while the `fdatasync` for a value has not returned, no row that refers to it can be seen,
/// whichever way the value came in; once it has, the row is there and holds a reference.
///
/// It fails without the wait in the proxy's outbox: the statement then reaches the server while the
/// gate is closed, and the first look at the table finds the row.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_row_is_visible_only_once_its_value_is_durable() {
    let rig = gated_rig().await;
    let _open_at_end = OpenAtEnd;
    let direct = rig.direct().await;
    let clients = [rig.through().await, rig.through().await];
    let text = "insert into docs values ($1, $2)";
    let prepared = clients[0].prepare(text).await.expect("prepares");
    for (id, way) in [
        Way::Parameter,
        Way::Literal,
        Way::WholeTransaction,
        Way::BehindOthers,
        Way::SharedWithAnother,
    ]
    .into_iter()
    .enumerate()
    {
        let id = id as i32;
        let value = format!("{way:?} ").repeat(500);
        let literal = format!("insert into docs values ({id}, '{value}')");
        let params: [&(dyn ToSql + Sync); 2] = [&id, &value];
        GATE.close();
        let write = async {
            match way {
                Way::Parameter => clients[0].execute(&prepared, &params).await.map(drop),
                Way::Literal => clients[0].batch_execute(&literal).await,
                Way::WholeTransaction => {
                    let whole = format!("begin; {literal}; commit");
                    clients[0].batch_execute(&whole).await
                }
                // In one batch with statements that have nothing to wait for.
                Way::BehindOthers => {
                    let before = clients[0].batch_execute("select 1");
                    let insert = clients[0].execute(&prepared, &params);
                    let after = clients[0].batch_execute("select 2");
                    let (_, inserted, _) = tokio::join!(before, insert, after);
                    inserted.map(drop)
                }
                // The second finds the value in the store, but not durable yet.
                Way::SharedWithAnother => {
                    let other = format!("insert into docs values ({}, '{value}')", id + 100);
                    let first = clients[0].execute(&prepared, &params);
                    let second = clients[1].batch_execute(&other);
                    let (first, second) = tokio::join!(first, second);
                    first.and(second.map(|()| 0)).map(drop)
                }
            }
        };
        let watch = async {
            assert_invisible(&direct, id, &format!("{way:?}")).await;
            GATE.open(false);
        };
        let (written, ()) = tokio::join!(write, watch);
        written.unwrap_or_else(|error| panic!("{way:?}: {error}"));
        let expected = if matches!(way, Way::SharedWithAnother) {
            2
        } else {
            1
        };
        let rows = rows(&direct, id).await;
        assert_eq!(rows.len(), expected, "{way:?}");
        for row in rows {
            assert!(row.starts_with("toast:"), "{way:?}: {row}");
        }
        assert_eq!(value_of(&clients[1], id).await.expect("reads"), value);
    }
    assert_eq!(rig.store.stats().dedup_hits, 1);
    failed_sync(&rig, &direct, &clients[0]).await;
    rig.stop().await;
}

/// Proves: when the sync fails after all, the row comes to hold the value itself (S2), and not before
/// the failure is known.
async fn failed_sync(rig: &Rig, direct: &Client, client: &Client) {
    let value = "not durable ".repeat(500);
    GATE.close();
    let literal = format!("insert into docs values (50, '{value}')");
    let watch = async {
        assert_invisible(direct, 50, "failed sync").await;
        GATE.open(true);
    };
    let (written, ()) = tokio::join!(client.batch_execute(&literal), watch);
    written.expect("it stays inline");
    assert_eq!(rows(direct, 50).await, [value.as_str()]);
    assert_eq!(rig.store.stats().write_failures, 1);
    GATE.open(false);
}

/// Looks at the table until a sync has waited at the gate for some time.
async fn assert_invisible(direct: &Client, id: i32, what: &str) {
    let started = Instant::now();
    let mut waited_at = None;
    while waited_at.is_none_or(|since: Instant| since.elapsed() < QUIET) {
        let rows = rows(direct, id).await;
        assert!(rows.is_empty(), "{what}: visible before it is durable");
        assert!(started.elapsed() < PATIENCE, "{what}: no sync has begun");
        if GATE.is_waited_at() {
            waited_at.get_or_insert_with(Instant::now);
        }
    }
}

/// How a value gets into a row.
#[derive(Debug, Clone, Copy)]
enum Way {
    Parameter,
    Literal,
    WholeTransaction,
    BehindOthers,
    SharedWithAnother,
}

async fn gated_rig() -> Rig {
    let disk: DiskOf = |directory| {
        let sync: fn(&str) -> io::Result<()> = |name| match name.starts_with("segments/") {
            true => GATE.pass(),
            false => Ok(()),
        };
        let hooks = Hooks {
            sync,
            ..Hooks::default()
        };
        Arc::new(HookedDisk::new(directory, hooks))
    };
    let rig = Rig::with(RigOptions {
        disk: Some(disk),
        ..RigOptions::default()
    })
    .await;
    let created = rig
        .direct()
        .await
        .batch_execute("create table docs(id int, body toastrack.text)")
        .await;
    created.expect("creates");
    rig
}

/// What stands in the rows `id` and `id + 100`, as plain Postgres sees it.
async fn rows(direct: &Client, id: i32) -> Vec<String> {
    let text = "select body from docs where id in ($1, $1 + 100)";
    let rows = direct.query(text, &[&id]).await.expect("reads");
    rows.iter().map(|row| row.get::<_, Raw>(0).0).collect()
}

async fn value_of(client: &Client, id: i32) -> Result<String, Error> {
    let row = client
        .query_one("select body from docs where id = $1", &[&id])
        .await?;
    Ok(row.get(0))
}

/// A field as it stands, whatever its type is called.
struct Raw(String);

impl<'a> FromSql<'a> for Raw {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Raw, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Raw(String::from_utf8(raw.to_vec())?))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}
