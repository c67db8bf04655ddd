//! The order of messages: both protocols, several copies in one text, breaks, and clients that do not wait.

use std::time::Duration;

use futures::SinkExt;
use tokio_postgres::NoTls;

use crate::common::raw::{self, Raw, sqlstate, tags};
use crate::common::resident;
use crate::common::values::named;
use crate::{End, Pair, RIG, same, until_asked};

fn row(id: u32, value: &str) -> Vec<u8> {
    format!("{id}\t{value}\n").into_bytes()
}

/// Proves that several copies in one text go each to its own target, in a transaction and outside; a copy
/// behind a statement that may set anything stays inline.
#[test]
fn several_copies_in_one_query() {
    let mut pair = Pair::new(&RIG, "several");
    pair.create("create table other(id int primary key, body text, d T.jsonb)");
    let big = named("big")[..4000].to_owned();
    for (round, (sql, left)) in [
        ("copy docs(id, body) from stdin; copy other(id, body) from stdin; copy docs(id, long) from stdin", [1, 1]),
        ("begin; copy docs(id, body) from stdin; copy docs(id, long) from stdin; commit", [1, 1]),
        ("begin; savepoint s; copy docs(id, body) from stdin; rollback to s; copy docs(id, long) from stdin; commit", [0, 1]),
        ("copy docs(id, body) from stdin; select 1; copy docs(id, long) from stdin", [1, 0]),
        ("set work_mem = '8MB'; copy docs(id, body) from stdin", [0, 0]),
        ("copy other(id, body) from stdin; copy docs(id, body) from stdin", [1, 0]),
    ]
    .into_iter()
    .enumerate()
    {
        println!("{round}: {sql}");
        pair.query("truncate docs, other");
        let next = |id: &mut u32| {
            *id += 1;
            raw::frame(b'd', &row(*id, &format!("{big}{id}")))
        };
        let [plain, packed] = [&mut pair.plain, &mut pair.packed].map(|side| {
            let mut id = 0;
            side.send(&raw::query(sql));
            let mut answer = until_asked(side);
            while answer.last().is_some_and(|message| message.tag == b'G') {
                side.send(&[next(&mut id), raw::frame(b'c', b"")].concat());
                answer.extend(until_asked(side));
            }
            answer
        });
        same(sql, &plain, &packed);
        assert_eq!(sqlstate(&plain), "none", "{sql}");
        pair.check("docs");
        pair.query("select * from other");
        let found = pair.left("docs");
        assert_eq!([found[0], found[1]], left, "{sql}");
        let text = raw::first_text(&pair.packed.query("select count(*) from other where body like 'toast:%'"));
        assert_eq!(text, "0");
    }
}

/// Proves that broken off and failed copies leave both sides alike, and that values leave again after.
#[test]
fn copies_that_end_early() {
    let mut pair = Pair::new(&RIG, "early");
    let big = named("big");
    let sql = "copy docs(id, body) from stdin";
    let rows = [row(1, &big), row(2, &big)];
    let both = [&rows[0][..], &rows[1]];
    for begin in ["", "begin"] {
        pair.query(begin);
        assert_eq!(sqlstate(&pair.copy(sql, &both, End::Fail)), "57014");
        pair.query("rollback");
        pair.query("select count(*) from docs");
        pair.query(begin);
        // An error amid the rows, and rows behind it.
        let bad = [&rows[0][..], b"x\ty\n", &rows[1]];
        assert_eq!(sqlstate(&pair.copy(sql, &bad, End::Done)), "22P02");
        pair.query("select 1");
        assert_eq!(
            sqlstate(&pair.copy(sql, &both, End::Done)) == "none",
            begin.is_empty()
        );
        pair.query("rollback; truncate docs");
    }
    // Nothing at all, half a row, an empty message.
    pair.copy(sql, &[], End::Done);
    pair.copy(sql, &[b""], End::Done);
    pair.copy(sql, &[b"1\t"], End::Fail);
    pair.copy(
        sql,
        &[b"", b"9\t", b"", big.as_bytes(), b"\n", b""],
        End::Done,
    );
    pair.check("docs");
    assert_eq!(pair.left("docs")[0], 1);
    // A message that does not belong there ends the connection, or is skipped.
    for (what, behind) in [
        (
            "Sync and Flush",
            [
                raw::sync(),
                raw::flush(),
                raw::frame(b'd', &row(11, &big)),
                raw::frame(b'c', b""),
            ]
            .concat(),
        ),
        ("a query", raw::query("select 1")),
    ] {
        let sent = [
            &raw::frame(b'd', &row(10, &big)[..9])[..],
            &raw::frame(b'd', &row(10, &big)[9..]),
            &behind,
        ]
        .concat();
        let [plain, packed] = [&mut pair.plain, &mut pair.packed].map(|side| {
            side.send(&raw::query(sql));
            until_asked(side);
            side.send(&sent);
            until_asked(side)
        });
        same(what, &plain, &packed);
    }
    pair.plain = pair.rig.raw_direct(&pair.databases[0]);
    pair.packed = pair.rig.raw_through(&pair.databases[1]);
    pair.check("docs");
    // A client that goes away amid a copy leaves nothing.
    let mut gone = pair.rig.raw_through(&pair.databases[1]);
    gone.send(&raw::query(sql));
    until_asked(&mut gone);
    gone.send(&raw::frame(b'd', &row(20, &big)));
    drop(gone);
    std::thread::sleep(Duration::from_millis(300));
    pair.check("docs");
}

/// Proves that a client which sends rows before it is asked for them gets what it gets without us; its
/// values stay inline, whichever table a row is for.
#[test]
fn clients_that_do_not_wait() {
    let mut pair = Pair::new(&RIG, "blind");
    pair.create("create table other(id int primary key, body text)");
    let big = named("big");
    let data = |id: u32| raw::frame(b'd', &row(id, &big));
    let done = || raw::frame(b'c', b"");
    let two = "copy docs(id, body) from stdin; copy other(id, body) from stdin";
    for pause in [0, 20] {
        let all = [
            vec![raw::query(two), data(1), done(), data(2), done()],
            vec![raw::query(two), data(3), data(4), done(), data(5), done()],
            vec![raw::query(two), done(), data(6), done()],
        ];
        for messages in all {
            for side in [&mut pair.plain, &mut pair.packed] {
                for message in &messages {
                    side.send(message);
                    std::thread::sleep(Duration::from_millis(pause));
                }
            }
            let [plain, packed] =
                [&mut pair.plain, &mut pair.packed].map(|side| side.until_ready(1));
            same(two, &plain, &packed);
            assert_eq!(sqlstate(&plain), "none");
        }
        pair.check("docs");
        pair.query("select * from other order by id");
        let stored = "select count(*) from other where body like 'toast:%'";
        let mut direct = pair.rig.raw_direct(&pair.databases[1]);
        assert_eq!(raw::first_text(&direct.query(stored)), "0");
        pair.query("truncate docs, other");
    }
}

fn extended(side: &mut Raw, sql: &str, data: &[u8]) -> Vec<raw::Message> {
    side.send(
        &[
            raw::parse("", sql, &[]),
            raw::bind("", "", &[], &[], &[]),
            raw::describe_portal(""),
            raw::execute("", 0),
            raw::sync(),
        ]
        .concat(),
    );
    let mut answer = until_asked(side);
    if answer.last().is_some_and(|message| message.tag == b'G') {
        side.send(&[data, &raw::frame(b'c', b""), &raw::sync()].concat());
        answer.extend(until_asked(side));
    }
    answer
}

/// Proves the extended protocol: unnamed and named statements, a batch with other statements in it, in
/// and outside of a transaction, errors.
#[test]
fn wire_bug_02_copies_over_the_extended_protocol() {
    let mut pair = Pair::new(&RIG, "extended");
    let big = named("big");
    let sql = "copy docs(id, body) from stdin";
    let mut expected = 0;
    for begin in ["", "begin"] {
        pair.query(begin);
        for (id, copy, more) in [(1, sql, 1), (2, sql, 1), (2, sql, 0)] {
            let id = id + 10 * begin.len() as u32;
            let data = raw::frame(b'd', &row(id, &big));
            let [plain, packed] =
                [&mut pair.plain, &mut pair.packed].map(|side| extended(side, copy, &data));
            same(copy, &plain, &packed);
            assert_eq!(sqlstate(&plain), if more == 1 { "none" } else { "23505" });
            if more == 0 {
                // The transaction has failed: nothing may be asked in it.
                let data = raw::frame(b'd', &row(3, &big));
                let [plain, packed] =
                    [&mut pair.plain, &mut pair.packed].map(|side| extended(side, copy, &data));
                same("in a failed transaction", &plain, &packed);
            } else if begin.is_empty() {
                expected += 1;
            }
        }
        pair.query("rollback");
        pair.query("delete from docs where id = 3");
    }
    pair.check("docs");
    assert_eq!(pair.left("docs")[0], expected);
    // A table that is missing, and a batch in which another statement goes before.
    for (what, batch, left) in [
        (
            "missing",
            [
                raw::parse("", "copy nowhere from stdin", &[]),
                raw::bind("", "", &[], &[], &[]),
                raw::execute("", 0),
            ]
            .concat(),
            0,
        ),
        (
            "named, behind an insert",
            [
                raw::parse("", "insert into docs(id) values (100)", &[]),
                raw::bind("", "", &[], &[], &[]),
                raw::execute("", 0),
                raw::parse("named", sql, &[]),
                raw::bind("portal", "named", &[], &[], &[]),
                raw::execute("portal", 0),
            ]
            .concat(),
            1,
        ),
        (
            "the named one again",
            [
                raw::bind("portal", "named", &[], &[], &[]),
                raw::execute("portal", 0),
            ]
            .concat(),
            1,
        ),
        (
            "behind a select that sets",
            [
                raw::parse("", "do 'begin end'", &[]),
                raw::bind("", "", &[], &[], &[]),
                raw::execute("", 0),
                raw::bind("portal", "named", &[], &[], &[]),
                raw::execute("portal", 0),
            ]
            .concat(),
            0,
        ),
        (
            "behind an error",
            [
                raw::parse("", "select 1 / 0", &[]),
                raw::bind("", "", &[], &[], &[]),
                raw::execute("", 0),
                raw::bind("portal", "named", &[], &[], &[]),
                raw::execute("portal", 0),
            ]
            .concat(),
            0,
        ),
    ] {
        pair.query("truncate docs");
        let [plain, packed] = [&mut pair.plain, &mut pair.packed].map(|side| {
            side.send(&[&batch[..], &raw::sync()].concat());
            let mut answer = until_asked(side);
            if answer.last().is_some_and(|message| message.tag == b'G') {
                let data = raw::frame(b'd', &row(200, &big));
                side.send(&[&data[..], &raw::frame(b'c', b""), &raw::sync()].concat());
                answer.extend(until_asked(side));
            }
            answer
        });
        same(what, &plain, &packed);
        println!("{what}: {}", tags(&plain));
        pair.check("docs");
        assert_eq!(pair.left("docs")[0], left, "{what}");
    }
    let names = pair
        .packed
        .query("select count(*) from pg_prepared_statements");
    assert_eq!(raw::first_text(&names), "1", "none of ours is left");
}

/// Proves that a driver's copies leave their rows, and that the connection works after each.
#[tokio::test]
async fn a_driver_copies() {
    let pair = tokio::task::spawn_blocking(|| Pair::new(&RIG, "driver"))
        .await
        .expect("a pair");
    let conninfo = format!(
        "host=127.0.0.1 port={} user=postgres dbname={}",
        RIG.port, pair.databases[1]
    );
    let (client, connection) = tokio_postgres::connect(&conninfo, NoTls)
        .await
        .expect("connects");
    tokio::spawn(connection);
    for round in 0..3 {
        let sink = client
            .copy_in::<_, bytes::Bytes>("copy docs(id, body) from stdin")
            .await
            .expect("starts");
        let mut sink = Box::pin(sink);
        for id in 0..100 {
            let line = row(round * 100 + id, &format!("{id} {round} {}", named("big")));
            sink.send(line.into()).await.expect("sends");
        }
        assert_eq!(sink.as_mut().finish().await.expect("ends"), 100);
        let sink = client
            .copy_in::<_, bytes::Bytes>("copy docs(id, body) from stdin")
            .await
            .expect("starts");
        let mut sink = Box::pin(sink);
        sink.send(row(9999, &named("big")).into())
            .await
            .expect("sends");
        drop(sink);
        let counts = client
            .query_one("select count(*), min(length(body)) from docs", &[])
            .await
            .expect("reads");
        assert_eq!(counts.get::<_, i64>(0), i64::from(round + 1) * 100);
        assert!(counts.get::<_, i32>(1) > 5000);
    }
    let left = tokio::task::spawn_blocking(move || pair.left("docs")[0])
        .await
        .expect("a count");
    assert_eq!(left, 300);
}

/// Proves S7: rows of 12 MB pass inline, rows behind them leave, and 200 MB of rows take no memory.
#[test]
fn long_rows_and_many_rows() {
    let mut pair = Pair::new(&RIG, "long");
    let big = named("big");
    let long = "y\\\\z".repeat(3 << 20);
    let data = [row(1, &big), row(2, &long), row(3, &big)].concat();
    for piece in [usize::MAX, 50_000] {
        let pieces: Vec<&[u8]> = data.chunks(piece).collect();
        pair.copy("copy docs(id, body) from stdin", &pieces, End::Done);
        pair.check("docs");
        assert_eq!(pair.left("docs")[0], 2);
        pair.query("truncate docs");
    }
    let before = resident();
    pair.packed
        .send(&raw::query("copy docs(id, body) from stdin csv"));
    until_asked(&mut pair.packed);
    let mut most = 0;
    for id in 0..2000 {
        let value = format!("{id}{}", &long[..100_000]);
        pair.packed
            .send(&raw::frame(b'd', format!("{id},{value}\n").as_bytes()));
        most = most.max(resident().saturating_sub(before));
    }
    pair.packed.send(&raw::frame(b'c', b""));
    assert_eq!(sqlstate(&pair.packed.until_ready(1)), "none");
    assert_eq!(pair.left("docs")[0], 2000);
    // The cache may take 64 MiB of it.
    assert!(most < 160 << 20, "grown by {} MiB", most >> 20);
}
