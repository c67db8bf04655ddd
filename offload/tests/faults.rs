//! Failed calls and lost power, on the simulated disk.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use common::sim::{Call, EIO, ENOSPC, Fault, PANIC, SimDisk};
use common::{document, noise, put, small};
use toastrack_offload::{Kind, Reference, Store, StoreError, StoreOptions, StoreState, ValueKind};

fn options() -> StoreOptions {
    small("simulated".as_ref())
}

fn open(disk: &SimDisk) -> Result<Store, StoreError> {
    Store::open_on(Arc::new(disk.clone()), options())
}

fn fault(call: Call, after: usize, times: usize, errno: i32) -> Fault {
    Fault {
        call,
        after,
        times,
        errno,
    }
}

/// Waits until a put is taken; gives up on anything but `Retry`.
async fn put_patiently(store: &Store, value: &[u8]) -> Result<Reference, StoreError> {
    loop {
        match store.put(ValueKind::Bytea, value.len() as u32, value) {
            Ok(stored) => {
                store.durable(stored.ticket).await?;
                return Ok(stored.reference);
            }
            Err(error) if error.kind() == Kind::Retry => store.room().await?,
            Err(error) => return Err(error),
        }
    }
}

/// Proves: when a write or a sync fails, the waiters get the error, the segment is not used again,
/// what was acknowledged stays, the same value is stored anew, and the store goes on in a new
/// segment, also after reopening.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_write_or_sync_poisons_its_segment() {
    for call in [Call::Write, Call::Sync] {
        let disk = SimDisk::default();
        let store = open(&disk).unwrap();
        let good = put(&store, &noise(900, 1)).await.reference;
        disk.fail(fault(call, 0, 1, EIO));
        let value = noise(1000, 2);
        let lost = store.put(ValueKind::Bytea, 1000, &value).unwrap();
        let error = store.durable(lost.ticket).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Io, "{call:?} {error}");
        assert_eq!(error.sqlstate(), "58030");
        assert!(!store.is_durable(lost.ticket));
        // A second asker gets the same answer.
        assert!(store.durable(lost.ticket).await.is_err());

        let again = put_patiently(&store, &value).await.unwrap();
        assert_ne!(again.segment(), lost.reference.segment());
        assert_eq!(store.state(), StoreState::Healthy);
        assert_eq!(store.stats().dedup_hits, 0);
        assert_eq!(store.stats().write_failures, 1);
        assert_eq!(store.get(&good).await.unwrap(), noise(900, 1));
        assert_eq!(store.get(&again).await.unwrap(), value);
        store.close();
        let store = open(&disk).unwrap();
        assert_eq!(store.get(&good).await.unwrap(), noise(900, 1));
        assert_eq!(store.get(&again).await.unwrap(), value);
        put(&store, b"more").await;
    }
}

/// Proves: everything that was waiting when a batch failed fails with it, tickets given out after
/// the pause do not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_was_pending_fails_together() {
    let disk = SimDisk::default();
    let options = StoreOptions {
        failure_pause: Duration::from_millis(300),
        ..options()
    };
    let store = Store::open_on(Arc::new(disk.clone()), options).unwrap();
    disk.fail(fault(Call::Sync, 0, 1, EIO));
    let mut tickets = Vec::new();
    let mut paused = None;
    for n in 0..20 {
        match store.put(ValueKind::Bytea, 500, &noise(500, n)) {
            Ok(stored) => tickets.push(stored.ticket),
            Err(error) => paused = Some(error),
        }
        std::thread::yield_now();
    }
    for ticket in &tickets {
        assert!(store.durable(*ticket).await.is_err());
    }
    let refused = store.put(ValueKind::Text, 1, b"x").unwrap_err();
    assert_eq!(refused.kind(), Kind::Retry, "{paused:?}");
    let later = put_patiently(&store, b"later").await.unwrap();
    assert_eq!(store.get(&later).await.unwrap(), "later");
    assert!(store.durable(tickets[0]).await.is_err());
}

/// Proves: two segments failing in a row make the store read-only, with the reason; reads go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_failures_in_a_row_end_writing() {
    let disk = SimDisk::default();
    let store = open(&disk).unwrap();
    let good = put(&store, b"good").await.reference;
    // The first spares the calls that make the next segment.
    disk.fail(fault(Call::Sync, 0, 1, EIO));
    assert!(put_patiently(&store, b"one").await.is_err());
    store.room().await.unwrap();
    disk.fail(fault(Call::Sync, 0, 1, EIO));
    assert!(put_patiently(&store, b"two").await.is_err());
    let refused = store.put(ValueKind::Text, 1, b"x").unwrap_err();
    assert_eq!(refused.kind(), Kind::ReadOnly);
    assert_eq!(refused.sqlstate(), "25006");
    assert!(store.room().await.is_err());
    match store.state() {
        StoreState::ReadOnly { reason } => assert!(reason.contains("syncing"), "{reason}"),
        StoreState::Healthy => panic!("still healthy"),
    }
    assert_eq!(store.get(&good).await.unwrap(), "good");
}

/// Proves: when the thread that writes panics, who waits gets an error, no value is taken, reads go
/// on and the store closes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_of_the_writer_ends_writing() {
    let disk = SimDisk::default();
    let store = open(&disk).unwrap();
    let good = put(&store, b"good").await.reference;
    disk.fail(fault(Call::Sync, 0, 1, PANIC));
    let error = put_patiently(&store, b"one").await.unwrap_err();
    assert_eq!(error.kind(), Kind::Bug);
    let refused = store.put(ValueKind::Text, 1, b"x").unwrap_err();
    assert!(refused.to_string().contains("panicked"), "{refused}");
    assert_eq!(store.get(&good).await.unwrap(), "good");
    store.close();
    put(&open(&disk).unwrap(), b"again").await;
}

/// Proves: when no new segment can be made after a failure, the store is read-only at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_new_segment_ends_writing() {
    let disk = SimDisk::default();
    let store = open(&disk).unwrap();
    let good = put(&store, b"good").await.reference;
    disk.fail(fault(Call::Create, 0, usize::MAX, EIO));
    disk.fail(fault(Call::Sync, 0, 1, EIO));
    assert!(put_patiently(&store, b"one").await.is_err());
    let refused = put_patiently(&store, b"two").await.unwrap_err();
    assert_eq!(refused.kind(), Kind::ReadOnly, "{refused}");
    assert_eq!(store.get(&good).await.unwrap(), "good");
    disk.heal();
    store.close();
    let store = open(&disk).unwrap();
    assert_eq!(store.get(&good).await.unwrap(), "good");
    put(&store, b"again").await;
}

/// Proves: on a full disk puts are refused as full before anything is damaged, and taken again when
/// there is space.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_and_recovers() {
    let disk = SimDisk::default();
    let store = open(&disk).unwrap();
    disk.fail(fault(Call::Create, 0, usize::MAX, ENOSPC));
    let mut kept = Vec::new();
    let refused = loop {
        let value = noise(5000, kept.len() as u64);
        match put_patiently(&store, &value).await {
            Ok(reference) => kept.push((reference, value)),
            Err(error) => break error,
        }
        assert!(kept.len() < 100);
    };
    assert_eq!(refused.kind(), Kind::Full);
    assert_eq!(refused.sqlstate(), "53100");
    assert!(kept.len() > 5);
    assert!(matches!(store.state(), StoreState::ReadOnly { .. }));
    for (reference, value) in &kept {
        assert_eq!(store.get(reference).await.unwrap(), value);
    }
    disk.heal();
    let began = std::time::Instant::now();
    while put_patiently(&store, &noise(5000, 77)).await.is_err() {
        assert!(began.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(store.state(), StoreState::Healthy);
}

/// Proves: opening fails cleanly at whichever call fails, and works afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opening_survives_any_failed_call() {
    for call in [
        Call::Write,
        Call::Sync,
        Call::Create,
        Call::Rename,
        Call::SyncDir,
    ] {
        for after in 0..8 {
            let disk = SimDisk::default();
            disk.fail(fault(call, after, 1, EIO));
            // With enough calls let through there is nothing left to fail.
            let opened = open(&disk);
            disk.heal();
            drop(opened);
            let store = open(&disk).unwrap_or_else(|e| panic!("{call:?} {after}: {e}"));
            put(&store, b"value").await;
        }
    }
}

/// Proves: at whatever call the power goes, and whatever of the unsynced sectors and names is lost,
/// everything acknowledged reads back, nothing reads back wrong, and the store goes on. Several
/// lives in a row, on one disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn power_loss_at_any_call() {
    let points: u64 = std::env::var("TOASTRACK_CRASH_POINTS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(600);
    let mut lives = 0;
    for seed in 0..points / 4 {
        let mut disk = SimDisk::default();
        let mut acknowledged: BTreeMap<u64, Reference> = BTreeMap::new();
        let mut promised: Vec<(u64, Reference)> = Vec::new();
        for life in 0..4u64 {
            lives += 1;
            let random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (life << 7);
            disk.lose_power_after((random >> 20) as usize % 90);
            if let Ok(store) = open(&disk) {
                check(&store, &acknowledged, &promised, seed).await;
                for round in 0..40u64 {
                    let mut tickets = Vec::new();
                    for n in 0..1 + (random >> 8) % 4 {
                        let id = seed << 24 | life << 16 | round << 8 | n;
                        let value = value_of(id);
                        match store.put(ValueKind::Bytea, value.len() as u32, &value) {
                            Ok(stored) => tickets.push((id, stored)),
                            Err(error) if error.kind() == Kind::Retry => {
                                if store.room().await.is_err() {
                                    break;
                                }
                            }
                            Err(_) => break,
                        }
                    }
                    for (id, stored) in tickets {
                        match store.durable(stored.ticket).await {
                            Ok(()) => {
                                acknowledged.insert(id, stored.reference);
                            }
                            Err(error) => {
                                // The disk has checks of its own.
                                assert_ne!(error.kind(), Kind::Bug, "seed {seed}: {error}");
                                promised.push((id, stored.reference));
                            }
                        }
                    }
                    if store.state() != StoreState::Healthy {
                        break;
                    }
                }
            }
            disk = disk.after_power_loss(random ^ 0x5555);
        }
        let store = open(&disk).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        check(&store, &acknowledged, &promised, seed).await;
        put(&store, b"alive").await;
    }
    println!("{lives} power losses");

    async fn check(
        store: &Store,
        acknowledged: &BTreeMap<u64, Reference>,
        promised: &[(u64, Reference)],
        seed: u64,
    ) {
        for (id, reference) in acknowledged {
            match store.get(reference).await {
                Ok(value) => assert_eq!(value, value_of(*id), "seed {seed} id {id:x}"),
                Err(error) => panic!("seed {seed}: {id:x} was acknowledged, but {error}"),
            }
        }
        for (id, reference) in promised {
            match store.get(reference).await {
                Ok(value) => assert_eq!(value, value_of(*id), "seed {seed} id {id:x}"),
                Err(error) => assert_eq!(error.kind(), Kind::Corrupt, "seed {seed}: {error}"),
            }
        }
    }

    fn value_of(id: u64) -> Vec<u8> {
        let len = 16 + (id.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 40) as usize % 4000;
        let mut value = if id & 1 == 0 {
            noise(len, id)
        } else {
            document(len, id)
        };
        value[..8].copy_from_slice(&id.to_le_bytes());
        value
    }
}
