//! A store that fails or is slow: rows go as they came, and none before its values are durable.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use crate::common::disk::{HookedDisk, Hooks};
use crate::common::raw::{self, sqlstate};
use crate::common::values::named;
use crate::common::{DiskOf, Rig, RigOptions};
use crate::{End, Pair, until_asked};

static FAIL_WRITES: AtomicBool = AtomicBool::new(false);
/// How many batches to fail: two in a row close the store.
static SYNCS_TO_FAIL: AtomicU64 = AtomicU64::new(0);
static SYNC_DELAY_MS: AtomicU64 = AtomicU64::new(0);

static FAILING: LazyLock<Rig> = LazyLock::new(|| {
    let disk: DiskOf = |directory| {
        Arc::new(HookedDisk::new(
            directory,
            Hooks {
                write: |_| fail_if(&FAIL_WRITES),
                sync: |_| {
                    std::thread::sleep(Duration::from_millis(SYNC_DELAY_MS.load(Ordering::SeqCst)));
                    let left = |left: u64| left.checked_sub(1);
                    let failing =
                        SYNCS_TO_FAIL.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left);
                    failing.map_or(Ok(()), |_| Err(io::Error::other("the disk is gone")))
                },
                ..Hooks::default()
            },
        ))
    };
    Rig::shared(RigOptions {
        disk: Some(disk),
        ..RigOptions::default()
    })
});

fn fail_if(flag: &AtomicBool) -> io::Result<()> {
    if flag.load(Ordering::SeqCst) {
        return Err(io::Error::from(io::ErrorKind::StorageFull));
    }
    Ok(())
}

fn lines(from: u32, salt: &str) -> Vec<u8> {
    (from..from + 200)
        .flat_map(|id| {
            format!(
                "{id},\"{salt}\n{id}\n{}\"\n",
                named("noise").replace('"', "q")
            )
            .into_bytes()
        })
        .collect()
}

/// Proves S2, S3 and S5: while the disk fails, rows are stored as they came, and errors name the client's
/// lines; when it works again, values leave. A row does not reach the server before the sync of its values.
#[test]
fn rows_stay_whole_while_the_store_fails() {
    let mut pair = Pair::new(&FAILING, "failing");
    let sql = "copy docs(id, body) from stdin csv";
    let copy = |pair: &mut Pair, from: u32, salt: &str| {
        let bytes = lines(from, salt);
        let pieces: Vec<&[u8]> = bytes.chunks(30_000).collect();
        assert_eq!(sqlstate(&pair.copy(sql, &pieces, End::Done)), "none");
        // Other keys, so that only one row is wrong.
        let bad = [&lines(from + 500, salt)[..], b"x,y\n"].concat();
        let pieces: Vec<&[u8]> = bad.chunks(30_000).collect();
        let answer = pair.copy(sql, &pieces, End::Done);
        assert_ne!(sqlstate(&answer), "none");
        pair.check("docs");
        pair.left("docs")[0]
    };
    assert_eq!(copy(&mut pair, 0, "sound"), 200);
    SYNCS_TO_FAIL.store(1, Ordering::SeqCst);
    let left = copy(&mut pair, 1000, "unsynced");
    assert!((200..400).contains(&left), "{left}");
    assert_eq!(SYNCS_TO_FAIL.load(Ordering::SeqCst), 0);
    let mut from = 2000;
    let mut recovered = |pair: &mut Pair| {
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut before = pair.left("docs")[0];
        loop {
            from += 1000;
            let left = copy(pair, from, "again");
            if left == before + 200 {
                return left;
            }
            before = left;
            assert!(
                Instant::now() < deadline,
                "the store does not recover: {:?}",
                FAILING.store.state()
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    recovered(&mut pair);

    SYNC_DELAY_MS.store(600, Ordering::SeqCst);
    pair.packed
        .send(&raw::query("copy docs(id, body) from stdin"));
    until_asked(&mut pair.packed);
    let asked = Instant::now();
    let row = format!("990000\tslow {}\n", named("noise").replace('\\', "x"));
    pair.packed
        .send(&[raw::frame(b'd', row.as_bytes()), raw::frame(b'c', b"")].concat());
    let answer = pair.packed.until_ready(1);
    SYNC_DELAY_MS.store(0, Ordering::SeqCst);
    assert_eq!(sqlstate(&answer), "none");
    assert!(asked.elapsed() >= Duration::from_millis(600));

    pair.packed.query("delete from docs where id = 990000");
    // In the end nothing can be written any more.
    FAIL_WRITES.store(true, Ordering::SeqCst);
    let before = pair.left("docs")[0];
    let left = copy(&mut pair, 900_000, "unwritten");
    assert!(left < before + 200, "{left} after {before}");
}
