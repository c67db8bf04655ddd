//! What opening makes of files that were not closed, or were damaged.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::fs;
use std::path::Path;

use common::{HEADER_LEN, RECORDS_START, SEGMENT_LEN, noise, put, segment_path, small_raw};
use tempfile::TempDir;
use toastrack_offload::{Kind, Reference, Store};

/// A store in which `lens` were put, closed.
async fn store_of(lens: &[usize]) -> (TempDir, Vec<(Reference, Vec<u8>)>) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(small_raw(dir.path())).unwrap();
    let mut rows = Vec::new();
    for (n, len) in lens.iter().enumerate() {
        let value = noise(*len, n as u64 + 1);
        rows.push((put(&store, &value).await.reference, value));
    }
    store.close();
    (dir, rows)
}

fn copy_of(dir: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    fs::create_dir(copy.path().join("segments")).unwrap();
    for folder in ["", "segments"] {
        for entry in fs::read_dir(dir.join(folder)).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                fs::copy(
                    entry.path(),
                    copy.path().join(folder).join(entry.file_name()),
                )
                .unwrap();
            }
        }
    }
    copy
}

fn edit(dir: &Path, segment: u32, change: impl FnOnce(&mut [u8])) {
    let path = segment_path(dir, segment);
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
}

/// Proves: a last record cut at any byte is cut off; what is before it reads, writing goes on, and
/// opening again changes nothing more.
#[tokio::test]
async fn the_tail_is_cut_at_every_byte_of_the_last_record() {
    let (dir, rows) = store_of(&[500, 300, 250]).await;
    let (last, value) = &rows[2];
    let start = last.offset() as usize;
    let end = start + HEADER_LEN + value.len();
    for cut in start..=end {
        let copy = copy_of(dir.path());
        edit(copy.path(), last.segment(), |bytes| bytes[cut..end].fill(0));
        let store = Store::open(small_raw(copy.path())).unwrap();
        for (reference, value) in &rows[..2] {
            assert_eq!(store.get(reference).await.unwrap(), value, "cut {cut}");
        }
        match store.get(last).await {
            Ok(read) => assert_eq!(read, value, "cut {cut}"),
            Err(error) => {
                assert_eq!(error.kind(), Kind::Corrupt);
                assert!(cut < end, "{error}");
            }
        }
        let new = put(&store, b"written after the cut").await.reference;
        // Nothing is ever written over or behind what did not verify.
        let torn = cut > start && cut < end;
        assert_eq!(new.segment() != last.segment(), torn, "cut {cut}");
        store.close();
        let store = Store::open(small_raw(copy.path())).unwrap();
        assert_eq!(store.get(&new).await.unwrap(), "written after the cut");
        assert_eq!(store.get(&rows[0].0).await.unwrap(), rows[0].1);
        let next = put(&store, b"and again").await.reference;
        assert_eq!(next.segment(), new.segment());
        if torn {
            let len = fs::metadata(segment_path(copy.path(), last.segment()))
                .unwrap()
                .len();
            assert!(len < SEGMENT_LEN, "unused space is given back, {len}");
        }
    }
}

/// Proves: damage before the last record of an open segment costs that record alone: those after
/// it verify and are kept.
#[tokio::test]
async fn records_after_damage_are_kept() {
    let (dir, rows) = store_of(&[500, 300, 250]).await;
    for at in [0, 4, 8, 20, HEADER_LEN + 10] {
        let copy = copy_of(dir.path());
        let middle = rows[1].0;
        edit(copy.path(), middle.segment(), |bytes| {
            bytes[middle.offset() as usize + at] ^= 0x40;
        });
        for _ in 0..2 {
            let store = Store::open(small_raw(copy.path())).unwrap();
            assert_eq!(store.get(&rows[0].0).await.unwrap(), rows[0].1);
            assert_eq!(store.get(&rows[2].0).await.unwrap(), rows[2].1);
            let error = store.get(&middle).await.unwrap_err();
            assert_eq!(error.kind(), Kind::Corrupt);
            assert_eq!(error.sqlstate(), "XX001");
            let place = format!("{:08x} at offset {}", middle.segment(), middle.offset());
            assert!(error.to_string().contains(&place), "{error}");
            let new = put(&store, b"new").await.reference;
            assert_ne!(new.segment(), middle.segment());
        }
    }
}

/// Proves: damage in a sealed segment is reported on read and never cut: the file stays as it is.
#[tokio::test]
async fn sealed_segments_are_not_cut() {
    let (dir, rows) = store_of(&[20_000; 6]).await;
    let (first, _) = rows[0];
    assert_ne!(first.segment(), rows[5].0.segment());
    edit(dir.path(), first.segment(), |bytes| {
        bytes[first.offset() as usize + 5000] ^= 1;
    });
    let before = fs::read(segment_path(dir.path(), first.segment())).unwrap();
    for _ in 0..2 {
        let store = Store::open(small_raw(dir.path())).unwrap();
        assert_eq!(store.get(&first).await.unwrap_err().kind(), Kind::Corrupt);
        for (reference, value) in &rows[1..] {
            assert_eq!(store.get(reference).await.unwrap(), value);
        }
        put(&store, b"new").await;
    }
    let after = fs::read(segment_path(dir.path(), first.segment())).unwrap();
    assert!(before == after);
}

/// Proves: with a damaged seal every record still reads and the segment is sealed again; with a
/// damaged header too, and then nothing is written to it.
#[tokio::test]
async fn damaged_seals_and_headers_cost_no_value() {
    let (dir, rows) = store_of(&[20_000; 4]).await;
    let sealed = rows[0].0.segment();
    let open = rows[3].0.segment();
    assert_ne!(sealed, open);
    let seal_at = SEGMENT_LEN as usize - 64;
    for (segment, at) in [
        (sealed, seal_at + 40),
        (sealed, 20),
        (open, 20),
        (open, seal_at),
    ] {
        let copy = copy_of(dir.path());
        edit(copy.path(), segment, |bytes| bytes[at] ^= 2);
        for _ in 0..2 {
            let store = Store::open(small_raw(copy.path())).unwrap();
            for (reference, value) in &rows {
                assert_eq!(store.get(reference).await.unwrap(), value, "{segment} {at}");
            }
            let new = put(&store, b"new").await.reference;
            assert_ne!(new.segment(), segment);
        }
    }
}

/// Proves: a segment of a newer format is refused with its number, in the header and in the seal.
#[tokio::test]
async fn newer_segments_are_refused_with_their_version() {
    let (dir, rows) = store_of(&[20_000; 4]).await;
    for at in [0, SEGMENT_LEN as usize - 64] {
        let copy = copy_of(dir.path());
        edit(copy.path(), rows[0].0.segment(), |bytes| {
            let block = &mut bytes[at..at + 64];
            block[8] = 7;
            let crc = crc32c::crc32c(&block[..60]);
            block[60..].copy_from_slice(&crc.to_le_bytes());
        });
        let refused = Store::open(small_raw(copy.path())).unwrap_err();
        assert_eq!(refused.kind(), Kind::BadConfig);
        assert!(refused.to_string().contains("format 7"), "{refused}");
    }
}

/// Proves: a missing or shortened segment file is damage that names the place, not a panic.
#[tokio::test]
async fn missing_and_short_files_are_damage() {
    let (dir, rows) = store_of(&[20_000; 4]).await;
    let (first, value) = &rows[0];
    let path = segment_path(dir.path(), first.segment());
    let bytes = fs::read(&path).unwrap();
    for len in [0, 63, RECORDS_START, RECORDS_START + 100, 25_000] {
        fs::write(&path, &bytes[..len]).unwrap();
        let store = Store::open(small_raw(dir.path())).unwrap();
        match store.get(first).await {
            Ok(read) => assert_eq!((read, len), (value.clone().into(), 25_000)),
            Err(error) => {
                assert_eq!(error.kind(), Kind::Corrupt);
                assert!(error.to_string().contains("at offset 4096"), "{error}");
            }
        }
    }
    fs::remove_file(&path).unwrap();
    let store = Store::open(small_raw(dir.path())).unwrap();
    let error = store.get(first).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt);
    assert!(error.to_string().contains("missing"), "{error}");
    let many = store.get_many(&[rows[3].0, *first, rows[1].0]).await;
    assert_eq!(*many[0].as_ref().unwrap(), rows[3].1);
    assert_eq!(many[1].as_ref().unwrap_err().kind(), Kind::Corrupt);
}

/// Proves: drafts of segments go, files that are not the store's stay.
#[tokio::test]
async fn drafts_go_and_foreign_files_stay() {
    let (dir, rows) = store_of(&[100]).await;
    let segments = dir.path().join("segments");
    fs::write(segments.join("00000009.tmp"), "half").unwrap();
    fs::write(segments.join("readme"), "mine").unwrap();
    fs::write(segments.join("0000000A.seg"), "not a name of ours").unwrap();
    let store = Store::open(small_raw(dir.path())).unwrap();
    assert_eq!(store.get(&rows[0].0).await.unwrap(), rows[0].1);
    assert!(!segments.join("00000009.tmp").exists());
    assert!(segments.join("readme").exists());
    assert!(segments.join("0000000A.seg").exists());
}

/// Proves: a payload that spells records of its own cannot make recovery believe in them, nor cost
/// a record that is there.
#[tokio::test]
async fn records_inside_a_payload_are_not_found() {
    let (dir, rows) = store_of(&[500, 300]).await;
    let file = fs::read(segment_path(dir.path(), 1)).unwrap();
    let copied = file[rows[0].0.offset() as usize..][..HEADER_LEN + 500].repeat(20);
    let store = Store::open(small_raw(dir.path())).unwrap();
    let hostile = put(&store, &copied).await.reference;
    let after = put(&store, b"after").await.reference;
    store.close();
    edit(dir.path(), 1, |bytes| {
        bytes[hostile.offset() as usize + 70] ^= 1
    });
    let store = Store::open(small_raw(dir.path())).unwrap();
    assert_eq!(store.get(&hostile).await.unwrap_err().kind(), Kind::Corrupt);
    assert_eq!(store.get(&after).await.unwrap(), "after");
    assert_eq!(store.get(&rows[1].0).await.unwrap(), rows[1].1);
}
