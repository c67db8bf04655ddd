//! COPY in both directions, in every format, of tables and queries.

use crate::common::raw::{self, Message};
use crate::common::values::named;
use crate::pair::{Databases, Pair, Tally};

const OPTIONS: &[&str] = &[
    "",
    "(format text)",
    "(format text, delimiter '|', null 'nil')",
    "(format text, delimiter E'\\x01')",
    "(format csv)",
    "(format csv, header)",
    "(format csv, delimiter ';', quote '''', escape '\\', null 'NULL')",
    "(format csv, force_quote *)",
    "(format csv, force_quote (body, d))",
    "(format csv, quote '~', delimiter E'\\t')",
    "(format csv, null 'a')",
    "(format binary)",
    "(encoding 'UTF8')",
    "csv header",
    "binary",
    "with csv delimiter as ';' null as '-' quote as '''' force quote body",
    "delimiter ',' null ''",
];

const SOURCES: &[&str] = &[
    "docs",
    "docs(id, body)",
    "docs(b, d, j)",
    "public.docs(long, short, note)",
    "many",
    "many(bs)",
    "other.docs",
    "kv(v)",
    "(select * from docs order by id)",
    "(select body from docs order by id)",
    "(select id, upper(left(body, 9)), d, b || '\\x00' from docs order by id)",
    "(select array_agg(body order by id), array_agg(b order by id) from docs)",
    "(select body || E'\\t\\\\\\n\"' from docs where id < 3 order by id)",
    "(insert into docs(id, body) values (900, 'x') returning id, body)",
    "(select count(*) from docs)",
    "(select 1 where false)",
];

/// Proves S5 for COPY ... TO STDOUT of every source with every option, in both protocols, with two
/// styles of bytea.
#[test]
fn copies_out() {
    let databases = Databases::create("copies_out");
    let mut pair = databases.connect();
    let mut tally = Tally::new("copies_out");
    for style in ["hex", "escape"] {
        pair.quietly(&format!("set bytea_output = {style}"));
        for source in SOURCES {
            for options in OPTIONS {
                let sql = format!("copy {source} to stdout {options}");
                pair.quietly("begin");
                pair.same(&mut tally, &sql, &raw::query(&sql), 1);
                pair.quietly("rollback; begin");
                let extended = [
                    raw::parse("", &sql, &[]),
                    raw::bind("", "", &[], &[], &[]),
                    raw::execute("", 0),
                    raw::sync(),
                ];
                pair.same(&mut tally, &sql, &extended.concat(), 1);
                pair.quietly("rollback");
            }
        }
    }
    let several = "copy docs to stdout; select body from docs where id = 1; \
        copy docs(body) to stdout csv; copy docs(b) to stdout binary";
    pair.same(&mut tally, several, &raw::query(several), 1);
    tally.finish();
}

/// Proves that rows which COPY brings in read back equal, by COPY and SELECT.
#[test]
fn copies_in() {
    let databases = Databases::create("copies_in");
    let mut pair = databases.connect();
    let mut tally = Tally::new("copies_in");
    for options in [
        "",
        "csv",
        "binary",
        "(format csv, delimiter ';', quote '~')",
    ] {
        // What the plain side gives out goes into both.
        let out = format!("copy docs to stdout {options}");
        let [plain, packed] = pair.round(&raw::query(&out), 1);
        let data: Vec<Message> = plain
            .iter()
            .filter(|message| message.tag == b'd')
            .cloned()
            .collect();
        tally.compare(&out, &[plain, packed]);
        let bytes: Vec<u8> = data.into_iter().flat_map(|message| message.body).collect();
        for piece_len in [1_000_000, 1021] {
            pair.quietly("begin; create temp table saved as select * from docs; delete from docs");
            let sql = format!("copy docs from stdin {options}");
            let mut messages = Vec::new();
            for piece in bytes.chunks(piece_len) {
                messages.extend(raw::frame(b'd', piece));
            }
            messages.extend(raw::frame(b'c', b""));
            copy_in(&mut pair, &mut tally, &sql, &messages);
            for check in [
                "select * from docs order by id",
                "copy (select * from docs order by id) to stdout",
                "update docs set note = 'touched' where id = 1 returning *",
            ] {
                pair.query(&mut tally, check);
            }
            pair.quietly("rollback");
        }
    }
    tally.finish();
}

/// Both ways of starting a copy: a simple query; an Execute whose Sync the copy swallows.
fn copy_in(pair: &mut Pair, tally: &mut Tally, sql: &str, data: &[u8]) {
    let started = pair.round_until(&raw::query(sql), b'G', 1);
    tally.compare(sql, &started);
    pair.same(tally, sql, data, 1);
    pair.query(tally, "delete from docs");
    let start = [
        raw::parse("", sql, &[]),
        raw::bind("", "", &[], &[], &[]),
        raw::execute("", 0),
        raw::sync(),
    ];
    let started = pair.round_until(&start.concat(), b'G', 1);
    tally.compare(sql, &started);
    pair.same(tally, sql, &[data, &raw::sync()].concat(), 1);
}

/// Proves that copies which fail, in every way, leave both sides in the same state.
#[test]
fn copies_that_fail() {
    let databases = Databases::create("copies_fail");
    let mut pair = databases.connect();
    let mut tally = Tally::new("copies_fail");
    let bad_row = raw::frame(b'd', b"not a number\tx\n");
    let good_row = |id: u32| raw::frame(b'd', format!("{id}\t{}\n", named("big")).as_bytes());
    let done = raw::frame(b'c', b"");
    let fail = raw::frame(b'f', b"on second thoughts\0");
    let copy = "copy docs(id, body) from stdin";
    for (what, messages) in [
        ("a bad row", [&bad_row[..], &done].concat()),
        ("CopyFail", [&good_row(700)[..], &fail].concat()),
        (
            "rows behind a bad one",
            [&bad_row[..], &good_row(701), &done].concat(),
        ),
        (
            "Flush and Sync amid the copy",
            [good_row(702), raw::flush(), raw::sync(), done.clone()].concat(),
        ),
    ] {
        let started = pair.round_until(&raw::query(copy), b'G', 1);
        tally.compare(what, &started);
        pair.same(&mut tally, what, &messages, 1);
        pair.query(&mut tally, "select id, body from docs where id >= 700");
        pair.query(&mut tally, "delete from docs where id >= 700");
    }
    for (what, sql, sent_at_once) in [
        (
            "a table that is missing",
            "copy nowhere from stdin",
            [good_row(1), done.clone(), raw::sync()].concat(),
        ),
        (
            "a bad row, extended",
            copy,
            [bad_row.clone(), done.clone(), raw::sync()].concat(),
        ),
        (
            "CopyFail, extended",
            copy,
            [good_row(703), fail.clone(), raw::sync()].concat(),
        ),
        (
            "a good row, extended",
            copy,
            [good_row(704), done.clone(), raw::sync()].concat(),
        ),
    ] {
        let all = [
            raw::parse("", sql, &[]),
            raw::bind("", "", &[], &[], &[]),
            raw::describe_portal(""),
            raw::execute("", 0),
            sent_at_once,
        ];
        pair.same(&mut tally, what, &all.concat(), 1);
        pair.query(&mut tally, "select id, body from docs where id >= 700");
        pair.quietly("delete from docs where id >= 700");
    }
    let mut other = databases.connect();
    let started = other.round_until(&raw::query(copy), b'G', 1);
    tally.compare("a query amid the copy", &started);
    // It ends the connection.
    other.same(
        &mut tally,
        "a query amid the copy",
        &raw::query("select 1"),
        1,
    );
    // An error amid a copy out.
    let sql = "copy (select body, 1 / (5 - id) from docs order by id) to stdout";
    pair.query(&mut tally, sql);
    pair.query(&mut tally, "select body from docs where id = 1");
    tally.finish();
}
