//! Columns that become offloaded ones and plain ones while sessions are open.

use std::time::Duration;

use crate::common::raw::{self, rows, sqlstate};
use crate::{RIG, big, database};

fn raw_body(name: &str, id: u32) -> String {
    let sql = format!("select toastrack.raw(body)::text from docs where id = {id}");
    let answer = RIG.raw_direct(name).query(&sql);
    raw::first_text(&answer)
}

fn insert(id: u32) -> Vec<u8> {
    let id = id.to_string();
    [
        raw::parse(
            "",
            "insert into docs(id, body) values ($1, $2) returning body",
            &[],
        ),
        raw::bind(
            "",
            "",
            &[],
            &[Some(id.as_bytes()), Some(big().as_bytes())],
            &[],
        ),
        raw::execute("", 0),
        raw::sync(),
    ]
    .concat()
}

fn read_all(session: &mut raw::Raw) {
    for message in [
        raw::query("select body from docs order by id"),
        [
            raw::parse("", "select body from docs order by id", &[]),
            raw::bind("", "", &[], &[], &[1]),
            raw::execute("", 0),
            raw::sync(),
        ]
        .concat(),
    ] {
        session.send(&message);
        let answer = session.until_ready(1);
        let rows = rows(&answer);
        assert!(!rows.is_empty());
        assert!(
            rows.iter().all(|row| row[0] == Some(big().into())),
            "{answer:?}"
        );
    }
}

/// DDL within a transaction, rolled back, and in effect; in simple and extended protocol; written to
/// in the same session and in others, that were there before.
#[test]
fn wire_bug_23_schema_changes() {
    let name = database("ddl");
    let mut one = RIG.raw_through(&name);
    let mut two = RIG.raw_through(&name);
    one.query("drop table docs; create table docs(id int primary key, body text)");
    one.send(&insert(1));
    assert_eq!(sqlstate(&one.until_ready(1)), "none");
    read_all(&mut two);

    // Rolled back: nothing has changed.
    one.query("begin; alter table docs alter body type toastrack.text using body::toastrack.text");
    one.send(&insert(2));
    assert_eq!(sqlstate(&one.until_ready(1)), "none");
    read_all(&mut one);
    one.query("rollback");
    one.send(&insert(2));
    assert_eq!(sqlstate(&one.until_ready(1)), "none");
    read_all(&mut two);
    let plain = RIG
        .raw_direct(&name)
        .query("select body from docs where id = 2");
    assert_eq!(raw::first_text(&plain), big());

    // In effect, by an extended statement.
    let alter = "alter table docs alter body type toastrack.text using body::toastrack.text";
    one.send(&[crate::unnamed(alter), raw::sync()].concat());
    assert_eq!(sqlstate(&one.until_ready(1)), "none");
    one.send(&insert(3));
    assert_eq!(sqlstate(&one.until_ready(1)), "none");
    assert!(raw_body(&name, 3).starts_with("toast:"));
    read_all(&mut one);
    read_all(&mut two);
    // The other session learns of it from the first statement on that says so, by its types.
    two.send(&insert(4));
    assert_eq!(sqlstate(&two.until_ready(1)), "none");
    read_all(&mut two);
    assert!(raw_body(&name, 4).starts_with("toast:"));

    // And back, the values read in the server.
    one.query("alter table docs alter body type text using body::text");
    for session in [&mut one, &mut two] {
        read_all(session);
    }
    one.send(&insert(5));
    two.send(&insert(6));
    for session in [&mut one, &mut two] {
        assert_eq!(sqlstate(&session.until_ready(1)), "none");
        read_all(session);
    }
    let plain = RIG
        .raw_direct(&name)
        .query("select count(*) from docs where body like 'toast:%'");
    assert_eq!(raw::first_text(&plain), "0");
}

/// A session that was open before the schema was installed reads offloaded values all the same, also
/// without any Describe, once the proxy can know.
#[test]
fn a_session_older_than_the_install() {
    let name = "wire_old_session";
    RIG.cluster
        .execute(
            "postgres",
            &format!("create database {name} template template1"),
        )
        .expect("creates");
    let mut old = RIG.raw_through(name);
    old.query("create table docs(id int primary key, body text)");
    let conninfo = RIG.cluster.connection_string(name);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let mut client = crate::common::connect(&conninfo).await;
        let settings = toastrack_migrations::ServerSettings::default();
        toastrack_migrations::install(&mut client, &settings)
            .await
            .expect("installs");
    });
    let mut new = RIG.raw_through(name);
    new.query("alter table docs alter body type toastrack.text using body::toastrack.text");
    new.send(&insert(1));
    assert_eq!(sqlstate(&new.until_ready(1)), "none");
    assert!(raw_body(name, 1).starts_with("toast:"));
    let blind = [
        raw::parse("", "select body from docs", &[]),
        raw::bind("", "", &[], &[], &[]),
        raw::execute("", 0),
        raw::sync(),
    ]
    .concat();
    old.send(&blind);
    assert_eq!(raw::first_text(&old.until_ready(1)), big(), "at once");
    let copied = old.query("copy docs(body) to stdout");
    let line = copied
        .iter()
        .find(|message| message.tag == b'd')
        .expect("a row");
    assert_eq!(line.body, (big() + "\n").into_bytes());
    std::thread::sleep(Duration::from_millis(10));
    old.send(&insert(2));
    assert_eq!(sqlstate(&old.until_ready(1)), "none");
}
