//! Snapshots: taken while a writer writes, they open as the store was and have all of it.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{noise, put, segment_path, small};
use parking_lot::Mutex;
use toastrack_offload::inspect::snapshot::{Method, SnapshotReport, take};
use toastrack_offload::inspect::{Depth, Finding, Inspector, Pace, SegmentReport};
use toastrack_offload::{Codec, Kind, Reference, Store, StoreError, StoreOptions};

fn snapshot(from: &Path, to: &Path, method: Method) -> Result<SnapshotReport, StoreError> {
    take(from, to, method, &mut Pace::unbounded())
}

fn walk(directory: &Path) -> Vec<SegmentReport> {
    let inspector = Inspector::open(directory)
        .unwrap()
        .settle_within(Duration::ZERO);
    let segments = inspector.list().unwrap().segments;
    let walk = |segment| {
        let pace = &mut Pace::unbounded();
        inspector.walk(segment, Depth::Values, pace, &mut |_| {})
    };
    segments.into_iter().map(|s| walk(s).unwrap()).collect()
}

/// A larger segment than the smallest, so that one is open for a while.
fn options(directory: &Path) -> StoreOptions {
    StoreOptions {
        segment_len_bytes: 256 << 10,
        ..small(directory)
    }
}

/// Proves: of snapshots taken one after the other while four writers write and segments are sealed,
/// each is sound, opens as a store, has every value that was acknowledged before it began, and takes
/// values. The store that it was taken from does not matter any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn taken_while_writing() {
    for method in [Method::Link, Method::Copy] {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().join("store");
        let store = Store::open(options(&directory)).unwrap();
        let acknowledged = Arc::new(Mutex::new(Vec::<(Reference, u64)>::new()));
        let ended = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..4u64)
            .map(|writer| {
                let (store, list, ended) = (store.clone(), acknowledged.clone(), ended.clone());
                tokio::spawn(async move {
                    let mut seed = writer;
                    while !ended.load(Ordering::Relaxed) {
                        let value = noise(seed as usize * 7919 % 20_000, seed);
                        let reference = put(&store, &value).await.reference;
                        list.lock().push((reference, seed));
                        seed += 4;
                        // About as fast as four sessions would be.
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                })
            })
            .collect();
        let mut taken = Vec::new();
        for n in 0..5 {
            tokio::time::sleep(Duration::from_millis(150)).await;
            let before = acknowledged.lock().clone();
            let to = dir.path().join(format!("snapshot{n}"));
            let (from, to_dir) = (directory.clone(), to.clone());
            let report = tokio::task::spawn_blocking(move || snapshot(&from, &to_dir, method))
                .await
                .unwrap()
                .unwrap();
            assert_eq!(report.unsound, []);
            taken.push((to, before, report));
        }
        ended.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.await.unwrap();
        }
        store.close();
        fs::remove_dir_all(&directory).unwrap();
        let last = &taken.last().unwrap().2;
        assert_eq!(method == Method::Link, last.linked > 0, "{last:?}");
        for (snapshot, before, _) in taken {
            assert!(before.len() > 20);
            assert!(walk(&snapshot).iter().all(SegmentReport::is_sound));
            let store = Store::open(options(&snapshot)).unwrap();
            for (reference, seed) in &before {
                let value = noise(*seed as usize * 7919 % 20_000, *seed);
                assert_eq!(store.get(reference).await.unwrap(), value);
            }
            let more = put(&store, b"after the restore").await.reference;
            assert_eq!(store.get(&more).await.unwrap(), b"after the restore"[..]);
            store.close();
        }
    }
}

/// Proves: sealed segments are shared and the open one is not, so that a store that is opened on a
/// snapshot writes nothing into the store it was taken from; secrets stay private.
#[tokio::test]
async fn what_is_shared_is_never_written() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("store"), dir.path().join("snapshot"));
    let store = Store::open(small(&from)).unwrap();
    let mut references = Vec::new();
    for n in 0..30 {
        references.push(put(&store, &noise(5000, n)).await.reference);
    }
    let report = snapshot(&from, &to, Method::Link).unwrap();
    assert!(report.linked >= 2 && report.copied >= 1, "{report:?}");
    let inode = |directory: &Path, segment| {
        let meta = fs::metadata(segment_path(directory, segment)).unwrap();
        (meta.dev(), meta.ino())
    };
    let open = references.last().unwrap().segment();
    assert_eq!(inode(&from, 1), inode(&to, 1));
    assert_ne!(inode(&from, open), inode(&to, open));
    let mode = |name: &str| {
        let meta = fs::metadata(to.join(name)).unwrap();
        meta.permissions().mode() & 0o777
    };
    assert_eq!(
        [mode("key"), mode(""), mode("segments")],
        [0o600, 0o700, 0o700]
    );
    // Both go on, each for itself.
    let copy = Store::open(small(&to)).unwrap();
    for n in 100..120 {
        put(&store, &noise(5000, n)).await;
        put(&copy, &noise(5000, 1000 + n)).await;
    }
    for reference in &references {
        assert_eq!(
            copy.get(reference).await.unwrap(),
            store.get(reference).await.unwrap()
        );
    }
    store.close();
    copy.close();
    for directory in [&from, &to] {
        assert!(walk(directory).iter().all(SegmentReport::is_sound));
    }
}

/// Proves: a snapshot of a damaged store has all that verifies in it, and says what does not.
#[tokio::test]
async fn of_a_damaged_store() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("store"), dir.path().join("snapshot"));
    let store = Store::open(small(&from)).unwrap();
    let mut references = Vec::new();
    for n in 0..30 {
        references.push(put(&store, &noise(5000, n)).await.reference);
    }
    store.close();
    let last = *references.last().unwrap();
    let torn = references.len() - 2;
    assert_eq!(references[torn].segment(), last.segment());
    let damage = |segment: u32, at: usize| {
        let path = segment_path(&from, segment);
        let mut bytes = fs::read(&path).unwrap();
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
    };
    damage(1, 20);
    damage(last.segment(), references[torn].offset() as usize + 300);
    fs::write(from.join("segments/notes.txt"), "mine").unwrap();
    let report = snapshot(&from, &to, Method::Link).unwrap();
    assert_eq!(report.unsound.len(), 2, "{report:?}");
    assert_eq!(report.foreign, ["notes.txt"]);
    let copy = Store::open(small(&to)).unwrap();
    for (n, reference) in references.iter().enumerate() {
        let read = copy.get(reference).await;
        if n == torn {
            assert_eq!(read.unwrap_err().kind(), Kind::Corrupt);
        } else {
            assert_eq!(read.unwrap(), noise(5000, n as u64));
        }
    }
    copy.close();
}

/// Proves: a destination that cannot be one is refused with the reason, and left as it was; a
/// failure in the middle leaves nothing behind.
#[tokio::test]
async fn destinations_that_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path().join("store");
    let store = Store::open(small(&from)).unwrap();
    for n in 0..20 {
        put(&store, &noise(5000, n)).await;
    }
    let refused = |to: &Path, method, what: &str| {
        let error = snapshot(&from, to, method).unwrap_err();
        assert_eq!(error.kind(), Kind::BadConfig, "{error}");
        assert!(error.to_string().contains(what), "{error}");
    };
    let used = dir.path().join("used");
    fs::create_dir(&used).unwrap();
    fs::write(used.join("file"), "mine").unwrap();
    refused(&used, Method::Link, "not empty");
    refused(&from.join("snapshot"), Method::Link, "inside of the store");
    refused(&used.join("file"), Method::Link, "file");
    // Another file system, where the machine has one.
    let shm = Path::new("/dev/shm");
    let other = tempfile::tempdir_in(shm).ok().filter(|other| {
        fs::metadata(other.path()).unwrap().dev() != fs::metadata(&from).unwrap().dev()
    });
    if let Some(other) = other {
        let to = other.path().join("snapshot");
        refused(&to, Method::Link, "--copy");
        assert!(!to.exists());
        snapshot(&from, &to, Method::Copy).unwrap();
        assert!(walk(&to).iter().all(SegmentReport::is_sound));
    }
    store.close();
    fs::remove_file(from.join("key")).unwrap();
    let to = dir.path().join("keyless");
    let error = snapshot(&from, &to, Method::Link).unwrap_err();
    assert!(error.to_string().contains("key"), "{error}");
    assert!(!to.exists());
}

/// Proves: a value in pieces is in a snapshot with all of its pieces or not at all, though pieces and
/// manifest go to several segments while the snapshot is taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_in_pieces_are_whole() {
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().join("store");
    let store = Store::open(StoreOptions {
        segment_len_bytes: 2 << 20,
        dedup_entries: 0,
        ..small(&directory)
    })
    .unwrap();
    let ended = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..2u64)
        .map(|writer| {
            let (store, ended) = (store.clone(), ended.clone());
            tokio::spawn(async move {
                let value = noise(3 << 20, writer);
                let mut n = 0;
                while !ended.load(Ordering::Relaxed) {
                    put(&store, &value[..(1 << 20) + n * 104_729 % (2 << 20)]).await;
                    n += 1;
                }
            })
        })
        .collect();
    let mut values = 0;
    for n in 0..4 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let (from, to) = (directory.clone(), dir.path().join(format!("snapshot{n}")));
        values += tokio::task::spawn_blocking(move || {
            snapshot(&from, &to, Method::Link).unwrap();
            let inspector = Inspector::open(&to).unwrap();
            let mut manifests = Vec::new();
            for segment in inspector.list().unwrap().segments {
                let mut visit = |finding: Finding<'_>| match finding {
                    Finding::Record(chunk) if chunk.codec() == Some(Codec::Manifest) => {
                        manifests.push(inspector.reference(chunk).unwrap());
                    }
                    Finding::Record(_) => {}
                    other => panic!("{other:?}"),
                };
                let pace = &mut Pace::unbounded();
                inspector
                    .walk(segment, Depth::Checksums, pace, &mut visit)
                    .unwrap();
            }
            for manifest in &manifests {
                inspector.read(manifest).unwrap();
            }
            fs::remove_dir_all(&to).unwrap();
            manifests.len()
        })
        .await
        .unwrap();
    }
    ended.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    store.close();
    assert!(values > 4, "{values}");
}
