//! A store that fails: values stay inline, and nothing is said to be kept that is not (S2, S3).

mod common;

use std::any::Any;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use common::raw::{self, Raw, sqlstate};
use common::values::named;
use common::{DiskOf, Rig, RigOptions};
use toastrack_offload::disk::{Audience, Disk, DiskFile, RealDisk};

/// What the disk refuses now.
static FAIL_WRITES: AtomicBool = AtomicBool::new(false);
/// How many batches to fail; making segments always works.
static SYNCS_TO_FAIL: AtomicU64 = AtomicU64::new(0);
static SYNC_DELAY_MS: AtomicU64 = AtomicU64::new(0);
static SYNCS_ENDED: AtomicU64 = AtomicU64::new(0);

/// One test at a time, since there is one disk.
static DISK: Mutex<()> = Mutex::new(());

static RIG: LazyLock<Rig> = LazyLock::new(|| {
    let disk: DiskOf = |directory| Arc::new(Failing(RealDisk::new(directory, None)));
    let rig = Rig::shared(RigOptions {
        disk: Some(disk),
        ..RigOptions::default()
    });
    rig.raw_through("postgres")
        .query("create table docs(id serial, body toastrack.text, d toastrack.jsonb)");
    rig
});

struct Failing(RealDisk);
struct FailingFile(Arc<dyn DiskFile>);

impl Disk for Failing {
    fn open(&self, name: &str, write: bool) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(FailingFile(self.0.open(name, write)?)))
    }

    fn create(&self, name: &str, audience: Audience) -> io::Result<Arc<dyn DiskFile>> {
        writes()?;
        Ok(Arc::new(FailingFile(self.0.create(name, audience)?)))
    }

    fn create_dir(&self, name: &str, audience: Audience) -> io::Result<()> {
        self.0.create_dir(name, audience)
    }

    fn restrict(&self, name: &str, audience: Audience) -> io::Result<()> {
        self.0.restrict(name, audience)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn list(&self, name: &str) -> io::Result<Vec<String>> {
        self.0.list(name)
    }

    fn sync_dir(&self, name: &str) -> io::Result<()> {
        self.0.sync_dir(name)
    }

    fn lock(&self, name: &str) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        self.0.lock(name)
    }
}

impl DiskFile for FailingFile {
    fn byte_len(&self) -> io::Result<u64> {
        self.0.byte_len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn read_at_now(&self, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        self.0.read_at_now(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        writes()?;
        self.0.write_at(bytes, offset)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        writes()?;
        self.0.allocate(len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        std::thread::sleep(Duration::from_millis(SYNC_DELAY_MS.load(Ordering::SeqCst)));
        let left = |left: u64| left.checked_sub(1);
        if SYNCS_TO_FAIL
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, left)
            .is_ok()
        {
            return Err(io::Error::other("the disk is gone"));
        }
        self.0.sync_data()?;
        SYNCS_ENDED.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.0.sync_all()
    }
}

fn writes() -> io::Result<()> {
    if FAIL_WRITES.load(Ordering::SeqCst) {
        return Err(io::Error::from(io::ErrorKind::StorageFull));
    }
    Ok(())
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
