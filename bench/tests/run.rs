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
