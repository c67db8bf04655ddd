//! Bit rot: every byte of a small store, one at a time.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use common::sim::SimDisk;
use common::{SEGMENT_LEN, document, noise, put, segment_path, small};
use toastrack_offload::{Kind, Reference, Store};

/// Every read gives the right bytes or names the place.
async fn check(store: &Store, rows: &[(Reference, Vec<u8>)], flipped: usize) -> usize {
    let mut damaged = 0;
    for (reference, value) in rows {
        match store.get(reference).await {
            Ok(read) => assert_eq!(read, value, "byte {flipped}"),
            Err(error) => {
                let place = format!(
                    "segment {:08x} at offset {} ",
                    reference.segment(),
                    reference.offset()
                );
                assert_eq!(error.kind(), Kind::Corrupt, "byte {flipped}: {error}");
                assert_eq!(error.sqlstate(), "XX001");
                assert!(error.to_string().contains(&place), "{error}");
                damaged += 1;
            }
        }
    }
    damaged
}

/// Proves: with any byte of a sealed segment flipped under an open store, reads of what is near it
/// are right or refused, and exactly the bytes of a record's fields and payload matter.
#[tokio::test]
async fn every_byte_of_a_segment_under_an_open_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(small(dir.path())).unwrap();
    let mut rows = Vec::new();
    for n in 0.. {
        let value = if n % 2 == 0 {
            noise(6000, n)
        } else {
            document(15_000, n)
        };
        let reference = put(&store, &value).await.reference;
        if reference.segment() != 1 {
            break;
        }
        rows.push((reference, value));
    }
    let path = segment_path(dir.path(), 1);
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let bytes = fs::read(&path).unwrap();
    let mut refused = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let near: Vec<_> = rows
            .iter()
            .filter(|(r, _)| {
                let start = r.offset() as usize;
                (start.saturating_sub(8)..start + 88 + r.stored_len() as usize).contains(&at)
            })
            .cloned()
            .collect();
        if near.is_empty() {
            continue;
        }
        file.write_all_at(&[byte ^ (1 << (at % 8))], at as u64)
            .unwrap();
        refused += check(&store, &near, at).await;
        file.write_all_at(&[*byte], at as u64).unwrap();
    }
    let covered: usize = rows.iter().map(|(r, _)| 80 + r.stored_len() as usize).sum();
    assert_eq!(refused, covered);
    assert_eq!(check(&store, &rows, 0).await, 0);
}

/// Proves: with any byte flipped before the store is opened, in headers, seals, records and the
/// unused rest of an open segment, opening works and each read is right or refused.
#[tokio::test]
async fn every_byte_before_opening() {
    let disk = SimDisk::default();
    let open = |disk: &SimDisk| {
        Store::open_on(Arc::new(disk.clone()), small("simulated".as_ref())).unwrap()
    };
    let store = open(&disk);
    let mut rows = Vec::new();
    for n in 0..5 {
        rows.push((
            put(&store, &noise(13_000, n)).await.reference,
            noise(13_000, n),
        ));
    }
    for n in 0..3 {
        rows.push((
            put(&store, &document(400, n)).await.reference,
            document(400, n),
        ));
    }
    let (sealed, last) = (rows[0].0, rows[7].0);
    assert_ne!(sealed.segment(), last.segment());
    store.close();

    let name = |r: Reference| format!("segments/{:08x}.seg", r.segment());
    let len = SEGMENT_LEN as usize;
    let record = sealed.offset() as usize;
    let in_sealed = (0..64).chain(record..record + 100).chain(len - 64..len);
    let used_end = last.offset() as usize + 80 + last.stored_len() as usize + 32;
    let in_open = (0..64).chain(4000..used_end).chain(len - 64..len);
    let cases = in_sealed
        .map(|at| (name(sealed), at))
        .chain(in_open.map(|at| (name(last), at)));
    let mut refused = 0;
    for (name, at) in cases {
        let copy = disk.after_power_loss(1);
        copy.flip(&name, at, 1 << (at % 8));
        let store = open(&copy);
        refused += check(&store, &rows, at).await;
        let new = put(&store, b"new").await.reference;
        store.close();
        let store = open(&copy);
        assert_eq!(store.get(&new).await.unwrap(), "new");
        check(&store, &rows, at).await;
    }
    assert!(refused > 500, "{refused}");
}
