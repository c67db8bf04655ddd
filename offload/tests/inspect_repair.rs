//! Repair: what verifies stays where it is, what a copy has comes back, nothing is deleted.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use common::sim::SimDisk;
use common::{RECORDS_START, noise, put, segment_path, small_raw};
use tempfile::TempDir;
use toastrack_offload::disk::Disk;
use toastrack_offload::inspect::repair::{Plan, QUARANTINE, Repair, Step};
use toastrack_offload::inspect::snapshot::{Method, take};
use toastrack_offload::inspect::{Depth, Finding, Inspector, Pace};
use toastrack_offload::{Kind, Reference, Store};

struct Case {
    dir: TempDir,
    rows: Vec<(Reference, Vec<u8>)>,
}

impl Case {
    /// A closed store of two sealed segments and an open one, and a full copy of it.
    async fn new() -> Case {
        let dir = tempfile::tempdir().unwrap();
        let mut case = Case {
            dir,
            rows: Vec::new(),
        };
        let store = Store::open(small_raw(&case.store())).unwrap();
        for n in 0..30 {
            let value = noise(3000 + 131 * n as usize, n);
            let reference = put(&store, &value).await.reference;
            case.rows.push((reference, value));
        }
        store.close();
        assert_eq!(case.rows.last().unwrap().0.segment(), 3);
        let pace = &mut Pace::unbounded();
        take(&case.store(), &case.copy(), Method::Copy, pace).unwrap();
        case
    }

    fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    fn copy(&self) -> PathBuf {
        self.dir.path().join("copy")
    }

    fn change(&self, segment: u32, change: impl FnOnce(&mut Vec<u8>)) {
        let path = segment_path(&self.store(), segment);
        let mut bytes = fs::read(&path).unwrap();
        change(&mut bytes);
        fs::write(&path, bytes).unwrap();
    }

    /// Plans, does it, and sees that nothing that verified before changed or moved.
    fn repair(&self, with_copy: bool) -> Plan {
        let before = verified(&self.store());
        let copy = self.copy();
        let repair = Repair::begin(&self.store(), with_copy.then_some(&*copy)).unwrap();
        let plan = repair.plan(&mut Pace::unbounded()).unwrap();
        assert_eq!(verified(&self.store()), before, "a plan changes nothing");
        repair.run(&plan).unwrap();
        let after = verified(&self.store());
        for (place, value) in &before {
            assert_eq!(after.get(place), Some(value), "{place:?}");
        }
        // What could be done was done.
        let again = repair.plan(&mut Pace::unbounded()).unwrap();
        assert_eq!(again.steps, []);
        plan
    }

    /// How many rows read back after the store was opened; no other value ever does.
    async fn readable(&self) -> usize {
        let store = Store::open(small_raw(&self.store())).unwrap();
        let mut count = 0;
        for (reference, value) in &self.rows {
            match store.get(reference).await {
                Ok(read) => {
                    assert_eq!(read, value);
                    count += 1;
                }
                Err(error) => assert_eq!(error.kind(), Kind::Corrupt, "{error}"),
            }
        }
        let more = put(&store, b"more").await.reference;
        assert_eq!(store.get(&more).await.unwrap(), b"more"[..]);
        assert!(more.segment() >= 3);
        store.close();
        count
    }

    fn set_aside(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.store().join(QUARANTINE)) else {
            return Vec::new();
        };
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

/// Every record that verifies, by its place.
fn verified(directory: &Path) -> BTreeMap<(u32, u32), Vec<u8>> {
    let inspector = Inspector::open(directory).unwrap();
    verified_by(&inspector.settle_within(Duration::ZERO))
}

fn verified_by(inspector: &Inspector) -> BTreeMap<(u32, u32), Vec<u8>> {
    let mut places = Vec::new();
    for segment in inspector.list().unwrap().segments {
        let mut visit = |finding: Finding<'_>| {
            if let Finding::Record(chunk) = finding {
                places.push((chunk.segment(), chunk.offset()));
            }
        };
        let pace = &mut Pace::unbounded();
        inspector
            .walk(segment, Depth::Values, pace, &mut visit)
            .unwrap();
    }
    let value = |(segment, offset)| inspector.read_at(segment, offset).unwrap().1;
    places.into_iter().map(|at| (at, value(at))).collect()
}

/// Proves: a store that is whole needs nothing.
#[tokio::test]
async fn a_whole_store_is_left_alone() {
    let case = Case::new().await;
    assert_eq!(case.repair(false), Plan::default());
    assert_eq!(case.repair(true), Plan::default());
    assert_eq!(case.readable().await, case.rows.len());
}

/// Proves: for every kind of damage, repair with a copy brings every row back, and without one keeps
/// every row that still verifies; the store opens and goes on either way.
#[tokio::test]
async fn damage_of_every_kind() {
    type Change = fn(&mut Vec<u8>);
    let changes: [(&str, u32, Change); 17] = [
        ("payload", 1, |b| b[9000] ^= 1),
        ("checksum", 1, |b| b[RECORDS_START + 5] ^= 1),
        ("identity", 1, |b| b[RECORDS_START + 30] ^= 0x80),
        ("length", 1, |b| b[RECORDS_START + 9] ^= 0x40),
        ("magic", 1, |b| b[RECORDS_START] = 0),
        ("zeroed", 1, |b| b[8192..20_000].fill(0)),
        ("header", 1, |b| b[33] ^= 1),
        ("header gone", 1, |b| b[..4096].fill(0)),
        ("behind header", 1, |b| b[3000] = 1),
        ("seal", 1, |b| {
            let at = b.len() - 10;
            b[at] ^= 1;
        }),
        ("seal gone", 1, |b| {
            let at = b.len() - 64;
            b[at..].fill(0);
        }),
        ("cut", 1, |b| b.truncate(30_001)),
        ("cut at a block", 2, |b| b.truncate(32_768)),
        ("longer", 2, |b| b.extend([0; 4096])),
        ("noise behind", 2, |b| b.extend(noise(5000, 1))),
        ("torn tail", 3, |b| {
            let end = b.len() - 64 - b.iter().rev().skip(64).take_while(|x| **x == 0).count();
            b[end - 1000..end].fill(0);
        }),
        ("both ends", 2, |b| {
            b[10] ^= 1;
            let at = b.len() - 10;
            b[at] ^= 1;
        }),
    ];
    for (name, segment, change) in changes {
        for with_copy in [true, false] {
            let case = Case::new().await;
            case.change(segment, change);
            let left = verified(&case.store()).len();
            let plan = case.repair(with_copy);
            let expected = if with_copy { case.rows.len() } else { left };
            assert_eq!(verified(&case.store()).len(), expected, "{name} {plan:?}");
            assert_eq!(case.readable().await, expected, "{name} {plan:?}");
            if with_copy {
                let copied = verified(&case.copy());
                assert_eq!(copied.len(), case.rows.len(), "{name}: the copy changed");
                assert_eq!(plan.left, Vec::<String>::new(), "{name}");
            }
        }
    }
}

/// Proves: files that are no segments are renamed aside with their content, their numbers are not
/// used again, and a copy's segment takes their place.
#[tokio::test]
async fn files_that_are_no_segments() {
    for with_copy in [true, false] {
        for content in [Vec::new(), vec![1; 100], noise(70_000, 9), vec![0; 65_536]] {
            let case = Case::new().await;
            let segments = case.store().join("segments");
            fs::write(segment_path(&case.store(), 3), &content).unwrap();
            fs::write(segments.join("notes.txt"), "mine").unwrap();
            let plan = case.repair(with_copy);
            let quarantined = plan
                .steps
                .iter()
                .filter(|step| matches!(step, Step::Quarantine { .. }));
            assert_eq!(quarantined.count(), 2, "{plan:?}");
            assert_eq!(case.set_aside(), ["00000003.seg", "notes.txt"]);
            let aside = case.store().join(QUARANTINE);
            assert_eq!(fs::read(aside.join("00000003.seg")).unwrap(), content);
            let lost = case.rows.iter().filter(|row| row.0.segment() == 3).count();
            let expected = case.rows.len() - if with_copy { 0 } else { lost };
            assert_eq!(case.readable().await, expected);
            // The next segment is another one.
            assert!(segment_path(&case.store(), 4).exists());
        }
    }
}

/// Proves: a missing segment comes back from a copy; a reserved one does too, later.
#[tokio::test]
async fn a_segment_that_is_gone() {
    let case = Case::new().await;
    fs::remove_file(segment_path(&case.store(), 2)).unwrap();
    case.repair(true);
    assert_eq!(case.readable().await, case.rows.len());

    let case = Case::new().await;
    fs::write(segment_path(&case.store(), 2), b"").unwrap();
    case.repair(false);
    assert!(case.readable().await < case.rows.len());
    let plan = case.repair(true);
    assert!(!plan.steps.is_empty());
    assert_eq!(case.readable().await, case.rows.len());
}

/// Proves: bytes that are overwritten or cut off are kept.
#[tokio::test]
async fn overwritten_bytes_are_kept() {
    let case = Case::new().await;
    let row = case.rows[2].0;
    case.change(1, |b| b[row.offset() as usize + 200] ^= 1);
    let damaged = fs::read(segment_path(&case.store(), 1)).unwrap();
    case.repair(true);
    let name = format!("00000001.seg.at-{}", row.offset());
    assert_eq!(case.set_aside(), [&*name]);
    let kept = fs::read(case.store().join(QUARANTINE).join(name)).unwrap();
    let start = row.offset() as usize;
    assert_eq!(kept, damaged[start..start + kept.len()]);
    assert!(kept.len() >= row.stored_len() as usize + 80);
}

/// Proves: a store that is open is not repaired; neither is one with a copy of another store, with
/// its own damaged copy, or without its key; a segment of a newer version is left alone.
#[tokio::test]
async fn what_is_refused() {
    let case = Case::new().await;
    let store = Store::open(small_raw(&case.store())).unwrap();
    let error = Repair::begin(&case.store(), None).unwrap_err();
    assert!(error.to_string().contains("another process"), "{error}");
    store.close();

    let other = Case::new().await;
    let error = Repair::begin(&case.store(), Some(&other.store())).unwrap_err();
    assert!(error.to_string().contains("another store"), "{error}");

    // The lock is given back.
    drop(Repair::begin(&case.store(), None).unwrap());
    Store::open(small_raw(&case.store())).unwrap().close();

    case.change(1, |b| {
        b[8] = 7;
        let crc = crc32c::crc32c(&b[..60]).to_le_bytes();
        b[60..64].copy_from_slice(&crc);
    });
    let before = fs::read(segment_path(&case.store(), 1)).unwrap();
    let plan = case.repair(true);
    assert_eq!(plan.steps, []);
    assert!(plan.left[0].contains("format 7"), "{plan:?}");
    assert_eq!(fs::read(segment_path(&case.store(), 1)).unwrap(), before);

    fs::remove_file(case.store().join("key")).unwrap();
    assert!(Repair::begin(&case.store(), None).is_err());
}

/// Proves: a copy of another course of events, in which another record stands at the same place,
/// overwrites nothing, whether ours verifies or is damaged.
#[tokio::test]
async fn a_copy_of_another_course_of_events() {
    let case = Case::new().await;
    // The store and its copy go on separately, in segments of the same numbers.
    let ours = Store::open(small_raw(&case.store())).unwrap();
    let theirs = Store::open(small_raw(&case.copy())).unwrap();
    let mut forked = Vec::new();
    for n in 0..12 {
        let value = noise(9000, 500 + n);
        forked.push((put(&ours, &value).await.reference, value));
        put(&theirs, &noise(9000, 900 + n)).await;
    }
    ours.close();
    theirs.close();
    let victim = forked.last().unwrap().0;
    let offset = victim.offset() as usize;
    case.change(victim.segment(), |b| b[offset + 500] ^= 1);
    case.repair(true);
    let inspector = Inspector::open(&case.store()).unwrap();
    for (reference, value) in &forked[..forked.len() - 1] {
        assert_eq!(&inspector.read(reference).unwrap().1, value);
    }
    assert_eq!(inspector.read(&victim).unwrap_err().kind(), Kind::Corrupt);
}

/// Every record that verifies on a simulated disk.
fn verified_on(disk: &SimDisk) -> BTreeMap<(u32, u32), Vec<u8>> {
    verified_by(&inspector_on(disk))
}

fn inspector_on(disk: &SimDisk) -> Inspector {
    Inspector::open_on(Arc::new(disk.clone()), "sim")
        .unwrap()
        .settle_within(Duration::ZERO)
}

fn repair_on(disk: &SimDisk, copy: &SimDisk) -> Repair {
    let copy: Arc<dyn Disk> = Arc::new(copy.clone());
    Repair::begin_on(Arc::new(disk.clone()), "sim", Some((copy, "copy".into()))).unwrap()
}

/// Proves: when power goes before any change that a repair makes, with what was not synced torn, then
/// everything that verified before still does, and a second repair gets to the end. The seed of each
/// tear is the number of the change and of the round.
#[tokio::test]
async fn power_may_go_at_any_moment() {
    let disk = SimDisk::default();
    let store = Store::open_on(Arc::new(disk.clone()), small_raw(Path::new("sim"))).unwrap();
    let mut rows = Vec::new();
    for n in 0..30 {
        let value = noise(3000 + 131 * n as usize, n);
        rows.push((put(&store, &value).await.reference, value));
    }
    store.close();
    // Everything is synced: this is a copy.
    let copy = disk.after_power_loss(1);
    assert_eq!(verified_on(&copy).len(), rows.len());
    let name = |segment: u32| format!("segments/{segment:08x}.seg");
    disk.flip(&name(1), rows[2].0.offset() as usize + 300, 1);
    disk.flip(&name(1), rows[5].0.offset() as usize + 9, 1);
    disk.flip(&name(2), 20, 1);
    disk.flip(&name(2), (64 << 10) - 20, 1);
    let last = rows.last().unwrap().0;
    disk.flip(&name(last.segment()), last.offset() as usize + 4, 1);
    disk.remove(&name(3)).unwrap();
    disk.sync_dir("segments").unwrap();
    let before = verified_on(&disk);
    assert!(before.len() < rows.len() - 3);

    let mut crashes = 0;
    for round in 0..4 {
        for calls in 0.. {
            let disk = disk.after_power_loss(1);
            disk.allow_overwriting();
            let repair = repair_on(&disk, &copy);
            let plan = repair.plan(&mut Pace::unbounded()).unwrap();
            disk.lose_power_after(calls);
            let done = repair.run(&plan).is_ok();
            let seed = round * 1000 + calls as u64;
            let after = disk.after_power_loss(seed * 0x9E37_79B9 + 7);
            after.allow_overwriting();
            let left = verified_on(&after);
            for (place, value) in &before {
                assert_eq!(left.get(place), Some(value), "seed {seed}: {place:?}");
            }
            let repair = repair_on(&after, &copy);
            let plan = repair.plan(&mut Pace::unbounded()).unwrap();
            assert!(!done || plan.steps.is_empty(), "seed {seed}: {plan:?}");
            repair.run(&plan).unwrap();
            assert_eq!(verified_on(&after).len(), rows.len(), "seed {seed}");
            drop(repair);
            let store = Store::open_on(Arc::new(after), small_raw(Path::new("sim"))).unwrap();
            for (reference, value) in &rows {
                assert_eq!(store.get(reference).await.unwrap(), value, "seed {seed}");
            }
            store.close();
            if done {
                break;
            }
            crashes += 1;
        }
    }
    println!("{crashes} crash points");
    assert!(crashes > 60, "{crashes}");
}

/// Proves: superblock and key come back from a copy, one or both, missing or damaged; what was there is
/// put aside; those of another store are not taken, and a newer format is refused.
#[tokio::test]
async fn superblock_and_key() {
    let (superblock, key) = ("toastrack-store", "key");
    for (lost, content) in [
        (&[superblock][..], None),
        (&[superblock], Some("damaged")),
        (&[key], None),
        (&[key], Some("another key of the right length.")),
        (&[superblock, key], None),
        (&[superblock, key], Some("")),
    ] {
        let case = Case::new().await;
        for name in lost {
            let path = case.store().join(name);
            match content {
                Some(content) => fs::write(path, content).unwrap(),
                None => fs::remove_file(path).unwrap(),
            }
        }
        assert!(Repair::begin(&case.store(), None).is_err());
        let repair = Repair::begin(&case.store(), Some(&case.copy())).unwrap();
        let plan = repair.plan(&mut Pace::unbounded()).unwrap();
        assert_eq!(plan.steps.len(), lost.len(), "{plan:?}");
        repair.run(&plan).unwrap();
        assert!(repair.plan(&mut Pace::unbounded()).unwrap().is_empty());
        drop(repair);
        assert_eq!(case.set_aside().len(), content.map_or(0, |_| lost.len()));
        assert_eq!(case.readable().await, case.rows.len(), "{lost:?}");
    }
    let (case, other) = (Case::new().await, Case::new().await);
    fs::remove_file(case.store().join(superblock)).unwrap();
    let error = Repair::begin(&case.store(), Some(&other.store())).unwrap_err();
    assert!(error.to_string().contains("no segment"), "{error}");
    fs::write(
        case.store().join(superblock),
        "toastrack-store\nformat 2\nx 1\n",
    )
    .unwrap();
    let error = Repair::begin(&case.store(), Some(&case.copy())).unwrap_err();
    assert!(error.to_string().contains("format 2"), "{error}");
}
