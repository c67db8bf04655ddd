//! Directories that earlier versions of the program wrote must stay readable for ever.
//!
//! `tests/fixtures/v1` was made by
//! `cargo test -p toastrack-offload --test golden -- --ignored make_v1` and is never made again: a
//! change that needs new fixtures is a new format version, with fixtures of its own.
//!
//! In each directory `rows` lists what was put: kind, text spelling of the reference, value in hex.
//! `good` was closed; `torn` has the end of its last record missing; `flipped` has one byte of its
//! first record changed. All have a sealed and an open segment.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{document, noise, put, segment_path, small};
use tempfile::TempDir;
use toastrack_offload::{Codec, Kind, Reference, Store, ValueKind};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/v1")
        .join(name)
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Opens a copy of a fixture, without its list of rows.
fn opened(name: &str) -> (TempDir, Store, Vec<(Reference, Vec<u8>)>) {
    let dir = tempfile::tempdir().unwrap();
    copy_dir(&fixture(name).join("store"), dir.path());
    let store = Store::open(small(dir.path())).unwrap();
    let rows = fs::read_to_string(fixture(name).join("rows"))
        .unwrap()
        .lines()
        .map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let reference = store.parse_any_text(fields[1].as_bytes()).unwrap();
            assert_eq!(reference.kind().name(), fields[0]);
            (reference, unhex(fields[2]))
        })
        .collect();
    (dir, store, rows)
}

fn unhex(digits: &str) -> Vec<u8> {
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}

/// Proves: everything in a good directory of version 1 reads, and it can be written on.
#[tokio::test]
async fn v1_good_reads_and_writes() {
    let (_dir, store, rows) = opened("good");
    assert!(rows.iter().any(|(r, _)| r.codec() == Codec::Lz4));
    assert!(rows.iter().any(|(r, _)| r.codec() == Codec::Raw));
    for (reference, value) in &rows {
        assert_eq!(store.get(reference).await.unwrap(), value);
        assert_eq!(reference.logical_len() as usize, value.len());
    }
    let last = rows.last().unwrap().0;
    let new = put(&store, b"new").await.reference;
    assert_eq!(new.segment(), last.segment());
    assert!(new.offset() > last.offset());
}

/// Proves: a torn directory of version 1 loses the torn record and nothing else.
#[tokio::test]
async fn v1_torn_loses_only_what_was_torn() {
    let (dir, store, rows) = opened("torn");
    let ((torn, _), whole) = rows.split_last().unwrap();
    for (reference, value) in whole {
        assert_eq!(store.get(reference).await.unwrap(), value);
    }
    let error = store.get(torn).await.unwrap_err();
    assert!(matches!(error.kind(), Kind::Corrupt), "{error}");
    let new = put(&store, b"new").await.reference;
    assert_ne!(new.segment(), torn.segment());
    let sealed = fs::read(segment_path(dir.path(), torn.segment())).unwrap();
    assert_eq!(sealed[sealed.len() - 64..][..8], *b"TOASTEND");
}

/// Proves: the flipped byte in version 1 is noticed and named, the rest reads.
#[tokio::test]
async fn v1_flipped_is_noticed() {
    let (_dir, store, rows) = opened("flipped");
    let error = store.get(&rows[0].0).await.unwrap_err();
    assert!(matches!(error.kind(), Kind::Corrupt), "{error}");
    assert!(
        error
            .to_string()
            .contains("segment 00000001 at offset 4096"),
        "{error}"
    );
    for (reference, value) in &rows[1..] {
        assert_eq!(store.get(reference).await.unwrap(), value);
    }
}

/// Makes the fixtures of version 1. See the head of this file before running it.
#[tokio::test]
#[ignore = "makes fixtures; run once for a format version"]
async fn make_v1() {
    for name in ["good", "torn", "flipped"] {
        let to = fixture(name);
        assert!(!to.exists(), "fixtures are never made again");
        let directory = to.join("store");
        let options = toastrack_offload::StoreOptions {
            server_digest: true,
            ..small(&directory)
        };
        let store = Store::open(options).unwrap();
        let mut rows = String::new();
        let mut last = None;
        let kinds = (0..).filter_map(|n: u8| ValueKind::from_code(n % 5 + 1));
        for (n, kind) in kinds.enumerate().take(14) {
            let value = match n % 3 {
                0 => noise(7000, n as u64),
                1 => document(3000, n as u64),
                _ => noise(n * 31, n as u64),
            };
            let stored = loop {
                match store.put(kind, value.len() as u32, &value) {
                    Ok(stored) => break stored,
                    Err(_) => store.room().await.unwrap(),
                }
            };
            store.durable(stored.ticket).await.unwrap();
            let text = String::from_utf8(stored.reference.to_text().to_vec()).unwrap();
            let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
            rows += &format!("{} {text} {hex}\n", kind.name());
            last = Some(stored.reference);
        }
        // One more segment's worth, so that the first is sealed.
        for n in 0..4 {
            let value = noise(9000, 100 + n);
            let reference = put(&store, &value).await.reference;
            let text = String::from_utf8(reference.to_text().to_vec()).unwrap();
            let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
            rows += &format!("bytea {text} {hex}\n");
            last = Some(reference);
        }
        store.close();
        let last = last.unwrap();
        assert_ne!(last.segment(), 1);
        let path = segment_path(&directory, if name == "torn" { last.segment() } else { 1 });
        let mut bytes = fs::read(&path).unwrap();
        match name {
            "torn" => bytes[last.offset() as usize + 5000..].fill(0),
            "flipped" => bytes[4096 + 80 + 1234] ^= 0x10,
            _ => {}
        }
        fs::write(&path, bytes).unwrap();
        fs::write(to.join("rows"), rows).unwrap();
    }
}
