//! A store that fails: values stay inline, and nothing is said to be kept that is not (S2, S3).

mod common;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use common::disk::{HookedDisk, Hooks};
use common::raw::{self, Raw, sqlstate};
use common::values::named;
use common::{DiskOf, Rig, RigOptions};

/// What the disk refuses now.
static FAIL_WRITES: AtomicBool = AtomicBool::new(false);
/// How many batches to fail; making segments always works.
static SYNCS_TO_FAIL: AtomicU64 = AtomicU64::new(0);
static SYNC_DELAY_MS: AtomicU64 = AtomicU64::new(0);
static SYNCS_ENDED: AtomicU64 = AtomicU64::new(0);

/// One test at a time, since there is one disk.
static DISK: Mutex<()> = Mutex::new(());

static RIG: LazyLock<Rig> = LazyLock::new(|| {
    let disk: DiskOf = |directory| {
        let synced: fn(&str) = |_| {
            SYNCS_ENDED.fetch_add(1, Ordering::SeqCst);
        };
        let hooks = Hooks {
            write,
            sync,
            synced,
        };
        Arc::new(HookedDisk::new(directory, hooks))
    };
    let rig = Rig::shared(RigOptions {
        disk: Some(disk),
        ..RigOptions::default()
    });
    rig.raw_through("postgres")
        .query("create table docs(id serial, body toastrack.text, d toastrack.jsonb)");
    rig
});

fn write(_: &str) -> io::Result<()> {
    if FAIL_WRITES.load(Ordering::SeqCst) {
        return Err(io::Error::from(io::ErrorKind::StorageFull));
    }
    Ok(())
}

fn sync(_: &str) -> io::Result<()> {
    std::thread::sleep(Duration::from_millis(SYNC_DELAY_MS.load(Ordering::SeqCst)));
    let left = |left: u64| left.checked_sub(1);
    match SYNCS_TO_FAIL.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left) {
        Ok(_) => Err(io::Error::other("the disk is gone")),
        Err(_) => Ok(()),
    }
}

fn insert(session: &mut Raw, value: &str) -> Vec<raw::Message> {
    session.send(
        &[
            raw::parse("", "insert into docs(body) values ($1) returning body", &[]),
            raw::bind("", "", &[], &[Some(value.as_bytes())], &[]),
            raw::execute("", 0),
            raw::sync(),
        ]
        .concat(),
    );
    session.until_ready(1)
}

/// How many of the rows whose values begin so are inline.
fn inline(start: &str) -> String {
    let sql = format!("select count(*) from docs where toastrack.raw(body)::text like '{start}%'");
    raw::first_text(&RIG.raw_direct("postgres").query(&sql))
}

/// Until the store takes values again.
fn recover(session: &mut Raw) {
    FAIL_WRITES.store(false, Ordering::SeqCst);
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut round = 0;
    loop {
        round += 1;
        let before = RIG.store.stats().used_bytes;
        insert(
            session,
            &format!("recovered {before} {round} {}", named("noise")),
        );
        if RIG.store.stats().used_bytes > before {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "the store does not recover: {:?}",
            RIG.store
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// One insert in each protocol, with a value of its own; the answer is as ever.
fn insert_both(session: &mut Raw, start: &str, before: impl Fn(&mut Raw)) {
    before(session);
    let value = format!("{start} extended {}", named("noise"));
    let answer = insert(session, &value);
    assert_eq!(raw::tags(&answer), "12DCZ");
    assert_eq!(raw::first_text(&answer), value);
    before(session);
    let value = format!("{start} simple {}", named("noise"));
    let answer = session.query(&format!(
        "insert into docs(body) values ('{value}') returning body"
    ));
    assert_eq!(raw::tags(&answer), "TDCZ");
    assert_eq!(raw::first_text(&answer), value);
    // An error has its place in the client's own text.
    before(session);
    let sql = format!(
        "insert into docs(body, d) values ('{start} late {}', '{{}}'), ('x', nope)",
        named("noise")
    );
    let answer = session.query(&sql);
    let position = raw::error_field(&answer, b'P').expect("a position");
    assert_eq!(position, (sql.find("nope").expect("there") + 1).to_string());
}

/// Proves S2, S3 and C24: while writes fail, and when a batch cannot be made durable, each statement has
/// its one answer and its values are inline; when the disk is back, values leave the row again.
#[test]
fn values_stay_inline_while_the_store_fails() {
    let _alone = DISK.lock();
    let mut session = RIG.raw_through("postgres");
    recover(&mut session);
    insert_both(&mut session, "full", |_| {
        FAIL_WRITES.store(true, Ordering::SeqCst)
    });
    assert_eq!(inline("full"), "2");
    recover(&mut session);
    insert_both(&mut session, "unsynced", |session| {
        recover(session);
        SYNCS_TO_FAIL.store(1, Ordering::SeqCst);
    });
    assert_eq!(SYNCS_TO_FAIL.load(Ordering::SeqCst), 0);
    assert_eq!(inline("unsynced"), "2");
    recover(&mut session);
    insert_both(&mut session, "sound", |_| ());
    assert_eq!(inline("sound"), "0");
    let answer = session.query("select body from docs");
    assert_eq!(sqlstate(&answer), "none");
}

/// Proves S3: a statement is not sent before the sync of its values is over.
#[test]
fn durable_before_visible() {
    let _alone = DISK.lock();
    let mut session = RIG.raw_through("postgres");
    let mut watcher = RIG.raw_direct("postgres");
    let pid = session.backend_pid();
    recover(&mut session);
    SYNC_DELAY_MS.store(400, Ordering::SeqCst);
    let ended = SYNCS_ENDED.load(Ordering::SeqCst);
    let asked = Instant::now();
    let value = format!("slow {}", named("noise"));
    session.send(&raw::query(&format!(
        "insert into docs(body) values ('{value}')"
    )));
    std::thread::sleep(Duration::from_millis(100));
    let seen = watcher.query(&format!(
        "select query like '%slow%' from pg_stat_activity where pid = {pid}"
    ));
    assert_eq!(raw::first_text(&seen), "f");
    assert_eq!(SYNCS_ENDED.load(Ordering::SeqCst), ended);
    assert_eq!(sqlstate(&session.until_ready(1)), "none");
    SYNC_DELAY_MS.store(0, Ordering::SeqCst);
    assert!(asked.elapsed() >= Duration::from_millis(400));
    assert!(SYNCS_ENDED.load(Ordering::SeqCst) > ended);
    assert_eq!(inline("slow"), "0");
}
