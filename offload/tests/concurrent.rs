//! Readers beside writers on a real disk: what is durable reads back at once and ever after.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::sync::Arc;

use common::{noise, small};
use parking_lot::Mutex;
use toastrack_offload::{Kind, Reference, Store, ValueKind};

const WRITERS: u64 = 4;
const VALUES_EACH: u64 = 1500;

fn value(seed: u64) -> Vec<u8> {
    noise(2000 + (seed as usize * 7919) % 14_000, seed)
}

/// Proves: while segments fill up and follow one another, each durable record verifies when it is
/// read right after its sync, through the neighbours of what is being written, and after a reopen.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn durable_values_read_back_beside_writers() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(small(dir.path())).unwrap();
    let stored: Arc<Mutex<Vec<(Reference, u64)>>> = Arc::default();
    let mut tasks = Vec::new();
    for writer in 0..WRITERS {
        let (store, stored) = (store.clone(), Arc::clone(&stored));
        tasks.push(tokio::spawn(async move {
            for n in 0..VALUES_EACH {
                let seed = writer * VALUES_EACH + n;
                let bytes = value(seed);
                let put = loop {
                    match store.put(ValueKind::Bytea, bytes.len() as u32, &bytes) {
                        Err(error) if error.kind() == Kind::Retry => store.room().await.unwrap(),
                        other => break other.unwrap(),
                    }
                };
                store.durable(put.ticket).await.unwrap();
                assert_eq!(store.get(&put.reference).await.unwrap(), bytes);
                let older = {
                    let mut stored = stored.lock();
                    stored.push((put.reference, seed));
                    stored[(seed as usize * 31) % stored.len()]
                };
                assert_eq!(store.get(&older.0).await.unwrap(), value(older.1));
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert!(store.stats().segments > 10);
    store.close();
    let store = Store::open(small(dir.path())).unwrap();
    let stored = stored.lock().clone();
    assert_eq!(stored.len() as u64, WRITERS * VALUES_EACH);
    for (reference, seed) in stored {
        assert_eq!(store.get(&reference).await.unwrap(), value(seed));
    }
}
