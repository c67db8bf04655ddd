//! `check-config`, `print-config`, `completions` and the exit codes, by running the command.

use std::fs;

use crate::common::{fail, succeed};

/// A good file is `ok`; a bad one fails with one line for each problem.
#[test]
fn check_config() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.toml");
    let path = file.to_str().unwrap();
    fs::write(&file, "[cache]\nsize = \"1 GiB\"\n").unwrap();
    assert_eq!(succeed(&["check-config", path]), "ok\n");
    fs::write(&file, "[cache]\nsize = 1.5\n[log]\nfile = \"x\"\n").unwrap();
    let said = fail(&["check-config", "--config", path], 1);
    assert!(
        said.contains("cache.size: ") && said.contains("log.file: "),
        "{said}"
    );
    let said = fail(&["check-config", "/nonexistent.toml"], 1);
    assert!(said.contains("/nonexistent.toml: cannot be read"), "{said}");
}

/// What is printed is itself a valid configuration, and hides the password.
#[test]
fn print_config() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.toml");
    fs::write(&file, "[control]\npassword = \"hunter2\"\n").unwrap();
    let printed = succeed(&["print-config", file.to_str().unwrap()]);
    assert!(
        printed.contains("password = \"***\"") && !printed.contains("hunter2"),
        "{printed}"
    );
    fs::write(&file, &printed).unwrap();
    assert_eq!(succeed(&["print-config", file.to_str().unwrap()]), printed);
}

/// Wrong use is exit code 2, help is 0, and completions name the commands.
#[test]
fn usage() {
    fail(&[], 2);
    fail(&["no-such-command"], 2);
    fail(&["load", "--table", "a b", "--from", "/"], 2);
    fail(
        &[
            "load",
            "--table",
            "a",
            "--from",
            "/tmp",
            "--database",
            "postgres://h:x/",
        ],
        2,
    );
    assert!(succeed(&["--help"]).contains("check-config"));
    assert!(succeed(&["completions", "bash"]).contains("check-config"));
}
