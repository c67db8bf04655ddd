//! `toastrack demo`, from the outside.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{fail, succeed, toastrack};
use crate::server::{signal, wait};
use tokio_postgres::NoTls;

/// Documents of every kind and size come back the same, the figures are printed, and
/// the connection string is one of Toastrack.
#[test]
fn loads_and_compares() {
    let directory = tempfile::tempdir().unwrap();
    for n in 0..40_usize {
        let text = format!("line {n} caf\u{e9} \"quoted\"\n").repeat(n * 50 + 1);
        let json = serde_json::json!({ "z": n, "a": [text, 1.50, null] }).to_string();
        let binary: Vec<u8> = (0..n * 400 + 1).map(|i| (i * n % 256) as u8).collect();
        fs::write(directory.path().join(format!("{n}.txt")), &text).unwrap();
        fs::write(directory.path().join(format!("{n}.json")), json).unwrap();
        fs::write(
            directory.path().join(format!("{n}.bin")),
            [&[0xff], &binary[..]].concat(),
        )
        .unwrap();
    }
    let from = directory.path().to_str().unwrap();
    let said = succeed(&["demo", "--from", from, "--rows", "100"]);
    assert!(
        said.contains("100 rows compared in binary format, 100 in text format, 100 by SQL"),
        "{said}"
    );
    for figure in [
        "logical bytes",
        "bytes in Postgres",
        "bytes in the store",
        "write",
        "read",
        "cache hit rate",
    ] {
        assert!(said.contains(&format!("\n  {figure}")), "{figure}: {said}");
    }
    assert!(said.contains("postgres://postgres@127.0.0.1:"), "{said}");
}

/// With --empty both sides can be connected to by what the file says, and after
/// SIGTERM neither file nor directory is left.
#[tokio::test]
async fn empty_keeps_until_a_signal() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("demo.env");
    let mut child = toastrack()
        .args(["demo", "--keep", "--empty", "--env-file"])
        .arg(&file)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while !file.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended early");
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "it is not ready"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let text = fs::read_to_string(&file).unwrap();
    let value = |name: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("{name} is not in {text}"))
            .to_owned()
    };
    for url in [value("DIRECT_URL"), value("TOASTRACK_URL")] {
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let row = client
            .query_one("select to_regtype('toastrack.jsonb')::text", &[])
            .await;
        assert_eq!(row.unwrap().get::<_, &str>(0), "toastrack.jsonb");
    }
    assert!(value("ADMIN_URL").starts_with("http://127.0.0.1:"));
    let token_file = PathBuf::from(value("ADMIN_TOKEN_FILE"));
    assert!(token_file.exists());
    signal(&child, "TERM");
    assert_eq!(wait(&mut child).code(), Some(0));
    assert!(!token_file.exists() && !file.exists());
}

/// What belongs together is asked for together; a source without documents fails.
#[test]
fn wrong_use() {
    fail(&["demo", "--empty"], 2);
    fail(&["demo", "--env-file", "x"], 2);
    fail(&["demo", "--keep", "--empty", "--from", "/tmp"], 2);
    let nothing = tempfile::tempdir().unwrap();
    let said = fail(&["demo", "--from", nothing.path().to_str().unwrap()], 1);
    assert!(said.contains("no documents found"), "{said}");
}
