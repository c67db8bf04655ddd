//! A value that cannot be read: an error in the place of the row, never wrong bytes (S4).

mod common;

use std::path::PathBuf;
use std::sync::LazyLock;

use common::raw::{self, Raw, error_field, sqlstate, tags};
use common::values::named;
use common::{Rig, RigOptions};

/// Without a cache, so that every read goes to the files.
static RIG: LazyLock<Rig> = LazyLock::new(|| {
    Rig::shared(RigOptions {
        cache_bytes: 0,
        ..RigOptions::default()
    })
});

/// A database with ten rows, of which the fifth is broken.
fn database(name: &str) -> Raw {
    let name = format!("corrupt_{name}");
    RIG.create_packed(&name);
    let mut session = RIG.raw_through(&name);
    session.query("create table docs(id int primary key, body toastrack.text)");
    for id in 1..=10 {
        let answer = session.query(&format!(
            "insert into docs values ({id}, '{name} {id} {}')",
            named("noise")
        ));
        assert_eq!(sqlstate(&answer), "none");
    }
    let answer = RIG
        .raw_direct(&name)
        .query("select toastrack.raw(body)::text from docs where id = 5");
    let text = raw::first_text(&answer);
    let reference = RIG
        .store
        .parse_any_text(text.as_bytes())
        .expect("a reference");
    flip(reference.segment(), u64::from(reference.offset()) + 200);
    session
}

/// Changes one byte of a segment file.
fn flip(segment: u32, at: u64) {
    use std::os::unix::fs::FileExt;
    let path: PathBuf = RIG
        .directory
        .path()
        .join(format!("store/segments/{segment:08x}.seg"));
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .expect("a segment");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("reads");
    file.write_all_at(&[!byte[0]], at).expect("writes");
}

fn unnamed(sql: &str) -> Vec<u8> {
    [
        raw::parse("", sql, &[]),
        raw::bind("", "", &[], &[], &[]),
        raw::execute("", 0),
    ]
    .concat()
}

/// Proves C10 and S4: XX001 for that statement only, with segment and offset; the session is alive and
/// other rows are readable.
#[test]
fn case_c10_one_row_is_broken() {
    let mut session = database("row");
    for _ in 0..2 {
        let answer = session.query("select body from docs order by id");
        assert_eq!(tags(&answer), "TDDDDEZ");
        assert_eq!(sqlstate(&answer), "XX001");
        let message = error_field(&answer, b'M').expect("a message");
        assert!(message.contains("segment"), "{message}");
        assert_eq!(answer.last().expect("Z").body, b"I");
        let answer = session.query("select body from docs where id <> 5 order by id");
        assert_eq!(tags(&answer), "TDDDDDDDDDCZ");
    }
    let answer = session.query("copy docs to stdout");
    assert_eq!(tags(&answer), "HddddEZ");
    assert_eq!(sqlstate(&answer), "XX001");
    let answer = session.query("select id from docs");
    assert_eq!(tags(&answer), "TDDDDDDDDDDCZ");
    // The server's own way to the value finds it broken as well.
    let answer = session.query("select upper(body) from docs where id = 5");
    assert_eq!(sqlstate(&answer), "XX001");
    // What stands behind it in the same query is not answered, as behind any error.
    let answer = session.query("select body from docs; select 'next'");
    assert_eq!(tags(&answer), "TDDDDEZ");
}

/// Proves that the transaction is aborted in the backend too: 25P02 until ROLLBACK, in both protocols.
#[test]
fn the_transaction_is_aborted_in_the_backend() {
    let mut session = database("transaction");
    for broken in [
        raw::query("select body from docs"),
        [unnamed("select body from docs"), raw::sync()].concat(),
        raw::query("copy docs to stdout"),
    ] {
        session.query("begin; delete from docs where id = 1");
        session.send(&broken);
        let answer = session.until_ready(1);
        assert_eq!(sqlstate(&answer), "XX001");
        assert_eq!(tags(&answer).matches(['E', 'Z']).count(), 2);
        assert_eq!(answer.last().expect("Z").body, b"E");
        for _ in 0..2 {
            assert_eq!(sqlstate(&session.query("select 1")), "25P02");
        }
        assert_eq!(tags(&session.query("commit")), "CZ");
        let count = session.query("select count(*) from docs");
        assert_eq!(raw::first_text(&count), "10", "the delete is undone");
    }
    // A savepoint saves what was before it.
    session.query("begin; savepoint s");
    assert_eq!(sqlstate(&session.query("select body from docs")), "XX001");
    assert_eq!(tags(&session.query("rollback to s")), "CZ");
    assert_eq!(tags(&session.query("select 1; commit")), "TDCCZ");
}

/// WIRE-BUG 1: the error keeps its place among the replies of a pipeline, and the rest up to the Sync
/// is not answered; behind the Sync it goes on.
#[test]
fn wire_bug_01_the_error_keeps_its_place() {
    let mut session = database("place");
    let batch = [
        raw::parse("s", "select 1", &[]),
        raw::close_statement("s"),
        raw::sync(),
        unnamed("select body from docs order by id"),
        unnamed("select 2"),
        raw::sync(),
        unnamed("select 3"),
        raw::sync(),
    ];
    session.send(&batch.concat());
    let answer = session.until_ready(3);
    assert_eq!(tags(&answer), "13Z12DDDDEZ12DCZ");
}

/// Proves that a transaction whose error could not be known in time is not taken for one that failed,
/// since it may be committed: the session ends before it says it is ready.
#[test]
fn what_cannot_be_undone_ends_the_session() {
    for (name, before, behind) in [
        ("pipelined", "begin", vec![unnamed("commit"), raw::sync()]),
        ("implicit", "select", vec![]),
    ] {
        let mut session = database(name);
        session.query(before);
        let mut batch = vec![
            unnamed("select body from docs"),
            unnamed("delete from docs where id = 1"),
            raw::sync(),
        ];
        batch.extend(behind);
        session.send(&batch.concat());
        let rest = session.rest();
        assert_eq!(tags(&rest), "12DDDDEE", "{name}");
        let fatal = toastrack_wire::ErrorFields::parse(&rest[7].body).expect("an error");
        assert_eq!(fatal.get(b'V'), Some(&b"FATAL"[..]));
    }
}

/// Proves the same for an INSERT that returns a broken value: it is not reported as failed and kept.
#[test]
fn a_write_that_returns_a_broken_value() {
    let mut session = database("returning");
    session.send(&raw::query(
        "update docs set id = id + 100 where id = 5 returning body",
    ));
    assert_eq!(tags(&session.rest()), "TEE");
}
