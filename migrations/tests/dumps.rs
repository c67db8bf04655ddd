//! What a dump of a database with the types holds, and what has to be installed again.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::sidecar::Way;
use common::twins::Twins;
use common::{connect, empty_database, one, rows};
use toastrack_migrations::{InstallState, ServerSettings, install, state};

/// What stands in pg_catalog is not in a dump: a restored database is seen to be incomplete, install makes it whole,
/// and a dump without the schema goes into a database that was installed before.
#[tokio::test(flavor = "multi_thread")]
async fn a_dump_loses_what_is_in_pg_catalog() {
    let twins = Twins::new(Way::Direct).await;
    let source = one(&twins.client, "SELECT current_database()").await;
    let dump = |more: &[&str]| {
        let output = std::process::Command::new(program("pg_dump"))
            .args(["-h", "127.0.0.1", "-U", "postgres", "-p"])
            .arg(common::cluster().port().to_string())
            .args(more)
            .arg(&source)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let whole = dump(&["--schema-only"]);
    assert!(whole.contains("CREATE TYPE toastrack.text"));
    assert!(!whole.contains("CREATE OPERATOR pg_catalog"));

    let database = empty_database().await;
    let complaints = restore(&database, &whole);
    assert!(
        complaints.contains("operator does not exist"),
        "{complaints}"
    );
    let mut restored = connect(&database).await;
    let InstallState::Incomplete { missing } = state(&restored).await.unwrap() else {
        panic!("nothing was noticed");
    };
    assert!(
        missing
            .iter()
            .any(|item| item.contains("operator pg_catalog.||")),
        "{missing:?}"
    );

    let database = empty_database().await;
    let mut fresh = connect(&database).await;
    install(&mut fresh, &ServerSettings::default())
        .await
        .unwrap();
    let complaints = restore(&database, &dump(&["--exclude-schema=toastrack"]));
    // pg_dump has no way to leave casts out; those that install made are there already.
    for complaint in complaints.lines() {
        assert!(
            complaint.contains("cast from type") && complaint.ends_with("already exists"),
            "{complaint}"
        );
    }
    assert!(state(&fresh).await.unwrap().is_ready());
    twins.sidecar.register(&mut fresh, Way::Direct).await;
    assert_eq!(
        rows(
            &fresh,
            "SELECT id, upper(body), data ->> 'k' FROM docs ORDER BY id"
        )
        .await,
        rows(
            &twins.client,
            "SELECT id, upper(body), data ->> 'k' FROM plain ORDER BY id"
        )
        .await
    );

    install(&mut restored, &ServerSettings::default())
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(state(&restored).await.unwrap().is_ready());
}

/// The program next to the server's binaries; behind links to them, as in `/usr/local/bin`.
fn program(name: &str) -> std::path::PathBuf {
    let server = common::cluster().binaries().directory().join("postgres");
    let beside = |path: &std::path::Path| path.with_file_name(name);
    let real = beside(&server.canonicalize().unwrap());
    if real.is_file() {
        real
    } else {
        beside(&server)
    }
}

/// Restores a script with psql, which goes on after what cannot be made; gives what it complained of.
fn restore(database: &str, script: &str) -> String {
    use std::io::Write;
    let mut psql = std::process::Command::new(program("psql"))
        .args([
            "-q",
            "-X",
            "-h",
            "127.0.0.1",
            "-U",
            "postgres",
            "-d",
            database,
            "-p",
        ])
        .arg(common::cluster().port().to_string())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    psql.stdin
        .take()
        .unwrap()
        .write_all(script.as_bytes())
        .unwrap();
    let output = psql.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
}
