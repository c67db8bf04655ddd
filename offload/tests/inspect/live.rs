//! Walks beside a store at work.

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toastrack_offload::inspect::Inspector;
use toastrack_offload::{Reference, Store};

use crate::common::{noise, put, segment_path, small};
use crate::walk;

/// Proves: beside a writer that never rests, walks report no damage, and every record that was
/// acknowledged before a walk began is in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_at_work_is_not_damage() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(toastrack_offload::StoreOptions {
        segment_len_bytes: 1 << 20,
        ..small(dir.path())
    })
    .unwrap();
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let ended = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4u64)
        .map(|writer| {
            let (store, acknowledged, ended) = (store.clone(), acknowledged.clone(), ended.clone());
            tokio::spawn(async move {
                let mut n = writer;
                while !ended.load(Ordering::Relaxed) {
                    let value = noise(n as usize * 7919 % 30_000, n);
                    let reference = put(&store, &value).await.reference;
                    acknowledged.lock().push(reference);
                    n += 4;
                }
            })
        })
        .collect();
    let (until, directory) = (Duration::from_secs(3), dir.path().to_owned());
    let check = tokio::task::spawn_blocking(move || {
        let inspector = Inspector::open(&directory).unwrap();
        let (began, mut walks) = (Instant::now(), 0);
        while began.elapsed() < until {
            let before = acknowledged.lock().clone();
            let found = walk(&inspector);
            assert!(found.is_sound(), "{:?} {:?}", found.damaged, found.reports);
            let mut records = found.records;
            records.sort_unstable();
            for reference in before {
                let place = (reference.segment(), reference.offset());
                assert!(records.binary_search(&place).is_ok(), "{reference:?}");
            }
            let newest = acknowledged.lock().last().copied();
            if let Some(newest) = newest {
                inspector.read(&newest).unwrap();
            }
            walks += 1;
        }
        walks
    });
    let walks = check.await;
    ended.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    store.close();
    assert!(walks.unwrap() >= 3);
}

/// Proves: a store that crashes with a torn end and is recovered again and again, its segments sealed
/// and shortened under the walk, is never called damaged, and what was acknowledged is always there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recovery_under_a_walk_is_not_damage() {
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().to_owned();
    Store::open(small(&directory)).unwrap().close();
    let ended = Arc::new(AtomicBool::new(false));
    let acknowledged = Arc::new(Mutex::new(Vec::<Reference>::new()));
    let crashes = {
        let (directory, ended, acknowledged) =
            (directory.clone(), ended.clone(), acknowledged.clone());
        tokio::spawn(async move {
            let mut n = 0;
            while !ended.load(Ordering::Relaxed) {
                let store = Store::open(small(&directory)).unwrap();
                let mut last = None;
                for _ in 0..5 {
                    let reference = put(&store, &noise(n as usize * 811 % 9000, n))
                        .await
                        .reference;
                    acknowledged.lock().push(reference);
                    last = Some(reference);
                    n += 1;
                }
                store.close();
                // What a crash leaves: half of a record behind the last one.
                let last = last.unwrap();
                let path = segment_path(&directory, last.segment());
                let at = (u64::from(last.offset()) + 80 + u64::from(last.stored_len()))
                    .next_multiple_of(8);
                if n % 2 == 0 && at < 50_000 {
                    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
                    file.write_all_at(&noise(3000, n), at).unwrap();
                }
            }
            n
        })
    };
    let walks = tokio::task::spawn_blocking(move || {
        let inspector = Inspector::open(&directory)
            .unwrap()
            .settle_within(Duration::from_millis(500));
        let (began, mut walks) = (Instant::now(), 0);
        while began.elapsed() < Duration::from_secs(4) {
            let before = acknowledged.lock().clone();
            let found = walk(&inspector);
            assert!(found.is_sound(), "{:?} {:?}", found.damaged, found.reports);
            let mut records = found.records;
            records.sort_unstable();
            for reference in before {
                let place = (reference.segment(), reference.offset());
                assert!(records.binary_search(&place).is_ok(), "{reference:?}");
            }
            walks += 1;
        }
        walks
    })
    .await;
    ended.store(true, Ordering::Relaxed);
    let puts = crashes.await.unwrap();
    let walks = walks.unwrap();
    println!("{walks} walks beside {puts} puts");
    assert!(walks >= 2 && puts > 20);
}
