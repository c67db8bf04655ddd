//! Batches of messages: what comes between, errors within, Flush, Close, empty queries, functions.

use crate::common::raw;
use crate::common::values::named;
use crate::pair::{Databases, Tally};

fn unnamed(sql: &str) -> Vec<u8> {
    [
        raw::parse("", sql, &[]),
        raw::bind("", "", &[], &[], &[]),
        raw::execute("", 0),
    ]
    .concat()
}

fn insert(id: &str, body: &str) -> Vec<u8> {
    let sql = "insert into docs(id, body) values ($1, $2) returning body";
    [
        raw::parse("", sql, &[]),
        raw::bind(
            "",
            "",
            &[],
            &[Some(id.as_bytes()), Some(body.as_bytes())],
            &[],
        ),
        raw::execute("", 0),
    ]
    .concat()
}

/// Proves S5 for the order of messages in pipelines, with errors, notices, notifications and changed
/// parameters anywhere in them.
#[test]
fn batches() {
    let databases = Databases::create("batches");
    let mut pair = databases.connect();
    let mut tally = Tally::new("batches");
    let big = named("big");
    let read = || unnamed("select body, d from docs where id = 1");
    let cases: Vec<(&str, Vec<u8>)> = vec![
        (
            "settings",
            [
                unnamed("set application_name = 'one'"),
                read(),
                unnamed("set application_name = 'two'"),
                unnamed("set datestyle = 'German'"),
                read(),
            ]
            .concat(),
        ),
        (
            "notices",
            [
                unnamed("select noisy('x'), body from docs where id = 1"),
                unnamed("select noisy(body), body from docs order by id"),
                unnamed("do $$ begin raise notice 'n'; raise warning 'w'; end $$"),
            ]
            .concat(),
        ),
        (
            "notifications",
            [
                unnamed("listen channel"),
                unnamed("select pg_notify('channel', 'first'), body from docs where id = 1"),
                read(),
                unnamed("notify channel, 'second'"),
            ]
            .concat(),
        ),
        (
            "an error in the middle",
            [
                insert("60", &big),
                unnamed("select 1/0"),
                insert("61", &big),
            ]
            .concat(),
        ),
        (
            "an error at Parse",
            [insert("60", &big), unnamed("selec"), insert("61", &big)].concat(),
        ),
        (
            "an error at Bind",
            [
                raw::parse("", "select $1::int", &[]),
                raw::bind("", "", &[], &[Some(b"x")], &[]),
                read(),
            ]
            .concat(),
        ),
        (
            "an error between rows",
            unnamed("select body, 1 / (5 - id) from docs order by id"),
        ),
        (
            "an error at Describe",
            [raw::describe_statement("none"), read()].concat(),
        ),
        ("no portal", [raw::execute("none", 0), read()].concat()),
        (
            "no statement",
            [raw::bind("", "none", &[], &[], &[]), read()].concat(),
        ),
        (
            "too few parameters",
            [
                raw::parse("", "insert into docs(id, body) values ($1, $2)", &[]),
                raw::bind("", "", &[], &[Some(b"60")], &[]),
            ]
            .concat(),
        ),
        (
            "too many formats",
            [
                raw::parse("", "insert into docs(id, body) values ($1, $2)", &[]),
                raw::bind(
                    "",
                    "",
                    &[0, 1, 0],
                    &[Some(b"60"), Some(big.as_bytes())],
                    &[],
                ),
            ]
            .concat(),
        ),
        (
            "a format that is none",
            [
                raw::parse("", "insert into docs(id, body) values ($1, $2)", &[]),
                raw::bind("", "", &[7], &[Some(b"60"), Some(big.as_bytes())], &[]),
            ]
            .concat(),
        ),
        (
            "result formats that are none",
            [
                raw::parse("", "select body from docs", &[]),
                raw::bind("", "", &[], &[], &[7]),
            ]
            .concat(),
        ),
        (
            "too many result formats",
            [
                raw::parse("", "select body from docs", &[]),
                raw::bind("", "", &[], &[], &[0, 1]),
                raw::execute("", 0),
            ]
            .concat(),
        ),
        (
            "empty",
            [unnamed(""), unnamed("-- nothing"), read()].concat(),
        ),
        ("two statements in one Parse", unnamed("select 1; select 2")),
        (
            "Flush everywhere",
            [
                raw::flush(),
                raw::parse("f", "select body from docs order by id", &[]),
                raw::flush(),
                raw::bind("", "f", &[], &[], &[]),
                raw::flush(),
                raw::execute("", 3),
                raw::flush(),
                raw::execute("", 0),
                raw::close_statement("f"),
                raw::flush(),
            ]
            .concat(),
        ),
        (
            "Close of what is not there",
            [
                raw::close_portal("none"),
                raw::close_statement("none"),
                raw::close_portal(""),
            ]
            .concat(),
        ),
        (
            "executed twice",
            [read(), raw::execute("", 0), raw::execute("", 0)].concat(),
        ),
        (
            "bound twice",
            [
                raw::parse("", "select body from docs where id = $1", &[]),
                raw::bind("", "", &[], &[Some(b"1")], &[]),
                raw::bind("", "", &[], &[Some(b"2")], &[1]),
                raw::execute("", 0),
            ]
            .concat(),
        ),
        (
            "a transaction",
            [
                unnamed("begin"),
                insert("60", &big),
                unnamed("savepoint s"),
                insert("61", &big),
                unnamed("rollback to s"),
                read(),
                unnamed("rollback"),
            ]
            .concat(),
        ),
        (
            "a transaction that fails",
            [
                unnamed("begin"),
                insert("60", &big),
                insert("1", &big),
                insert("61", &big),
            ]
            .concat(),
        ),
        ("rollback afterwards", unnamed("rollback")),
        (
            "commit within",
            [insert("62", &big), unnamed("commit"), insert("62", &big)].concat(),
        ),
        (
            "many",
            (0..200)
                .flat_map(|id| insert(&(1000 + id).to_string(), &format!("{id}{big}")))
                .collect(),
        ),
        (
            "many read",
            (0..50)
                .flat_map(|_| unnamed("select body, d, b from docs where id < 9 order by id"))
                .collect(),
        ),
        (
            "varied formats",
            [
                raw::parse("v", "select id, body, b from docs order by id", &[]),
                raw::bind("", "v", &[], &[], &[0]),
                raw::execute("", 0),
                raw::bind("", "v", &[], &[], &[1]),
                raw::execute("", 0),
                raw::bind("", "v", &[], &[], &[0, 1, 0]),
                raw::execute("", 0),
                raw::close_statement("v"),
            ]
            .concat(),
        ),
    ];
    for (what, messages) in cases {
        pair.same(&mut tally, what, &[messages, raw::sync()].concat(), 1);
        pair.query(
            &mut tally,
            "select id, length(body) from docs where id > 50 order by id",
        );
        pair.quietly("rollback; delete from docs where id > 50; unlisten *; reset datestyle");
    }
    tally.finish();
}

/// Proves that errors outside of the usual order are told as Postgres tells them: a simple query amid
/// an unfinished batch, one that the server skips, Sync upon Sync, the function call protocol.
#[test]
fn unusual_orders() {
    let databases = Databases::create("unusual");
    let mut pair = databases.connect();
    let mut tally = Tally::new("unusual");
    let read = unnamed("select body from docs where id = 1");
    let query = raw::query("select d from docs where id = 1");
    let sync = raw::sync();
    pair.same(
        &mut tally,
        "a query amid a batch",
        &[&read[..], &query, &read, &sync].concat(),
        2,
    );
    let fails = unnamed("select 1/0");
    pair.same(
        &mut tally,
        "a query that is skipped",
        &[&fails[..], &query, &read, &sync].concat(),
        1,
    );
    pair.same(
        &mut tally,
        "Syncs",
        &[&sync[..], &sync, &sync, &read, &sync].concat(),
        4,
    );
    pair.same(
        &mut tally,
        "queries at once",
        &[&query[..], &query, &query].concat(),
        3,
    );
    let failing = raw::query("select body, 1 / (2 - id) from docs order by id");
    pair.same(
        &mut tally,
        "failing queries at once",
        &[&failing[..], &query, &failing].concat(),
        3,
    );
    pair.same(
        &mut tally,
        "a query with a zero inside",
        &raw::frame(b'Q', b"select 1\0; select 2\0"),
        1,
    );
    pair.same(
        &mut tally,
        "a batch behind a query",
        &[&query[..], &read, &sync, &query].concat(),
        3,
    );
    // lower(text), by its OID, with the value of one argument in text format.
    for body in [
        [
            &870_u32.to_be_bytes()[..],
            &[0, 0, 0, 1, 0, 0, 0, 3],
            b"ABC",
            &[0, 0],
        ]
        .concat(),
        [&1_u32.to_be_bytes()[..], &[0, 0, 0, 0, 0, 0]].concat(),
    ] {
        pair.same(&mut tally, "FunctionCall", &raw::frame(b'F', &body), 1);
        pair.same(&mut tally, "behind it", &query, 1);
    }
    pair.same(
        &mut tally,
        "a stray CopyDone",
        &[raw::frame(b'c', b""), query.clone()].concat(),
        1,
    );
    pair.same(
        &mut tally,
        "a stray CopyData",
        &[raw::frame(b'd', b"x"), query.clone()].concat(),
        1,
    );
    tally.finish();
}

/// Proves that what breaks the protocol ends the connection with Postgres' own words.
#[test]
fn broken_messages() {
    let databases = Databases::create("broken");
    let mut tally = Tally::new("broken");
    let frame = |tag: u8, len: i32, body: &[u8]| [&[tag][..], &len.to_be_bytes(), body].concat();
    let mut cases: Vec<Vec<u8>> = Vec::new();
    for tag in *b"QPBEDCHSFdcfXp@\0z" {
        for len in [-1, 0, 3, i32::MAX, 0x3fff_ffff] {
            cases.push(frame(tag, len, b"rest\0"));
        }
    }
    // Bodies that lie: each is followed by a Sync, so that an error which is not fatal ends as well.
    for (tag, body) in [
        (b'Q', &b"no zero"[..]),
        (b'P', b"no zero"),
        (b'P', b"s\0select 1\0\xff\xff"),
        (b'P', b"s\0select 1\0\0\x05\0\0"),
        (b'B', b"p\0s\0\0\x01\0\x01"),
        (b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0"),
        (b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"),
        (b'E', b"\0\0"),
        (b'E', b"\0\0\0\0\0\0"),
        (b'D', b"X\0"),
        (b'D', b""),
        (b'C', b"X\0"),
        (b'S', b"extra"),
        (b'H', b"extra"),
        (b'F', b"\0"),
        (b'f', b"no zero"),
    ] {
        cases.push([raw::frame(tag, body), raw::sync()].concat());
    }
    for bytes in cases {
        let mut pair = databases.connect();
        let bytes = [&bytes[..], &raw::terminate()].concat();
        for side in [&mut pair.plain, &mut pair.packed] {
            side.send(&bytes);
            side.stream
                .shutdown(std::net::Shutdown::Write)
                .expect("shuts down");
        }
        let answers = [&mut pair.plain, &mut pair.packed].map(|side| side.rest());
        tally.compare(&format!("{:?}", raw::show(&bytes)), &answers);
    }
    tally.finish();
}
