//! Unit tests of the detoast cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;

use crate::{DetoastCache, ENTRY_OVERHEAD_BYTES};

fn key(n: u64) -> [u8; 16] {
    // Spread the way a keyed hash does.
    let mut key = [0u8; 16];
    key[..8].copy_from_slice(&n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
    key[8..].copy_from_slice(&n.to_le_bytes());
    key
}

#[derive(Debug, PartialEq)]
struct Broken(&'static str);

/// Proves: what went in comes out, and the counters say so.
#[test]
fn a_value_comes_back_and_is_counted() {
    let cache = DetoastCache::new(1 << 20);
    assert_eq!(cache.get(&key(1)), None);
    cache.insert(key(1), Bytes::from_static(b"value"));
    assert_eq!(cache.get(&key(1)), Some(Bytes::from_static(b"value")));
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses, stats.inserts), (1, 1, 1));
    assert_eq!(stats.entries, 1);
    assert_eq!(stats.bytes, 5 + u64::from(ENTRY_OVERHEAD_BYTES));
    assert_eq!(stats.capacity, 1 << 20);
}

/// Proves: the bound in bytes holds, and evictions are counted.
#[test]
fn the_capacity_is_kept() {
    let cache = DetoastCache::new(64 * 1024);
    for n in 0..1000 {
        cache.insert(key(n), Bytes::from(vec![7u8; 1000]));
    }
    let stats = cache.stats();
    assert!(stats.bytes <= stats.capacity, "{stats:?}");
    assert!(stats.entries >= 40, "{stats:?}");
    assert!(stats.evictions >= 900, "{stats:?}");
}

/// Proves: capacity 0 holds nothing and still loads.
#[tokio::test]
async fn capacity_zero_switches_caching_off() {
    let cache = DetoastCache::new(0);
    cache.insert(key(1), Bytes::from_static(b"value"));
    assert_eq!(cache.get(&key(1)), None);
    let loaded = cache
        .get_or_load::<Broken, _>(key(1), async { Ok(Bytes::from_static(b"loaded")) })
        .await;
    assert_eq!(loaded, Ok(Bytes::from_static(b"loaded")));
    assert_eq!(cache.get(&key(1)), None);
    assert_eq!(cache.stats().entries, 0);
}

/// Proves: of many callers at once, one loads, and all get its value; without caching as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_load_for_many_waiters() {
    for capacity in [1 << 20, 0] {
        let cache = DetoastCache::new(capacity);
        let loads = Arc::new(AtomicUsize::new(0));
        let gate = Arc::new(tokio::sync::Barrier::new(50));
        let mut tasks = Vec::new();
        for _ in 0..50 {
            let (cache, loads, gate) = (cache.clone(), loads.clone(), gate.clone());
            tasks.push(tokio::spawn(async move {
                gate.wait().await;
                cache
                    .get_or_load::<Broken, _>(key(9), async {
                        loads.fetch_add(1, Ordering::SeqCst);
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        Ok(Bytes::from_static(b"once"))
                    })
                    .await
            }));
        }
        for task in tasks {
            assert_eq!(task.await.unwrap(), Ok(Bytes::from_static(b"once")));
        }
        assert_eq!(loads.load(Ordering::SeqCst), 1, "capacity {capacity}");
    }
}

/// Proves: an error reaches those who waited for it, and the next caller loads again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_are_shared_and_not_cached() {
    let cache = DetoastCache::new(1 << 20);
    let loads = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for _ in 0..10 {
        let (cache, loads) = (cache.clone(), loads.clone());
        tasks.push(tokio::spawn(async move {
            cache
                .get_or_load(key(3), async {
                    loads.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    Err(Broken("disk"))
                })
                .await
        }));
    }
    for task in tasks {
        assert_eq!(*task.await.unwrap().unwrap_err(), Broken("disk"));
    }
    assert_eq!(loads.load(Ordering::SeqCst), 1);
    let second = cache
        .get_or_load::<Broken, _>(key(3), async { Ok(Bytes::from_static(b"well")) })
        .await;
    assert_eq!(second, Ok(Bytes::from_static(b"well")));
    assert_eq!(cache.get(&key(3)), Some(Bytes::from_static(b"well")));
}

/// Proves: when the loading caller is dropped, one that waits takes over, and nothing is left over.
#[tokio::test]
async fn a_dropped_load_is_taken_over() {
    let cache = DetoastCache::new(1 << 20);
    let stuck = tokio::spawn({
        let cache = cache.clone();
        async move {
            cache
                .get_or_load::<Broken, _>(key(4), std::future::pending())
                .await
        }
    });
    tokio::task::yield_now().await;
    let waiter = tokio::spawn({
        let cache = cache.clone();
        async move {
            cache
                .get_or_load::<Broken, _>(key(4), async { Ok(Bytes::from_static(b"taken over")) })
                .await
        }
    });
    tokio::task::yield_now().await;
    assert!(!waiter.is_finished());
    stuck.abort();
    assert_eq!(waiter.await.unwrap(), Ok(Bytes::from_static(b"taken over")));
    assert_eq!(cache.shared.flights.len(), 0);

    let alone = cache.get_or_load::<Broken, _>(key(5), std::future::pending());
    assert!(
        tokio::time::timeout(Duration::from_millis(10), alone)
            .await
            .is_err()
    );
    assert_eq!(cache.shared.flights.len(), 0);
}
