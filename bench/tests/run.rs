//! Proves that the binary measures and checks what it says, with small runs on real servers.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

/// Runs the benchmark and returns its JSON lines.
fn bench(arguments: &[&str]) -> Vec<Value> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let json = directory.path().join("out.jsonl");
    let output = Command::new(env!("CARGO_BIN_EXE_toastrack-bench"))
        .args(arguments)
        .args(["--shared-buffers", "32MB", "--rounds", "2", "--json"])
        .arg(&json)
        .output()
        .expect("the binary runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = std::fs::read_to_string(&json).expect("--json writes a file");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect()
}

fn of_kind<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

/// Every phase runs on every side asked for, in rotating order, and the sizes are those asked for.
#[test]
fn direct_and_bound_run_side_by_side() {
    let lines = bench(&[
        "--sides",
        "direct,bound",
        "--rows",
        "40",
        "--columns",
        "2",
        "--size",
        "3kB",
    ]);
    let runs = of_kind(&lines, "run");
    assert_eq!(runs.len(), 4 * 2 * 2);
    let order: Vec<&str> = runs[..4]
        .iter()
        .filter_map(|run| run["side"].as_str())
        .collect();
    assert_eq!(order, ["bound", "direct", "direct", "bound"]);
    for run in &runs {
        let size = if run["side"] == "direct" { 3072 } else { 62 };
        assert_eq!(run["rows"], 40);
        assert_eq!(run["value_bytes"], 40 * 2 * size);
        assert!(run["rows_per_second"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(of_kind(&lines, "machine").len(), 1);
    let summaries = of_kind(&lines, "summary");
    let phases: BTreeSet<&str> = summaries
        .iter()
        .filter_map(|line| line["phase"].as_str())
        .collect();
    assert_eq!(
        phases,
        ["insert", "update", "point read", "full read"].into()
    );
    assert!(
        summaries
            .iter()
            .all(|line| line["times_direct"].is_number())
    );
}

/// The documents are stored by jsonb and bytea columns as they are: the benchmark compares a
/// sample with what Postgres returns, so a key out of jsonb's order would fail here.
#[test]
fn other_types_return_what_was_written() {
    for (value_type, data) in [("jsonb", "json"), ("jsonb", "random"), ("bytea", "random")] {
        let lines = bench(&[
            "--sides",
            "direct,bound",
            "--type",
            value_type,
            "--data",
            data,
            "--rows",
            "20",
            "--columns",
            "1",
            "--phases",
            "update",
        ]);
        assert_eq!(of_kind(&lines, "run").len(), 4);
    }
}

/// The side that matters: values leave the row, come back as written, and Toastrack's processor
/// time is seen. The benchmark itself fails when a sampled value stayed in the row.
#[test]
fn all_three_sides_run() {
    for value_type in ["text", "jsonb", "bytea"] {
        let lines = bench(&[
            "--type",
            value_type,
            "--rows",
            "60",
            "--columns",
            "2",
            "--size",
            "4kB",
            "--verify-rows",
            "20",
        ]);
        assert_eq!(of_kind(&lines, "run").len(), 4 * 3 * 2);
        let wal = |side: &str| {
            let found = of_kind(&lines, "summary")
                .into_iter()
                .find(|line| line["side"] == side && line["phase"] == "insert");
            found
                .and_then(|line| line["wal_bytes_per_row"].as_f64())
                .expect("a summary")
        };
        assert!(
            wal("toastrack") < wal("direct") / 2.0,
            "{value_type}: {} {}",
            wal("toastrack"),
            wal("direct")
        );
        let spaces = of_kind(&lines, "space");
        let stored = spaces
            .iter()
            .find(|line| line["side"] == "toastrack")
            .expect("a space");
        assert!(stored["store_bytes"].as_u64() > Some(60 * 2 * 1000));
    }
}
