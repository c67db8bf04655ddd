//! The start of a session, and sessions with settings of their own.

use crate::common::raw::{self, Raw};
use crate::common::values::expand;
use crate::pair::{Databases, RIG, Tally};

/// Proves S5 for all that a session says before it is ready, and for encodings and styles that the
/// start-up packet asks for.
#[test]
fn greetings() {
    let databases = Databases::create("greetings");
    let mut tally = Tally::new("greetings");
    let long = format!("-c application_name={}", "x".repeat(9000));
    for parameters in [
        &[][..],
        &[
            ("client_encoding", "UTF8"),
            ("application_name", "a = b = c"),
        ],
        &[("client_encoding", "LATIN1")],
        &[("client_encoding", "SQL_ASCII")],
        &[("extra_float_digits", "3"), ("datestyle", "SQL, DMY")],
        &[(
            "options",
            "-c bytea_output=escape -c search_path=other,public",
        )],
        &[(
            "options",
            "-c application_name=a=b=c -c statement_timeout=10s",
        )],
        &[("options", &long)],
        &[("standard_conforming_strings", "off")],
        &[("replication", "false")],
        &[("_pq_.unknown", "1")],
    ] {
        let mut pair = databases.connect_with(parameters);
        let greetings = [pair.plain.greeting.clone(), pair.packed.greeting.clone()];
        tally.compare(&format!("{parameters:?}"), &greetings);
        for sql in [
            "show search_path",
            "select b, body from docs where id = 1",
            "select long from docs where id = 5",
            "select body from public.docs where id in (1, 2, 5, 6) order by id",
        ] {
            pair.query(&mut tally, sql);
            let messages = [
                raw::parse("", sql, &[]),
                raw::bind("", "", &[], &[], &[1]),
                raw::execute("", 0),
                raw::sync(),
            ];
            pair.same(&mut tally, sql, &messages.concat(), 1);
        }
    }
    tally.finish();
}

/// Proves that sessions which Postgres refuses are refused in its words.
#[test]
fn refusals() {
    let databases = Databases::create("refusals");
    let mut tally = Tally::new("refusals");
    for (user, database) in [
        ("postgres", "nowhere"),
        ("nobody", "postgres"),
        ("", "postgres"),
        ("postgres", databases.packed()),
    ] {
        for (name, value) in [
            ("client_encoding", "nonsense"),
            ("nonsense", "1"),
            ("options", "-c nonsense=1"),
        ] {
            let answers = [RIG.cluster.port(), RIG.port].map(|port| {
                let mut raw = Raw::open(port);
                raw.send(&raw::startup(&[
                    ("user", user),
                    ("database", database),
                    (name, value),
                ]));
                raw.rest()
            });
            tally.compare(&format!("{user} {database} {name}"), &answers);
        }
    }
    tally.finish();
}

/// Proves C31: what a LATIN1 client writes, a UTF-8 client reads, and the other way; what it cannot
/// read is Postgres' own error, also amid other rows.
#[test]
fn encodings() {
    let databases = Databases::create("encodings");
    let mut pair = databases.connect();
    let mut tally = Tally::new("encodings");
    pair.query(&mut tally, "set client_encoding = latin1");
    let latin = |text: &str| -> Vec<u8> { text.chars().map(|c| c as u32 as u8).collect() };
    let sql = expand(
        "insert into docs(id, body, d) values (100, '@{latin}', '{\"k\": \"@{latin}\"}') returning body, d",
    );
    let message = raw::frame(b'Q', &[&latin(&sql)[..], b"\0"].concat());
    pair.same(&mut tally, "LATIN1 literals", &message, 1);
    let value = latin(&expand("@{latin}"));
    let messages = [
        raw::parse(
            "",
            "insert into docs(id, body) values (101, $1) returning body",
            &[],
        ),
        raw::bind("", "", &[], &[Some(&value)], &[]),
        raw::execute("", 0),
        raw::sync(),
    ];
    pair.same(&mut tally, "LATIN1 parameters", &messages.concat(), 1);
    for sql in [
        "select id, body, d from docs where id in (1, 5, 100, 101) order by id",
        "select long from docs where id = 5",
        "select id, long from docs order by id",
        "select long from docs where id = 1",
        "copy (select long from docs order by id) to stdout",
        "copy (select body, d from docs where id in (1, 2, 100) order by id) to stdout csv",
        "select array_agg(body order by id) from docs where id in (1, 100)",
    ] {
        pair.query(&mut tally, sql);
    }
    for encoding in ["win1252", "latin9", "sjis", "euc_jp", "sql_ascii"] {
        pair.query(&mut tally, &format!("set client_encoding = {encoding}"));
        pair.query(
            &mut tally,
            "select id, body, b from docs where id in (1, 2) order by id",
        );
    }
    pair.query(&mut tally, "set client_encoding = utf8");
    pair.query(
        &mut tally,
        "select id, body, d from docs where id >= 100 order by id",
    );
    // Bytes that are no UTF-8.
    let message = raw::frame(
        b'Q',
        b"insert into docs(id, body) values (102, '\xff\xfe')\0",
    );
    pair.same(&mut tally, "invalid literal", &message, 1);
    for value in [
        vec![0xff; 5000],
        [&[b'x'; 5000][..], &[0]].concat(),
        vec![0xc3; 1],
    ] {
        let messages = [
            raw::parse("", "insert into docs(id, body) values (102, $1)", &[]),
            raw::bind("", "", &[], &[Some(&value)], &[]),
            raw::execute("", 0),
            raw::sync(),
        ];
        pair.same(&mut tally, "invalid parameter", &messages.concat(), 1);
    }
    tally.finish();
}
