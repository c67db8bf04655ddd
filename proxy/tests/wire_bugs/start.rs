//! Start-up, cancel, authentication.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use toastrack_wire::startup::{
    encode_cancel_request, encode_gssenc_request, encode_ssl_request, encode_startup,
};

use crate::common::raw::{self, Raw, sqlstate, tags};
use crate::{RIG, big, database};

fn read_byte(session: &mut Raw) -> u8 {
    let mut byte = [0];
    session.stream.read_exact(&mut byte).expect("a byte");
    byte[0]
}

fn request(encode: fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}

/// GSSENCRequest, then SSLRequest, then the start-up; what is glued behind a request ends it.
#[test]
fn wire_bug_10_encryption_preamble() {
    let mut session = Raw::open(RIG.port);
    for ask in [encode_gssenc_request, encode_ssl_request] {
        session.send(&request(ask));
        assert_eq!(read_byte(&mut session), b'N');
    }
    session.send(&raw::startup(&[
        ("user", "postgres"),
        ("database", "postgres"),
    ]));
    assert!(tags(&session.until_ready(1)).starts_with('R'));

    for ask in [encode_gssenc_request, encode_ssl_request] {
        let mut session = Raw::open(RIG.port);
        session.send(&[request(ask), raw::startup(&[("user", "postgres")])].concat());
        assert_eq!(sqlstate(&session.rest()), "08P01");
    }
}

/// A version of tomorrow with an option of tomorrow is negotiated once, as by Postgres.
#[test]
fn wire_bug_11_protocol_negotiation() {
    let answers = [RIG.cluster.port(), RIG.port].map(|port| {
        let mut session = Raw::open(port);
        let mut out = Vec::new();
        let parameters: [(&[u8], &[u8]); 3] = [
            (b"user", b"postgres"),
            (b"database", b"postgres"),
            (b"_pq_.later", b"1"),
        ];
        encode_startup(&mut out, (3 << 16) | 9999, &parameters).expect("a start-up");
        session.send(&out);
        session.until_ready(1)
    });
    assert_eq!(answers[0][0], answers[1][0]);
    assert_eq!(tags(&answers[1]).matches('v').count(), 1);
    assert_eq!(tags(&answers[0]), tags(&answers[1]));
    for version in [2_u32 << 16, 4 << 16, 1234 << 16] {
        let answers = [RIG.cluster.port(), RIG.port].map(|port| {
            let mut session = Raw::open(port);
            session.send(&[&8_u32.to_be_bytes()[..], &version.to_be_bytes()].concat());
            let mut rest = Vec::new();
            session.stream.read_to_end(&mut rest).expect("the end");
            // Version 2 has errors of its own layout.
            rest.first().copied()
        });
        assert_eq!(answers[0], answers[1], "{version:x}");
    }
}

fn cancel(port: u16, key: &[u8], more: &[u8]) {
    let (pid, secret) = key.split_first_chunk().expect("a pid");
    let mut out = Vec::new();
    encode_cancel_request(&mut out, u32::from_be_bytes(*pid), secret).expect("a request");
    out.extend_from_slice(more);
    let mut session = Raw::open(port);
    session.stream.write_all(&out).expect("sends");
    // Nothing is answered.
    let mut rest = Vec::new();
    let _ = session.stream.read_to_end(&mut rest);
    assert!(rest.is_empty());
}

/// A storm of cancels on one session never hits another; a cancel with a byte too many does no harm.
#[test]
fn wire_bug_12_cancel_races() {
    let name = database("cancel");
    let mut target = RIG.raw_through(&name);
    let mut other = RIG.raw_through(&name);
    let key = target.cancel_key().to_vec();
    let storm = std::thread::spawn(move || {
        for round in 0..100_usize {
            cancel(RIG.port, &key, &[0; 1][..round % 2]);
        }
    });
    while !storm.is_finished() {
        let answer = target.query("select pg_sleep(0.05)");
        assert!(["none", "57014"].contains(&sqlstate(&answer).as_str()));
        let answer = other.query("select pg_sleep(0.01)");
        assert_eq!(sqlstate(&answer), "none");
    }
    storm.join().expect("the storm ends");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(sqlstate(&target.query("select 1")), "none");
}

/// C27: a cancel during a large fetch ends that one; the next query at once is not hit.
#[test]
fn case_c27_cancel_during_a_fetch() {
    let name = database("fetch");
    let mut session = RIG.raw_through(&name);
    session.query(&format!(
        "insert into docs(id, body) values (1, '{}')",
        big()
    ));
    session.send(&raw::query(
        "select body from docs, generate_series(1, 1000000)",
    ));
    assert_eq!(tags(&session.until(b'D', 2)), "TDD");
    cancel(RIG.port, session.cancel_key(), &[]);
    session.send(&raw::query("select 'next'"));
    let first = session.until_ready(1);
    assert_eq!(sqlstate(&first), "57014");
    let next = session.until_ready(1);
    assert_eq!(raw::first_text(&next), "next");
}

/// Options with several `=`; a search_path of the client has no say in the proxy's own queries, which
/// would otherwise run what lies there.
#[test]
fn wire_bug_13_start_up_options() {
    let name = database("options");
    let setup = "create schema evil; create table evil.log(what text); \
        create function evil.trap() returns boolean language plpgsql as \
        $$ begin insert into evil.log values ('trapped'); return true; end $$; \
        create view evil.pg_type as select * from pg_catalog.pg_type where evil.trap(); \
        create view evil.pg_class as select * from pg_catalog.pg_class where evil.trap(); \
        create view evil.pg_attribute as select attrelid, attname from pg_catalog.pg_attribute where evil.trap(); \
        create view evil.pg_namespace as select * from pg_catalog.pg_namespace where evil.trap()";
    assert_eq!(sqlstate(&RIG.raw_direct(&name).query(setup)), "none");
    let options = "-c application_name=a=b==c -c search_path=evil,pg_catalog,public,toastrack";
    let parameters = [
        ("user", "postgres"),
        ("database", name.as_str()),
        ("options", options),
    ];
    let mut session = Raw::connect_with(RIG.port, &parameters);
    assert_eq!(
        raw::first_text(&session.query("show application_name")),
        "a=b==c"
    );
    let insert = format!(
        "create table public.later(v toastrack.text); insert into public.docs(id, body) values (1, '{}')",
        big()
    );
    assert_eq!(sqlstate(&session.query(&insert)), "none");
    assert_eq!(
        raw::first_text(&session.query("select body from public.docs")),
        big()
    );
    assert_eq!(
        raw::first_text(&session.query("select count(*) from evil.log")),
        "0"
    );
}

/// Wrong passwords, unknown roles and rejected ones end the connection with Postgres' own error; right
/// passwords work by every method.
#[test]
fn wire_bug_14_authentication_errors() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let try_as = |port: u16, role: &str, password: &str| {
        let conninfo =
            format!("host=127.0.0.1 port={port} user={role} password={password} dbname=postgres");
        runtime.block_on(async {
            match tokio_postgres::connect(&conninfo, tokio_postgres::NoTls).await {
                Ok(_) => "in".to_owned(),
                Err(error) => match error.as_db_error() {
                    Some(db) => db.code().code().to_owned(),
                    None => error.to_string(),
                },
            }
        })
    };
    for (role, password, expected) in [
        ("by_scram", "secret", "in"),
        ("by_md5", "secret", "in"),
        ("by_password", "secret", "in"),
        ("by_scram", "wrong", "28P01"),
        ("by_md5", "wrong", "28P01"),
        ("by_password", "wrong", "28P01"),
        ("rejected", "secret", "28000"),
        ("nobody", "secret", "28000"),
    ] {
        for port in [RIG.cluster.port(), RIG.port] {
            assert_eq!(try_as(port, role, password), expected, "{role} {password}");
        }
    }
}

/// C14: a start-up that comes byte by byte; one of 20 kB is refused, as by Postgres 15.
#[test]
fn case_c14_start_up_byte_by_byte() {
    let mut session = Raw::open(RIG.port);
    for byte in raw::startup(&[("user", "postgres"), ("database", "postgres")]) {
        session.send(&[byte]);
    }
    assert!(tags(&session.until_ready(1)).ends_with('Z'));
    let long = [
        &20_000_u32.to_be_bytes()[..],
        &(3_u32 << 16).to_be_bytes(),
        &[b'x'; 19_992],
    ]
    .concat();
    for port in [RIG.cluster.port(), RIG.port] {
        let mut session = Raw::open(port);
        session.send(&long);
        let mut rest = Vec::new();
        let _ = session.stream.read_to_end(&mut rest);
        assert!(rest.is_empty() || rest[0] == b'E');
    }
}

/// Lengths that lie, before a session is one: no panic, no waiting, no large allocation.
#[test]
fn wire_bug_15_lengths_of_the_first_packet() {
    for length in [-1_i32, 0, 3, 7, i32::MAX, 65_537, 0x5353_4c20] {
        let mut session = Raw::open(RIG.port);
        session.send(&[&length.to_be_bytes()[..], &[0; 64]].concat());
        let asked = Instant::now();
        let mut rest = Vec::new();
        let _ = session.stream.read_to_end(&mut rest);
        assert!(asked.elapsed() < Duration::from_secs(5), "{length}");
    }
    // And while a password is awaited.
    for (tag, length) in [
        (b'p', i32::MAX),
        (b'p', -1),
        (b'p', 3),
        (b'Q', 100),
        (b'p', 65_536),
    ] {
        let mut session = Raw::open(RIG.port);
        session.send(&raw::startup(&[
            ("user", "by_scram"),
            ("database", "postgres"),
        ]));
        assert_eq!(tags(&session.until(b'R', 1)), "R");
        session.send(&[&[tag][..], &length.to_be_bytes(), &[0; 200]].concat());
        let asked = Instant::now();
        let _ = session.rest();
        assert!(asked.elapsed() < Duration::from_secs(5), "{length}");
    }
}
