//! `toastrack load` against a private server: every kind of source, and nothing half-loaded.

use std::fs;
use std::path::Path;

use crate::common::{fail, succeed};
use toastrack_testkit::Cluster;

struct Server {
    cluster: Cluster,
    runtime: tokio::runtime::Runtime,
}

impl Server {
    fn start() -> Server {
        Server {
            cluster: Cluster::start().unwrap(),
            runtime: tokio::runtime::Runtime::new().unwrap(),
        }
    }

    fn conninfo(&self) -> String {
        self.cluster.connection_string("postgres")
    }

    fn load(&self, table: &str, from: &Path) -> Vec<String> {
        let from = from.to_str().unwrap();
        [
            "load",
            "--database",
            &self.conninfo(),
            "--table",
            table,
            "--from",
            from,
        ]
        .map(str::to_owned)
        .to_vec()
    }

    /// One text for each row.
    fn rows(&self, sql: &str) -> Vec<String> {
        self.runtime.block_on(async {
            let (client, connection) =
                tokio_postgres::connect(&self.conninfo(), tokio_postgres::NoTls)
                    .await
                    .unwrap();
            tokio::spawn(connection);
            let rows = client.query(sql, &[]).await.unwrap();
            rows.iter().map(|row| row.get(0)).collect()
        })
    }
}

fn strs(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

/// Files of a tree arrive byte for byte in the column of their kind; a second load adds to them.
#[test]
fn tree() {
    let server = Server::start();
    let directory = tempfile::tempdir().unwrap();
    let text = "caf\u{e9} 'quoted' \\ \n".repeat(5000);
    fs::create_dir(directory.path().join("sub")).unwrap();
    fs::write(directory.path().join("a.txt"), &text).unwrap();
    fs::write(directory.path().join("empty"), "").unwrap();
    fs::write(
        directory.path().join("sub/b.json"),
        "{\"k\": 1.50, \"j\": [\"\\u00e9\"]}",
    )
    .unwrap();
    fs::write(directory.path().join("sub/c.json"), "{\"k\": ").unwrap();
    fs::write(directory.path().join("sub/d.png"), [0x89, b'P', 0, 0xff]).unwrap();
    fs::write(directory.path().join("sub/nul.txt"), "a\0b").unwrap();

    let args = server.load("App", directory.path());
    let said = succeed(&strs(&args));
    assert!(said.starts_with("loaded 6 documents ("), "{said}");
    let found = server.rows(
        "select concat_ws('|', path, kind, md5(body), data::text, encode(raw, 'hex')) from app order by id",
    );
    let md5 = server.rows(&format!("select md5($q${text}$q$)"));
    let md5_empty = "d41d8cd98f00b204e9800998ecf8427e";
    assert_eq!(found[0], format!("a.txt|text|{}", md5[0]));
    assert_eq!(found[1], format!("empty|text|{md5_empty}"));
    assert_eq!(
        found[2],
        "sub/b.json|json|{\"j\": [\"\u{e9}\"], \"k\": 1.50}"
    );
    assert!(found[3].starts_with("sub/c.json|text|"), "{}", found[3]);
    assert_eq!(found[4], "sub/d.png|binary|895000ff");
    assert_eq!(found[5], "sub/nul.txt|binary|610062");

    succeed(&strs(&args));
    assert_eq!(server.rows("select count(*)::text from app"), ["12"]);
}

/// More lines than a batch arrive in order; digits and key order are judged by Postgres alone.
#[test]
fn json_lines() {
    let server = Server::start();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("feed.jsonl");
    let lines: Vec<String> = (0..1000)
        .map(|n| format!("{{\"n\": {n}, \"exact\": 0.10000000000000000000000{n}, \"a\": null}}"))
        .collect();
    fs::write(&file, lines.join("\n")).unwrap();
    let args = server.load("feed", &file);
    assert!(succeed(&strs(&args)).starts_with("loaded 1000 documents (0 text, 1000 json"));
    let found = server.rows("select path || data::text from feed order by id");
    assert_eq!(
        found[999],
        "feed.jsonl:1000{\"a\": null, \"n\": 999, \"exact\": 0.10000000000000000000000999}"
    );
    let out_of_order =
        "select count(*)::text from feed where path <> 'feed.jsonl:' || (data->>'n')::int + 1";
    assert_eq!(server.rows(out_of_order), ["0"]);
}

/// A bad line fails with its number, and nothing of the file is left behind, not even
/// the table; with --batch, what was committed stays.
#[test]
fn bad_line_loads_nothing() {
    let server = Server::start();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("feed.jsonl");
    let mut text = "{\"n\": 1}\n".repeat(500);
    text.push_str("{\"n\": }\n{\"n\": 1}\n");
    fs::write(&file, text).unwrap();
    let mut args = server.load("feed", &file);
    let said = fail(&strs(&args), 1);
    assert!(said.contains("feed.jsonl: line 501: "), "{said}");
    let exists = "select coalesce(to_regclass('feed')::text, 'none')";
    assert_eq!(server.rows(exists), ["none"]);

    args.extend(["--batch".to_owned(), "200".to_owned()]);
    fail(&strs(&args), 1);
    assert_eq!(server.rows("select count(*)::text from feed"), ["400"]);
}

/// What the server refuses is reported with the document it refused and its SQLSTATE.
#[test]
fn refused_row_is_named() {
    let server = Server::start();
    server
        .cluster
        .execute(
            "postgres",
            "create table t(path text, kind text, body text, data jsonb check (data->>'n' <> '70'), raw bytea);
             create table other(id int)",
        )
        .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.jsonl");
    let lines: String = (1..=100).map(|n| format!("{{\"n\": {n}}}\n")).collect();
    fs::write(&file, lines).unwrap();
    let said = fail(&strs(&server.load("t", &file)), 1);
    assert!(
        said.contains("x.jsonl:70: ") && said.contains("23514"),
        "{said}"
    );
    assert_eq!(server.rows("select count(*)::text from t"), ["0"]);
    let said = fail(&strs(&server.load("other", &file)), 1);
    assert!(
        said.contains("\"other\"") && said.contains("42703"),
        "{said}"
    );
}

/// A server that is not there fails with the place it was looked for at.
#[test]
fn no_server() {
    let directory = tempfile::tempdir().unwrap();
    let from = directory.path().to_str().unwrap();
    let database = "postgres://u:secret@127.0.0.1:1/d";
    let said = fail(
        &[
            "load",
            "--database",
            database,
            "--table",
            "t",
            "--from",
            from,
        ],
        1,
    );
    assert!(
        said.contains("127.0.0.1:1") && !said.contains("secret"),
        "{said}"
    );
}
