//! Runs the built command.

use std::process::{Command, Output};

/// The command, free of this process' libpq settings.
pub(crate) fn toastrack() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toastrack"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs it to its end.
pub(crate) fn run(args: &[&str]) -> Output {
    toastrack().args(args).output().expect("the command starts")
}

/// Runs it, and gives its standard output.
///
/// # Panics
/// When it fails, with what it said.
pub(crate) fn succeed(args: &[&str]) -> String {
    let output = run(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs it, expects this exit code, and gives its standard error.
///
/// # Panics
/// When it ends in another way.
pub(crate) fn fail(args: &[&str], code: i32) -> String {
    let output = run(args);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
    stderr
}
