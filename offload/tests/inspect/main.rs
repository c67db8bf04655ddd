//! Looking into a store from outside: every flipped byte is noticed, nothing panics, and a writer at
//! work is not called damage.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod blocks;
#[path = "../common/mod.rs"]
mod common;
mod live;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::{HEADER_LEN, RECORDS_START, document, noise, put, segment_path, small};
use tempfile::TempDir;
use toastrack_offload::inspect::{
    Damage, Depth, Finding, Inspector, Pace, SegmentReport, SegmentState,
};
use toastrack_offload::{Kind, MAX_RECORD_LEN, Reference, Store};

/// What a walk over all segments found.
#[derive(Default, Debug)]
struct Found {
    records: Vec<(u32, u32)>,
    damaged: Vec<Damage>,
    remains: Vec<Damage>,
    reports: Vec<SegmentReport>,
}

impl Found {
    fn is_sound(&self) -> bool {
        self.reports.iter().all(SegmentReport::is_sound)
    }
}

fn inspector(directory: &Path) -> Inspector {
    Inspector::open(directory)
        .unwrap()
        .settle_within(Duration::ZERO)
}

fn walk(inspector: &Inspector) -> Found {
    let mut found = Found::default();
    for segment in inspector.list().unwrap().segments {
        let mut visit = |finding: Finding<'_>| match finding {
            Finding::Record(chunk) => found.records.push((chunk.segment(), chunk.offset())),
            Finding::Newer(chunk) => panic!("{chunk:?}"),
            Finding::Damaged(damage) => found.damaged.push(damage.clone()),
            Finding::Remains(damage) => found.remains.push(damage.clone()),
        };
        let report = inspector
            .walk(segment, Depth::Values, &mut Pace::unbounded(), &mut visit)
            .unwrap();
        assert_eq!(report.damaged as usize, {
            let here = found.damaged.iter().filter(|d| d.segment == segment);
            here.count()
        });
        found.reports.push(report);
    }
    found
}

/// A store that was closed: segment 1 sealed, 2 open, with raw and compressed values.
async fn closed() -> (TempDir, Vec<(Reference, Vec<u8>)>) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(toastrack_offload::StoreOptions {
        server_digest: true,
        ..small(dir.path())
    })
    .unwrap();
    let mut rows = Vec::new();
    for n in 0.. {
        let value = match n % 3 {
            0 => noise(5003, n),
            1 => document(9000, n),
            _ => noise(41, n),
        };
        let reference = put(&store, &value).await.reference;
        rows.push((reference, value));
        if reference.segment() > 1 && rows.len() % 3 == 2 {
            break;
        }
    }
    store.close();
    (dir, rows)
}

fn flip(path: &Path, at: u64, mask: u8) {
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ mask], at).unwrap();
}

/// Proves: a store that is whole is sound, with exactly the records that were put, and each reads
/// back by its reference and by its place.
#[tokio::test]
async fn a_whole_store_is_sound() {
    let (dir, rows) = closed().await;
    let inspector = inspector(dir.path());
    assert_eq!(inspector.key_problem(), None);
    let found = walk(&inspector);
    assert!(found.is_sound(), "{found:?}");
    let places: Vec<(u32, u32)> = rows.iter().map(|r| (r.0.segment(), r.0.offset())).collect();
    assert_eq!(found.records, places);
    assert_eq!(
        found.reports[0].state,
        SegmentState::Sealed { recovered: false }
    );
    assert_eq!(found.reports[1].state, SegmentState::Open);
    for (reference, value) in &rows {
        assert_eq!(&inspector.read(reference).unwrap().1, value);
        let (chunk, _) = inspector
            .read_at(reference.segment(), reference.offset())
            .unwrap();
        assert_eq!(inspector.reference(&chunk).unwrap(), *reference);
        let text = reference.to_text();
        assert_eq!(inspector.parse_any_text(&text).unwrap(), *reference);
    }
    for (segment, report) in (1..).zip(&found.reports) {
        let survey = inspector.survey(segment, &mut Pace::unbounded()).unwrap();
        assert_eq!(
            (survey.tail, survey.records),
            (report.tail, report.records),
            "{segment}"
        );
    }
}

/// Proves: each byte of a segment, flipped, is noticed, whatever it belongs to: header, record,
/// payload, padding, unused space, seal; the other records still verify.
#[tokio::test]
async fn every_flipped_byte_is_noticed() {
    let (dir, rows) = closed().await;
    let inspector = inspector(dir.path());
    for segment in [1, 2] {
        let path = segment_path(dir.path(), segment);
        let len = fs::metadata(&path).unwrap().len();
        let whole = rows.iter().filter(|r| r.0.segment() == segment).count();
        // Every byte of headers, seal and the first records; a prime stride elsewhere.
        let every = (0..64)
            .chain(4096..4096 + 200)
            .chain(len - 64..len)
            .chain((64..len).step_by(101));
        let mut checked = 0;
        for at in every {
            let mask = 1 << (at % 8);
            flip(&path, at, mask);
            let found = walk(&inspector);
            let report = &found.reports[segment as usize - 1];
            assert!(!report.is_sound(), "segment {segment} byte {at}");
            assert!(report.records as usize >= whole - 1, "{at}: {report:?}");
            flip(&path, at, mask);
            checked += 1;
        }
        assert!(checked > 900);
        assert!(walk(&inspector).is_sound());
    }
}

/// Proves: damage is listed where it is, one entry for each damaged record, and reading that record
/// is refused with segment and offset.
#[tokio::test]
async fn damage_is_listed_by_place() {
    let (dir, rows) = closed().await;
    let inspector = inspector(dir.path());
    let path = segment_path(dir.path(), 1);
    // Two neighbours: one in its payload, one in its checksum.
    let (first, second) = (rows[3].0, rows[4].0);
    flip(&path, u64::from(first.offset()) + 90, 4);
    flip(&path, u64::from(second.offset()) + 5, 4);
    let found = walk(&inspector);
    let offsets: Vec<u64> = found.damaged.iter().map(|d| d.offset).collect();
    assert_eq!(
        offsets,
        [u64::from(first.offset()), u64::from(second.offset())]
    );
    assert!(found.damaged[0].seen.contains("checksum"), "{found:?}");
    assert_eq!(found.records.len(), rows.len() - 2);
    let error = inspector.read(&first).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt);
    let place = format!("segment 00000001 at offset {}", first.offset());
    assert!(error.to_string().contains(&place), "{error}");
    // A reference to nowhere, and one to the middle of a record.
    for (segment, offset) in [(7, 4096), (1, first.offset() + 8), (1, u32::MAX)] {
        let error = inspector.read_at(segment, offset).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt, "{error}");
    }
}

/// Proves: a record that was zeroed is missed, in a sealed segment and in the middle of an open one.
#[tokio::test]
async fn a_record_that_is_zero_is_missed() {
    let (dir, rows) = closed().await;
    for segment in [1, 2] {
        let row = rows.iter().find(|r| r.0.segment() == segment).unwrap().0;
        let path = segment_path(dir.path(), segment);
        let bytes = fs::read(&path).unwrap();
        let mut zeroed = bytes.clone();
        let start = row.offset() as usize;
        zeroed[start..start + HEADER_LEN + row.stored_len() as usize].fill(0);
        fs::write(&path, &zeroed).unwrap();
        let found = walk(&inspector(dir.path()));
        assert!(!found.is_sound());
        assert_eq!(found.damaged[0].offset, u64::from(row.offset()));
        fs::write(&path, &bytes).unwrap();
    }
}

/// Proves: files cut at any length, empty, of noise, of another store, under another number, or of a
/// newer version are named as such, without a panic, and nothing in them counts as a record.
#[tokio::test]
async fn files_that_are_no_segments_are_named() {
    let (dir, rows) = closed().await;
    let (other, _) = closed().await;
    let path = segment_path(dir.path(), 1);
    let bytes = fs::read(&path).unwrap();
    let inspector = inspector(dir.path());
    let mut versioned = bytes.clone();
    versioned[8] = 9;
    let crc = crc32c::crc32c(&versioned[..60]).to_le_bytes();
    versioned[60..64].copy_from_slice(&crc);
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("one byte", vec![7]),
        ("63 bytes", bytes[..63].to_vec()),
        ("header", bytes[..64].to_vec()),
        ("header block", bytes[..4096].to_vec()),
        ("odd", bytes[..30_001].to_vec()),
        ("blocks", bytes[..32_768].to_vec()),
        ("no seal", bytes[..bytes.len() - 64].to_vec()),
        ("longer", [bytes.clone(), vec![0; 4096]].concat()),
        ("noise", noise(100_000, 3)),
        ("zero", vec![0; 65_536]),
        ("other", fs::read(segment_path(other.path(), 1)).unwrap()),
        ("moved", fs::read(segment_path(dir.path(), 2)).unwrap()),
        ("newer", versioned),
    ];
    for (name, content) in cases {
        fs::write(&path, &content).unwrap();
        let found = walk(&inspector);
        let report = &found.reports[0];
        assert!(!report.is_sound(), "{name}");
        if let "empty" | "noise" | "zero" | "other" | "moved" | "newer" = name {
            assert_eq!(report.records, 0, "{name}");
        }
        if name == "newer" {
            assert_eq!(report.state, SegmentState::UnknownVersion(9));
            assert!(report.faults[0].contains("format 9"), "{report:?}");
        }
        if name == "longer" {
            let whole = rows.iter().filter(|r| r.0.segment() == 1).count();
            assert_eq!(report.records as usize, whole);
        }
    }
}

/// Proves: a directory, a pipe or a link in a segment's place is damage, and holds up nobody.
#[tokio::test]
async fn what_is_no_file_is_damage() {
    let (dir, rows) = closed().await;
    let path = |segment| segment_path(dir.path(), segment);
    fs::create_dir(path(10)).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", path(12)).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(path(11)).status();
    assert!(pipe.unwrap().success());
    let inspector = inspector(dir.path());
    for segment in [10, 11, 12] {
        let walked = inspector.walk(
            segment,
            Depth::Values,
            &mut Pace::unbounded(),
            &mut |finding| panic!("{finding:?}"),
        );
        assert!(walked.is_err() || !walked.unwrap().is_sound(), "{segment}");
    }
    assert_eq!(inspector.read(&rows[0].0).unwrap().1, rows[0].1);
}

/// Proves: a superblock that is damaged, missing or of a newer format is refused with what it is; a
/// key that is missing or another's leaves checksums to be checked, and says so.
#[tokio::test]
async fn without_superblock_or_key() {
    let (dir, rows) = closed().await;
    let (other, _) = closed().await;
    let key = dir.path().join("key");
    let whole = fs::read(&key).unwrap();
    for (content, problem) in [
        (None, "cannot be read"),
        (Some(vec![1; 31]), "32 bytes"),
        (Some(Vec::new()), "32 bytes"),
        (
            Some(fs::read(other.path().join("key")).unwrap()),
            "another store",
        ),
    ] {
        match content {
            Some(content) => fs::write(&key, content).unwrap(),
            None => fs::remove_file(&key).unwrap(),
        }
        let inspector = inspector(dir.path());
        let said = inspector.key_problem().unwrap();
        assert!(said.contains(problem), "{said}");
        assert_eq!(inspector.parse_any_text(&rows[0].0.to_text()), None);
        let found = walk(&inspector);
        assert!(found.is_sound());
        assert_eq!(found.records.len(), rows.len());
    }
    fs::write(&key, whole).unwrap();
    let superblock = dir.path().join("toastrack-store");
    let text = fs::read_to_string(&superblock).unwrap();
    for (content, problem) in [
        (text.replace("format 1", "format 12"), "format 12"),
        (text.replace("store ", "store 0"), "damaged"),
        ("something".to_owned(), "not a store's"),
        (String::new(), "not a store's"),
    ] {
        fs::write(&superblock, content).unwrap();
        let error = Inspector::open(dir.path()).unwrap_err();
        assert_eq!(error.kind(), Kind::BadConfig);
        assert!(error.to_string().contains(problem), "{error}");
    }
    fs::remove_file(&superblock).unwrap();
    assert!(Inspector::open(dir.path()).is_err());
    assert!(Inspector::open(&PathBuf::from("/nowhere/at/all")).is_err());
}

/// Proves: with the key, content whose checksum was made right again is still found to be another.
#[tokio::test]
async fn identity_is_checked() {
    let (dir, rows) = closed().await;
    let row = rows.iter().find(|r| r.1.len() == 41).unwrap().0;
    let path = segment_path(dir.path(), row.segment());
    let mut bytes = fs::read(&path).unwrap();
    let at = row.offset() as usize;
    let superblock = fs::read_to_string(dir.path().join("toastrack-store")).unwrap();
    let id = superblock
        .lines()
        .nth(2)
        .unwrap()
        .split_once(' ')
        .unwrap()
        .1;
    let store_id: Vec<u8> = (0..16)
        .map(|n| u8::from_str_radix(&id[2 * n..2 * n + 2], 16).unwrap())
        .collect();
    let end = at + HEADER_LEN + 41;
    bytes[end - 1] ^= 1;
    // No digest, which would give it away first.
    bytes[at + 23] = 0;
    bytes[at + 48..at + 80].fill(0);
    let crc = crc32c::crc32c_append(crc32c::crc32c(&store_id), &bytes[at + 8..end]);
    bytes[at + 4..at + 8].copy_from_slice(&crc.to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    let found = walk(&inspector(dir.path()));
    assert_eq!(found.damaged.len(), 1, "{found:?}");
    assert!(found.damaged[0].seen.contains("identity"));
    fs::remove_file(dir.path().join("key")).unwrap();
    assert!(walk(&inspector(dir.path())).is_sound());
}

/// Proves: what recovery cut is not called damage afterwards; damage that came later in that segment
/// is.
#[tokio::test]
async fn what_recovery_cut_is_told_from_damage() {
    let (dir, rows) = closed().await;
    let last = rows.last().unwrap().0;
    let path = segment_path(dir.path(), last.segment());
    flip(&path, u64::from(last.offset()) + 90, 1);
    // Nobody has looked at it yet: it may be a record that was acknowledged.
    assert!(!walk(&inspector(dir.path())).is_sound());
    Store::open(small(dir.path())).unwrap().close();
    let found = walk(&inspector(dir.path()));
    assert!(found.is_sound(), "{found:?}");
    assert_eq!(found.remains.len(), 1);
    assert_eq!(found.remains[0].offset, u64::from(last.offset()));
    assert_eq!(
        inspector(dir.path()).read(&last).unwrap_err().kind(),
        Kind::Corrupt
    );
    let before = rows[rows.len() - 2].0;
    assert_eq!(before.segment(), last.segment());
    flip(&path, u64::from(before.offset()) + 90, 1);
    let found = walk(&inspector(dir.path()));
    assert!(!found.is_sound() && !found.damaged.is_empty(), "{found:?}");
}

/// Proves: a walk is held back to the rate that was asked for.
#[tokio::test]
async fn a_walk_keeps_its_pace() {
    let (dir, _) = closed().await;
    let inspector = inspector(dir.path());
    let mut pace = Pace::new(Some(400_000), |_| {});
    let began = Instant::now();
    for segment in [1, 2] {
        inspector
            .walk(segment, Depth::Values, &mut pace, &mut |_| {})
            .unwrap();
    }
    let due = Duration::from_secs_f64(pace.bytes() as f64 / 400_000.0);
    assert!(pace.bytes() > 64 << 10);
    assert!(began.elapsed() >= due - Duration::from_millis(10));
}

/// Proves: bytes of any kind in a segment's place lead to findings and not to a panic, and no noise
/// is taken for a record. The seed of each round is its number.
#[tokio::test]
async fn random_damage_never_panics() {
    let (dir, rows) = closed().await;
    let inspector = inspector(dir.path());
    let path = segment_path(dir.path(), 1);
    let whole = fs::read(&path).unwrap();
    let good: Vec<(u32, u32)> = rows.iter().map(|r| (r.0.segment(), r.0.offset())).collect();
    let began = Instant::now();
    let mut rounds = 0;
    for seed in 0..400u64 {
        let random = noise(64, seed + 1);
        let word = |n: usize| u32::from_le_bytes(random[4 * n..4 * n + 4].try_into().unwrap());
        let mut bytes = whole.clone();
        for n in 0..1 + seed as usize % 4 {
            let at = word(2 * n) as usize % bytes.len();
            let len = (word(2 * n + 1) as usize % 6000).min(bytes.len() - at);
            match seed % 3 {
                0 => bytes[at..at + len].copy_from_slice(&noise(len, seed * 31)),
                1 => bytes[at..at + len].fill(0),
                _ => bytes.copy_within(RECORDS_START..RECORDS_START + len.min(3000), at.min(3000)),
            }
        }
        if seed % 5 == 0 {
            bytes.truncate(word(15) as usize % bytes.len());
        }
        fs::write(&path, &bytes).unwrap();
        let found = walk(&inspector);
        assert!(
            found.records.iter().all(|place| good.contains(place)),
            "seed {seed}"
        );
        assert!(bytes == whole || !found.is_sound(), "seed {seed}");
        rounds += 1;
        if began.elapsed() > Duration::from_secs(20) {
            break;
        }
    }
    println!("{rounds} rounds, seeds 0..{rounds}");
    let text = rows[0].0.to_text();
    for seed in 0..20_000u64 {
        let random = noise(3, seed + 1);
        let mut changed = text;
        changed[usize::from(random[0]) % text.len()] ^= random[1] | 1;
        assert_eq!(inspector.parse_any_text(&changed), None, "seed {seed}");
    }
}

/// Proves: a value in pieces reads back by its reference, its pieces are listed and verify, and damage
/// to one of them is an error that names the piece.
#[tokio::test]
async fn values_in_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(toastrack_offload::StoreOptions {
        segment_len_bytes: 2 << 20,
        ..small(dir.path())
    })
    .unwrap();
    let value = noise(7 * MAX_RECORD_LEN / 2, 5);
    let reference = put(&store, &value).await.reference;
    let short = put(&store, &value[..100]).await.reference;
    store.close();
    let inspector = inspector(dir.path());
    let found = walk(&inspector);
    assert!(found.is_sound(), "{found:?}");
    assert_eq!(inspector.read(&reference).unwrap().1, value);
    let pieces = inspector.pieces(&reference).unwrap();
    assert_eq!(pieces.len(), 4);
    assert_eq!(found.records.len(), 6);
    let read = pieces.iter().map(|piece| inspector.read(piece).unwrap().1);
    assert_eq!(read.collect::<Vec<_>>().concat(), value);
    assert_eq!(inspector.pieces(&short).unwrap(), []);

    let piece = pieces[2];
    let path = segment_path(dir.path(), piece.segment());
    flip(&path, u64::from(piece.offset()) + 5000, 1);
    assert_eq!(walk(&inspector).damaged.len(), 1);
    let error = inspector.read(&reference).unwrap_err();
    let place = format!(
        "segment {:08x} at offset {}",
        piece.segment(),
        piece.offset()
    );
    assert!(error.to_string().contains(&place), "{error}");
    flip(&path, u64::from(piece.offset()) + 5000, 1);

    // The list of pieces itself.
    let path = segment_path(dir.path(), reference.segment());
    flip(&path, u64::from(reference.offset()) + 90, 1);
    assert!(inspector.read(&reference).is_err() && inspector.pieces(&reference).is_err());
    assert_eq!(
        walk(&inspector).damaged[0].offset,
        u64::from(reference.offset())
    );
}
