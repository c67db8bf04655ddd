//! The subcommands on a store that nobody has open.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use toastrack_offload::{Reference, Store, StoreOptions, ValueKind};

use crate::common::{fail, run, succeed};

struct Closed {
    dir: TempDir,
    rows: Vec<(Reference, Vec<u8>)>,
}

impl Closed {
    /// Some segments of 64 KiB, the last one open.
    async fn new() -> Closed {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(StoreOptions {
            directory: dir.path().join("store"),
            segment_len_bytes: 64 << 10,
            ..StoreOptions::default()
        })
        .unwrap();
        let mut rows = Vec::new();
        let mut state = 7_u64;
        for n in 0..40 {
            let mut value: Vec<u8> = Vec::new();
            while value.len() < 2000 + 100 * n {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                value.extend_from_slice(&state.to_be_bytes()[..5]);
            }
            if n % 4 == 0 {
                value = format!("{{\"n\": {n}}}, ").repeat(300).into_bytes();
            }
            let put = loop {
                match store.put(ValueKind::Bytea, value.len() as u32, &value) {
                    Ok(put) => break put,
                    Err(_) => store.room().await.unwrap(),
                }
            };
            store.durable(put.ticket).await.unwrap();
            rows.push((put.reference, value));
        }
        store.close();
        Closed { dir, rows }
    }

    fn store(&self) -> String {
        self.path("store")
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn flip(&self, segment: u32, at: u64) {
        flip(&PathBuf::from(self.store()), segment, at);
    }
}

pub(crate) fn flip(store: &Path, segment: u32, at: u64) {
    let path = store.join(format!("segments/{segment:08x}.seg"));
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

pub(crate) fn lines(text: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap();
    text.lines().map(parse).collect()
}

/// Proves: `stat` agrees with what was put, as a table and as JSON.
#[tokio::test]
async fn stat() {
    let closed = Closed::new().await;
    let text = succeed(&["store", "stat", "--store", &closed.store()]);
    assert!(text.contains("format 1, key matches"), "{text}");
    assert!(text.contains("00000001  sealed"), "{text}");
    assert!(text.contains(" open "), "{text}");
    let text = succeed(&["store", "stat", "--json", "--store", &closed.store()]);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["records"], closed.rows.len());
    assert_eq!(document["format"], 1);
    assert_eq!(document["segments"][0]["state"], "sealed");
    let used: u64 = closed
        .rows
        .iter()
        .map(|row| (80 + u64::from(row.0.stored_len())).next_multiple_of(8))
        .sum();
    assert_eq!(document["used_bytes"], used);
    // A damaged segment is shown as one.
    closed.flip(1, 5);
    let text = succeed(&["store", "stat", "--store", &closed.store()]);
    assert!(text.contains("00000001  damaged"), "{text}");
    assert!(text.contains("header does not verify"), "{text}");
}

/// Proves: `verify` says that a whole store is, and otherwise fails with what is damaged and where;
/// the rate is kept; without the key it says what it could not check.
#[tokio::test]
async fn verify() {
    let closed = Closed::new().await;
    let store = closed.store();
    let text = succeed(&["store", "verify", "--store", &store, "--max-rate", "50MB/s"]);
    assert!(text.contains("40 records"), "{text}");
    assert!(text.ends_with("nothing is damaged\n"), "{text}");

    let row = closed.rows[5].0;
    closed.flip(row.segment(), u64::from(row.offset()) + 100);
    let output = run(&["store", "verify", "--store", &store]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    let place = format!(
        "damaged: segment {:08x} at offset {}, ",
        row.segment(),
        row.offset()
    );
    assert!(text.contains(&place), "{text}");
    assert!(text.contains("39 records"), "{text}");
    assert!(!text.contains("nothing is damaged"));

    let output = run(&["store", "verify", "--json", "--store", &store]);
    assert_eq!(output.status.code(), Some(1));
    let lines = lines(std::str::from_utf8(&output.stdout).unwrap());
    let damage = lines
        .iter()
        .find(|line| line["event"] == "damaged")
        .unwrap();
    assert_eq!(damage["offset"], row.offset());
    let summary = lines.last().unwrap();
    assert_eq!(summary["event"], "summary");
    assert_eq!(summary["records"], 39);
    assert_eq!(summary["damaged"], 1);
    assert_eq!(summary["identities"], "checked");

    closed.flip(row.segment(), u64::from(row.offset()) + 100);
    fs::remove_file(format!("{store}/key")).unwrap();
    let text = succeed(&["store", "verify", "--store", &store]);
    assert!(text.contains("not checked: identities"), "{text}");
    let said = fail(&["store", "verify", "--store", &closed.path("nowhere")], 1);
    assert!(said.contains("not a store"), "{said}");
    let said = fail(&["store", "verify", "--store", &store, "-d", "dbname=x"], 1);
    assert!(said.contains("key"), "{said}");
    fail(&["store", "verify", "--max-rate", "fast"], 2);
}

/// Proves: `dump` gives the bytes of a value, by reference and by place, its header, and a list whose
/// references are the ones that were given out; damage is an error that names the place.
#[tokio::test]
async fn dump() {
    let closed = Closed::new().await;
    let store = closed.store();
    let text_of = |row: &Reference| String::from_utf8(row.to_text().to_vec()).unwrap();
    for (reference, value) in closed.rows.iter().take(6) {
        let text = text_of(reference);
        let quoted = format!("\"{text}\"");
        for spelled in [&text, &quoted] {
            let output = run(&["store", "dump", spelled, "--store", &store]);
            assert!(output.status.success());
            assert_eq!(&output.stdout, value);
        }
        let (segment, offset) = (
            format!("{:08x}", reference.segment()),
            reference.offset().to_string(),
        );
        let place = [
            "--segment",
            &segment,
            "--offset",
            &offset,
            "--store",
            &store,
        ];
        let output = run(&[&["store", "dump"][..], &place].concat());
        assert_eq!(&output.stdout, value);
        let header = succeed(&[&["store", "dump", "--header"][..], &place].concat());
        let header: Value = serde_json::from_str(&header).unwrap();
        assert_eq!(header["reference"], text.as_str());
        assert_eq!(header["logical_len"], value.len());
        assert_eq!(header["identity"], reference.identity().to_string());
    }
    let listed = lines(&succeed(&["store", "dump", "--list", "--store", &store]));
    let references: Vec<&str> = listed
        .iter()
        .map(|line| line["reference"].as_str().unwrap())
        .collect();
    let given: Vec<String> = closed.rows.iter().map(|row| text_of(&row.0)).collect();
    assert_eq!(references, given);
    let of_first = succeed(&[
        "store",
        "dump",
        "--list",
        "--segment",
        "1",
        "--store",
        &store,
    ]);
    let in_first = closed.rows.iter().filter(|row| row.0.segment() == 1);
    assert_eq!(lines(&of_first).len(), in_first.count());

    let row = closed.rows[0].0;
    closed.flip(1, u64::from(row.offset()) + 100);
    let said = fail(&["store", "dump", &text_of(&row), "--store", &store], 1);
    assert!(said.contains("segment 00000001 at offset 4096"), "{said}");
    let said = fail(&["store", "dump", "toast:nothing", "--store", &store], 1);
    assert!(said.contains("not a reference"), "{said}");
    fail(&["store", "dump", "--list", "--store", &store], 1);
    for wrong in [&["store", "dump"][..], &["store", "dump", "--offset", "1"]] {
        fail(wrong, 2);
    }
}

/// Proves: the way back from damage: `snapshot`, damage, `repair --dry-run` that changes nothing,
/// `repair --from`, and a store that verifies.
#[tokio::test]
async fn snapshot_and_repair() {
    let closed = Closed::new().await;
    let (store, copy) = (closed.store(), closed.path("copy"));
    let said = succeed(&["store", "snapshot", &copy, "--copy", "--store", &store]);
    assert!(said.contains("0 segments linked"), "{said}");
    succeed(&["store", "verify", "--store", &copy]);
    let said = fail(&["store", "snapshot", &copy, "--store", &store], 1);
    assert!(said.contains("not empty"), "{said}");

    let row = closed.rows[3].0;
    closed.flip(1, u64::from(row.offset()) + 100);
    closed.flip(2, 12);
    fs::remove_file(format!("{store}/segments/00000003.seg")).unwrap();
    fail(&["store", "verify", "--store", &store], 1);
    let without = succeed(&["store", "repair", "--dry-run", "--store", &store]);
    assert!(
        without.contains("left as it is: segment 00000001"),
        "{without}"
    );
    let from = ["--from", &copy, "--store", &store];
    let plan = succeed(&[&["store", "repair", "--dry-run"][..], &from].concat());
    assert!(plan.contains("00000001: restore 1 records"), "{plan}");
    assert!(plan.contains("00000002: write the header anew"), "{plan}");
    assert!(plan.contains("00000003: copy it"), "{plan}");
    fail(&["store", "verify", "--store", &store], 1);
    succeed(&[&["store", "repair", "--yes"][..], &from].concat());
    let said = succeed(&["store", "verify", "--store", &store]);
    assert!(said.contains("40 records"), "{said}");
    let said = succeed(&[&["store", "repair"][..], &from].concat());
    assert!(said.contains("nothing to repair"), "{said}");
}

/// Proves: a value whose pieces are damaged or gone is listed, though its own record verifies.
#[tokio::test]
async fn values_in_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().join("store");
    let store = Store::open(StoreOptions {
        directory: directory.clone(),
        segment_len_bytes: 2 << 20,
        compression: toastrack_offload::Compression::None,
        ..StoreOptions::default()
    })
    .unwrap();
    let value: Vec<u8> = (0..3_500_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let put = loop {
        match store.put(ValueKind::Bytea, value.len() as u32, &value) {
            Ok(put) => break put,
            Err(_) => store.room().await.unwrap(),
        }
    };
    store.durable(put.ticket).await.unwrap();
    store.close();
    let store = directory.display().to_string();
    let said = succeed(&["store", "verify", "--store", &store]);
    assert!(said.contains("1 manifests"), "{said}");
    let text = String::from_utf8(put.reference.to_text().to_vec()).unwrap();
    let output = run(&["store", "dump", &text, "--store", &store]);
    assert!(output.stdout == value);

    assert_ne!(put.reference.segment(), 1);
    flip(&directory, 1, 4096 + 500);
    let output = run(&["store", "verify", "--store", &store]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    let place = format!(
        "incomplete: segment {:08x} at offset {}, ",
        put.reference.segment(),
        put.reference.offset()
    );
    assert!(said.contains(&place), "{said}");
    assert!(said.contains("segment 00000001 at offset 4096"), "{said}");
    fs::remove_file(directory.join("segments/00000001.seg")).unwrap();
    let output = run(&["store", "verify", "--store", &store]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains(&place) && said.contains("no such segment"),
        "{said}"
    );
}
