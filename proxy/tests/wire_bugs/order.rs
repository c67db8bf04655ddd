//! Message order and state.

use std::time::{Duration, Instant};

use futures::SinkExt;
use tokio_postgres::NoTls;

use crate::common::raw::{self, sqlstate, tags};
use crate::{RIG, big, database, sessions, unnamed};

/// COPY as tokio-postgres does it: to the end and broken off, and after each the connection works. (A
/// table that is missing puts tokio-postgres out of step with Postgres itself; the differential tests
/// have that case.)
#[test]
fn wire_bug_02_copy_over_the_extended_protocol() {
    let name = database("copy");
    RIG.cluster
        .execute("postgres", "create database wire_copy_plain")
        .expect("creates");
    RIG.raw_direct("wire_copy_plain")
        .query("create table docs(id int primary key, body text)");
    copies(RIG.cluster.port(), "wire_copy_plain");
    copies(RIG.port, &name);
}

fn copies(port: u16, name: &str) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let conninfo = format!("host=127.0.0.1 port={port} user=postgres dbname={name}");
        let (client, connection) = tokio_postgres::connect(&conninfo, NoTls)
            .await
            .expect("connects");
        tokio::spawn(connection);
        let copy = "copy docs(id, body) from stdin";
        for round in 0..3 {
            let sink = client
                .copy_in::<_, bytes::Bytes>(copy)
                .await
                .expect("starts");
            let mut sink = Box::pin(sink);
            let row = format!("{round}\t{}\n", big());
            sink.send(row.into()).await.expect("sends");
            assert_eq!(sink.as_mut().finish().await.expect("ends"), 1);

            let sink = client
                .copy_in::<_, bytes::Bytes>(copy)
                .await
                .expect("starts");
            let mut sink = Box::pin(sink);
            sink.send("100\tx\n".into()).await.expect("sends");
            drop(sink);

            let row = client
                .query_one("select count(*), max(length(body)) from docs", &[])
                .await
                .expect("reads");
            assert_eq!(
                (row.get::<_, i64>(0), row.get::<_, i32>(1)),
                (round + 1, 5000)
            );
        }
    });
}

/// An error reaches the client before any Sync; a query behind it is skipped; a later Sync gives one
/// ReadyForQuery.
#[test]
fn wire_bug_03_messages_after_an_error_are_skipped() {
    let name = database("skipped");
    let mut session = RIG.raw_through(&name);
    let messages = [
        unnamed("select 1/0"),
        raw::query("insert into docs(id) values (1)"),
    ];
    let sent = Instant::now();
    session.send(&messages.concat());
    // Postgres computes the constant while it binds.
    assert_eq!(tags(&session.until(b'E', 1)), "1E");
    assert!(sent.elapsed() < Duration::from_secs(1));
    assert!(session.is_quiet(Duration::from_millis(200)));
    session.send(&raw::sync());
    assert_eq!(tags(&session.until_ready(1)), "Z");
    assert!(session.is_quiet(Duration::from_millis(200)));
    let count = session.query("select count(*) from docs");
    assert_eq!(raw::first_text(&count), "0");
}

/// Flush is answered without Sync, page by page as node's pg-cursor reads; a Describe at the end of a
/// batch does not wait for anything.
#[test]
fn wire_bug_04_flush_is_not_sync() {
    let name = database("flush");
    let mut session = RIG.raw_through(&name);
    let insert = format!(
        "insert into docs(id, body) select g, '{}' from generate_series(1, 10) g; \
         insert into docs(id, body) values (11, '{0}'), (12, '{0}')",
        big()
    );
    assert_eq!(sqlstate(&session.query(&insert)), "none");
    let open = [
        raw::parse("", "select body from docs order by id desc", &[]),
        raw::bind("", "", &[], &[], &[]),
        raw::describe_portal(""),
        raw::flush(),
    ];
    session.send(&open.concat());
    assert_eq!(tags(&session.until(b'T', 1)), "12T");
    for _ in 0..2 {
        session.send(&[raw::execute("", 5), raw::flush()].concat());
        let page = session.until(b's', 1);
        assert_eq!(tags(&page), "DDDDDs");
        assert!(
            raw::rows(&page)
                .iter()
                .all(|row| row[0] == Some(big().into()))
        );
    }
    session.send(&[raw::execute("", 5), raw::flush()].concat());
    assert_eq!(tags(&session.until(b'C', 1)), "DDC");
    session.send(&[raw::close_portal(""), raw::sync()].concat());
    assert_eq!(tags(&session.until_ready(1)), "3Z");
    let batch = [
        unnamed("select 1"),
        raw::parse("", "select body from docs where id = 11", &[]),
        raw::bind("p", "", &[], &[], &[]),
        raw::execute("p", 0),
        raw::describe_portal("p"),
        raw::sync(),
    ];
    session.send(&batch.concat());
    assert_eq!(tags(&session.until_ready(1)), "12DC12DCTZ");
}

/// Clients that vanish in the middle of a batch, of a transaction, of a message or of a copy leave no
/// backend behind.
#[test]
fn wire_bug_05_clients_that_vanish() {
    let name = database("vanish");
    let half_bind = raw::bind("", "", &[], &[Some(&vec![b'x'; 100_000])], &[]);
    let half_query = raw::query(&"x".repeat(20 << 20));
    let lock = raw::query("begin; lock table docs in share mode");
    let ends: [(&[u8], &[u8]); 6] = [
        (
            &[],
            &raw::parse("", "insert into docs(id, body) values (1, $1)", &[]),
        ),
        (&lock, &unnamed("select 1")),
        (&lock, &half_bind[..50_000]),
        (&lock, &half_query[..18 << 20]),
        (
            &raw::query("copy docs from stdin"),
            &raw::frame(b'd', b"1\tx"),
        ),
        (&[], &raw::frame(b'd', b"1\tx")[..4]),
    ];
    for round in 0..48 {
        let mut session = RIG.raw_through(&name);
        let (first, last) = ends[round % ends.len()];
        session.send(first);
        session.send(last);
    }
    let deadline = Instant::now() + Duration::from_secs(2);
    while sessions(&name) > 0 {
        assert!(Instant::now() < deadline, "{} are left", sessions(&name));
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// NOTICE, NOTIFY and ParameterStatus between any two messages, rows of offloaded values included.
#[test]
fn wire_bug_06_messages_in_between() {
    let name = database("between");
    let mut session = RIG.raw_through(&name);
    let setup = format!(
        "insert into docs(id, body) values (1, '{0}'), (2, '{0}'); listen heard; \
         create function says(int) returns int language plpgsql as \
         $$ begin raise notice 'row %', $1; perform set_config('application_name', 'app' || $1, false); return $1; end $$",
        big()
    );
    assert_eq!(sqlstate(&session.query(&setup)), "none");
    let batch = [
        unnamed("set application_name = 'one'"),
        unnamed("select says(id), body from docs order by id"),
        unnamed("notify heard, 'x'"),
        unnamed("set application_name = 'two'"),
        raw::sync(),
    ];
    session.send(&batch.concat());
    let answer = session.until_ready(1);
    let order = tags(&answer);
    assert_eq!(
        order.replace(['S', 'A'], ""),
        "12C12NDNDC12C12CZ",
        "{order}"
    );
    assert_eq!(order.matches('A').count(), 1, "{order}");
    assert!(
        raw::rows(&answer)
            .iter()
            .all(|row| row[1] == Some(big().into()))
    );
}

/// A backend that is terminated in the middle of a result: the client gets one FATAL and the end.
#[test]
fn wire_bug_07_a_backend_that_is_killed() {
    let name = database("killed");
    let mut session = RIG.raw_through(&name);
    let insert = format!("insert into docs(id, body) values (1, '{}')", big());
    session.query(&insert);
    session.send(&raw::query(
        "select body, pg_sleep(0.002) from docs, generate_series(1, 100000)",
    ));
    assert_eq!(tags(&session.until(b'D', 3)), "TDDD");
    let kill = format!("select pg_terminate_backend({})", session.backend_pid());
    RIG.raw_direct("postgres").query(&kill);
    let rest = session.rest();
    let errors: Vec<_> = rest.iter().filter(|message| message.tag != b'D').collect();
    assert_eq!(errors.len(), 1, "{}", tags(&rest));
    assert_eq!(sqlstate(&rest), "57P01");
    // An idle one.
    let mut idle = RIG.raw_through(&name);
    let kill = format!("select pg_terminate_backend({})", idle.backend_pid());
    RIG.raw_direct("postgres").query(&kill);
    assert_eq!(sqlstate(&idle.rest()), "57P01");
}

/// The function call protocol: `lo_create` (OID 715) and then a query.
#[test]
fn wire_bug_08_function_call() {
    let name = database("function");
    let mut session = RIG.raw_through(&name);
    let body = [
        &715_u32.to_be_bytes()[..],
        &[0, 1, 0, 1, 0, 1, 0, 0, 0, 4],
        &0_u32.to_be_bytes(),
        &[0, 1],
    ]
    .concat();
    session.send(&raw::frame(b'F', &body));
    assert_eq!(tags(&session.until_ready(1)), "VZ");
    let count = session.query("select count(*) from pg_largeobject_metadata");
    assert_eq!(raw::first_text(&count), "1");
}

/// A JDBC batch: one Parse, many Binds of it with a Describe each, one Sync.
#[test]
fn wire_bug_09_batches_of_one_statement() {
    let name = database("batch");
    let mut session = RIG.raw_through(&name);
    let mut batch = raw::parse(
        "S_1",
        "insert into docs(id, body) values ($1, $2) returning body",
        &[23, 1043],
    );
    for id in 0..100_u32 {
        let value = format!("{id}{}", big());
        let params = [Some(&id.to_be_bytes()[..]), Some(value.as_bytes())];
        batch.extend(raw::bind("", "S_1", &[1, 0], &params, &[]));
        batch.extend(raw::describe_portal(""));
        batch.extend(raw::execute("", 0));
    }
    batch.extend(raw::sync());
    session.send(&batch);
    let answer = session.until_ready(1);
    assert_eq!(tags(&answer), format!("1{}Z", "2TDC".repeat(100)));
    for (id, row) in raw::rows(&answer).iter().enumerate() {
        assert_eq!(row[0], Some(format!("{id}{}", big()).into_bytes()));
    }
    let mut direct = RIG.raw_direct(&name);
    let raw_rows =
        direct.query("select count(*) from docs where toastrack.raw(body) like 'toast:%'");
    assert_eq!(raw::first_text(&raw_rows), "100");
}

/// What is asked right before the end is answered, with Terminate behind it or only the end of the
/// stream.
#[test]
fn answers_come_although_the_client_has_said_goodbye() {
    let name = database("goodbye");
    for goodbye in [raw::terminate(), Vec::new()] {
        let mut session = RIG.raw_through(&name);
        session.send(
            &[
                raw::query("select pg_sleep(0.2), repeat('x', 100000)"),
                goodbye,
            ]
            .concat(),
        );
        session
            .stream
            .shutdown(std::net::Shutdown::Write)
            .expect("shuts down");
        assert_eq!(tags(&session.rest()), "TDCZ");
    }
}
