//! What a copy goes to: a reference must never come to a column of a plain type.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::raw::{self, sqlstate};
use crate::common::values::named;
use crate::{End, Pair, RIG, copy};

fn rows() -> Vec<u8> {
    format!("1\t{}\n", named("big")).into_bytes()
}

/// References that stand in any column of a plain string type of the packed database.
fn stray_references(pair: &Pair, tables: &[&str]) -> u64 {
    let mut direct = pair.rig.raw_direct(&pair.databases[1]);
    tables
        .iter()
        .map(|table| {
            let sql = format!("select count(*) from {table} where body::text like 'toast:%'");
            let answer = direct.query(&sql);
            assert_eq!(sqlstate(&answer), "none", "{answer:?}");
            raw::first_text(&answer).parse::<u64>().expect("a number")
        })
        .sum()
}

/// Proves that each kind of target is told right: by search path, schema, temporary tables, partitions;
/// column lists, dropped and generated columns.
#[test]
fn every_kind_of_target() {
    let mut pair = Pair::new(&RIG, "targets");
    for sql in [
        "create schema plain",
        "create table plain.docs(id int, body text)",
        "create schema away",
        "create table away.docs(id int, body T.text, gone int, g int generated always as (id * 2) stored, d T.jsonb)",
        "alter table away.docs drop column gone",
        "create table parts(id int, body T.text) partition by range (id)",
        "create table parts_1 partition of parts for values from (0) to (10)",
        "create view seen as select id, body from docs",
        "create function into_docs() returns trigger language plpgsql as \
         $$ begin insert into docs(id, body) values (new.id, new.body); return new; end $$",
        "create trigger into_docs instead of insert on seen for each row execute function into_docs()",
        "create table \"Odd name'\"(id int, \"Body\" T.text)",
        "create domain short_text as T.text",
        "create table domains(id int, body short_text)",
        "create table narrow(id int, body T.varchar(50))",
    ] {
        pair.create(sql);
    }
    let bytes = rows();
    let expect = |pair: &mut Pair, set: &str, sql: &str, count: &str, left: &str| {
        pair.query("rollback");
        pair.query("begin");
        pair.query(set);
        pair.query("commit");
        let answer = pair.copy(sql, &[&bytes], End::Done);
        let state = sqlstate(&answer);
        let direct = &mut pair.rig.raw_direct(&pair.databases[1]);
        let found = raw::first_text(&direct.query(count));
        assert_eq!(found, left, "{set}; {sql}: {state}");
    };
    let of = |table: &str| {
        format!("select count(*) from {table} where toastrack.raw(body)::text like 'toast:%'")
    };
    let plain = "select count(*) from plain.docs where body like 'toast:%'";
    expect(
        &mut pair,
        "",
        "copy docs(id, body) from stdin",
        &of("docs"),
        "1",
    );
    expect(
        &mut pair,
        "set search_path = plain, public",
        "copy docs(id, body) from stdin",
        plain,
        "0",
    );
    expect(&mut pair, "", "copy docs from stdin", plain, "0");
    expect(
        &mut pair,
        "",
        "copy public.docs(body, id) from stdin",
        &of("docs"),
        "1",
    );
    expect(
        &mut pair,
        "set search_path = away",
        "copy docs(body, id) from stdin",
        &of("away.docs"),
        "0",
    );
    expect(
        &mut pair,
        "",
        "copy docs(id, body) from stdin",
        &of("away.docs"),
        "1",
    );
    expect(
        &mut pair,
        "",
        "copy docs(id, g) from stdin",
        &of("away.docs"),
        "1",
    );
    expect(
        &mut pair,
        "set search_path = public",
        "copy plain.docs from stdin",
        plain,
        "0",
    );
    expect(&mut pair, "", "copy parts from stdin", &of("parts"), "1");
    expect(&mut pair, "", "copy parts_1 from stdin", &of("parts"), "2");
    expect(
        &mut pair,
        "truncate docs",
        "copy seen from stdin",
        &of("docs"),
        "0",
    );
    expect(
        &mut pair,
        "",
        "copy domains from stdin",
        "select count(*) from domains where body::text like 'toast:%'",
        "0",
    );
    let odd =
        "select count(*) from \"Odd name'\" where toastrack.raw(\"Body\")::text like 'toast:%'";
    expect(&mut pair, "", "copy \"Odd name'\" from stdin", odd, "1");
    expect(&mut pair, "", "copy narrow from stdin", &of("narrow"), "0");
    let temporary = "create temp table docs(id int primary key, body text)";
    expect(
        &mut pair,
        temporary,
        "copy docs from stdin",
        &of("public.docs"),
        "0",
    );
    let emptied = "truncate public.docs";
    expect(
        &mut pair,
        emptied,
        "copy public.docs(id, body) from stdin",
        &of("public.docs"),
        "1",
    );
    pair.query("select * from docs");
    pair.query("select * from plain.docs");
    let text = raw::first_text(
        &pair
            .packed
            .query("select count(*) from docs where body like 'toast:%'"),
    );
    assert_eq!(text, "0");
    // Whole rows, and of a generated column's table.
    pair.query("drop table docs; truncate away.docs");
    let whole = format!("1\t{}\t{{\"k\":\"{}\"}}\n", named("big"), named("big"));
    pair.copy("copy away.docs from stdin", &[whole.as_bytes()], End::Done);
    pair.query("select * from away.docs");
    assert_eq!(
        stray_references(&pair, &["plain.docs", "domains", "narrow"]),
        0
    );
}

/// Proves that what the session's own transaction has changed, unseen by others, is seen here: types,
/// names, a new table of the name, also within one text and by triggers of an earlier copy.
#[test]
fn changes_of_ones_own() {
    let mut pair = Pair::new(&RIG, "own");
    for sql in [
        "create table kv(id int primary key, body T.text)",
        "create table spare(id int, body text)",
        "create table first(id int, body T.text)",
        "create function turn() returns trigger language plpgsql as \
         $$ begin alter table docs alter body type text; return null; end $$",
        "create trigger turn after insert on first for each statement execute function turn()",
        "create table second(id int, body T.text)",
        "create function swap() returns trigger language plpgsql as \
         $$ begin alter table docs rename to docs_old; alter table spare rename to docs; return null; end $$",
        "create trigger swap after insert on second for each statement execute function swap()",
    ] {
        pair.create(sql);
    }
    let bytes = rows();
    for before in [
        // In disguise, so that the proxy is not told by the first word.
        "do $$ begin alter table docs alter body type text; end $$",
        "do $$ begin alter table docs rename to docs_old; alter table spare rename to docs; end $$",
        "do $$ begin create temp table docs(id int, body text); end $$",
        "insert into docs(id, body) values (5, 'x'); do $$ begin create temp table docs(id int, body text); end $$",
        "select set_config('search_path', 'pg_temp', true); create temp table docs(id int, body text)",
        "truncate docs",
    ] {
        for (start, sql) in [
            ("begin", "copy docs(id, body) from stdin"),
            ("", "begin; copy docs(id, body) from stdin"),
        ] {
            pair.query("rollback");
            if start.is_empty() {
                // All in one text: what stands before may set anything.
                let sql = format!("begin; {before}; copy docs(id, body) from stdin");
                pair.copy(&sql, &[&bytes], End::Done);
            } else {
                pair.query(start);
                pair.query(before);
                pair.copy(sql, &[&bytes], End::Done);
            }
            pair.query("select id, body from docs");
            let raw_text =
                "select body::text, pg_typeof(body) = 'text'::regtype from docs where id = 1";
            let answer = pair.packed.query(raw_text);
            if raw::rows(&answer)[0][1].as_deref() == Some(b"t") {
                let text = raw::first_text(&answer);
                assert!(text == named("big"), "{before}");
            }
        }
        pair.query("rollback");
        pair.query("truncate docs");
    }
    for sql in [
        "copy first from stdin; copy docs(id, body) from stdin",
        "copy second from stdin; copy docs(id, body) from stdin",
        "begin; insert into docs(id) values (7); copy second from stdin; copy docs(id, body) from stdin",
    ] {
        pair.query("rollback; begin");
        pair.copy(sql, &[&bytes], End::Done);
        let text = "select body::text from docs where id = 1";
        assert!(
            raw::first_text(&pair.packed.query(text)) == named("big"),
            "{sql}"
        );
        pair.query("select id, body from docs");
        pair.query("rollback");
    }
    assert_eq!(pair.left("docs")[0], 0);
}

/// Proves that a change which another session commits between the question and the copy's own lock is
/// seen: the copy has been sent and waits for that session.
#[test]
fn changes_while_the_copy_waits() {
    let mut pair = Pair::new(&RIG, "waits");
    pair.create("create table spare(id int, body text)");
    pair.create("create table kept(id int, body T.text)");
    pair.create("create schema earlier");
    pair.query("set search_path = earlier, public");
    let bytes = rows();
    for (change, back, left) in [
        ("select 1", "select 1", "1"),
        (
            "alter table docs alter body type text",
            "alter table docs alter body type toastrack.text",
            "0",
        ),
        (
            "alter table docs rename to docs_old; alter table spare rename to docs",
            "alter table docs rename to spare; alter table docs_old rename to docs",
            "0",
        ),
        (
            "lock table docs; create table earlier.docs(id int, body text)",
            "drop table earlier.docs",
            "0",
        ),
        (
            "alter table docs alter body type text; alter table docs alter body type toastrack.text",
            "select 1",
            "1",
        ),
    ] {
        for begin in ["begin; insert into kept values (1, 'x')", "select 1"] {
            // The proxy knows the column as an offloaded one.
            let deadline = Instant::now() + Duration::from_secs(20);
            loop {
                copy(
                    &mut pair.packed,
                    "copy docs(id, body) from stdin",
                    &[&bytes],
                    End::Done,
                );
                let left = pair.left("docs")[0];
                pair.packed.query("truncate docs");
                if left == 1 {
                    break;
                }
                assert!(Instant::now() < deadline, "{change}");
                std::thread::sleep(Duration::from_millis(300));
            }
            pair.packed.query(begin);
            let mut other = pair.rig.raw_direct(&pair.databases[1]);
            other.query("begin; lock table docs");
            assert_eq!(sqlstate(&other.query(change)), "none", "{change}");
            pair.packed
                .send(&raw::query("copy docs(id, body) from stdin"));
            std::thread::sleep(Duration::from_millis(300));
            assert_eq!(sqlstate(&other.query("commit")), "none");
            assert_eq!(crate::until_asked(&mut pair.packed)[0].tag, b'G');
            let data = [raw::frame(b'd', &bytes), raw::frame(b'c', b"")].concat();
            pair.packed.send(&data);
            assert_eq!(sqlstate(&pair.packed.until_ready(1)), "none");
            pair.packed.query("commit");
            let mut direct = pair.rig.raw_direct(&pair.databases[1]);
            direct.query("set search_path = earlier, public");
            let is_text = "select atttypid = 'text'::regtype from pg_attribute where attrelid = 'docs'::regclass and attname = 'body'";
            let is_text = raw::first_text(&direct.query(is_text)) == "t";
            let found = if is_text {
                "select count(*) from docs where body like 'toast:%'"
            } else {
                "select count(*) from docs where toastrack.raw(body)::text like 'toast:%'"
            };
            assert_eq!(raw::first_text(&direct.query(found)), left, "{change}");
            assert_eq!(sqlstate(&direct.query(back)), "none", "{back}");
            direct.query("truncate docs, spare");
        }
    }
}

/// Proves that no moment is free for a change by others: while sessions copy, another one turns the
/// column's type to and fro, and swaps the table with one of plain columns. No plain column ever has a
/// reference.
#[test]
fn changes_by_others_at_any_moment() {
    let mut pair = Pair::new(&RIG, "others");
    pair.create("create table turned(id int, body T.text)");
    pair.create("create table swapped(id int, body T.text)");
    pair.create("create table swapped_plain(id int, body text)");
    pair.create("create table kept(id int, body text)");
    let stop = AtomicBool::new(false);
    let (database, copies, left) = (
        &pair.databases[1],
        AtomicBool::new(false),
        AtomicBool::new(false),
    );
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut other = RIG.raw_direct(database);
            while !stop.load(Ordering::Relaxed) {
                for sql in [
                    "alter table turned alter body type text",
                    "insert into kept select * from turned where body like 'toast:%'; truncate turned",
                    "alter table turned alter body type toastrack.text",
                    "begin; alter table swapped rename to x; alter table swapped_plain rename to swapped; \
                     alter table x rename to swapped_plain; commit",
                    "begin; insert into kept select id, body::text from swapped where body::text like 'toast:%'; \
                     insert into kept select id, body::text from swapped_plain where body::text like 'toast:%'; \
                     truncate swapped, swapped_plain; commit",
                ] {
                    let answer = other.query(sql);
                    assert_eq!(sqlstate(&answer), "none", "{sql}: {answer:?}");
                    let offloaded = sql.ends_with("toastrack.text");
                    std::thread::sleep(Duration::from_millis(if offloaded { 20 } else { 1 }));
                }
            }
        });
        let writers: Vec<_> = ["turned", "swapped"]
            .into_iter()
            .map(|table| {
                let (left, copies) = (&left, &copies);
                scope.spawn(move || {
                    let mut session = RIG.raw_through(database);
                    let mut watcher = RIG.raw_direct(database);
                    let bytes = rows();
                    let until = Instant::now() + Duration::from_secs(9);
                    while Instant::now() < until {
                        let sql = format!("copy {table} from stdin");
                        let answer = copy(&mut session, &sql, &[&bytes], End::Done);
                        let state = sqlstate(&answer);
                        assert!(state == "none" || state == "40P01", "{answer:?}");
                        copies.store(true, Ordering::Relaxed);
                        let seen = watcher.query(
                            "select toastrack.raw(body)::text like 'toast:%' from turned limit 1",
                        );
                        if sqlstate(&seen) == "none"
                            && raw::rows(&seen).len() == 1
                            && raw::first_text(&seen) == "t"
                        {
                            left.store(true, Ordering::Relaxed);
                        }
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().expect("a writer");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(copies.load(Ordering::Relaxed) && left.load(Ordering::Relaxed));
    assert_eq!(stray_references(&pair, &["kept"]), 0);
}

/// Proves what becomes of a question that the session's role may not ask: outside of a transaction the
/// copy works and stays inline; in one, the error is the client's (docs/semantics.md).
#[test]
fn questions_that_fail() {
    let mut pair = Pair::new(&RIG, "refused");
    let role = "do $$ begin create role unread; exception when duplicate_object then end $$";
    pair.create(role);
    pair.create("grant all on docs to unread");
    pair.packed.query("revoke select on pg_class from public");
    pair.create("set role unread");
    let sql = "copy docs(id, body) from stdin";
    let bytes = rows();
    let answer = pair.copy(sql, &[&bytes], End::Done);
    assert_eq!(sqlstate(&answer), "none");
    pair.packed.query("begin");
    let answer = copy(&mut pair.packed, sql, &[&bytes], End::Done);
    assert_eq!(raw::tags(&answer), "EZ");
    assert_eq!(sqlstate(&answer), "42501");
    assert_eq!(answer[1].body, b"E");
    let answer = copy(&mut pair.packed, "select 1", &[], End::Done);
    assert_eq!(sqlstate(&answer), "25P02");
    pair.packed.query("rollback");
    pair.packed.send(
        &[
            raw::parse("", sql, &[]),
            raw::bind("", "", &[], &[], &[]),
            raw::execute("", 0),
            raw::sync(),
        ]
        .concat(),
    );
    let answer = pair.packed.until_ready(1);
    assert_eq!(raw::tags(&answer), "12EZ");
    assert_eq!(sqlstate(&answer), "42501");
    pair.packed
        .query("reset role; grant select on pg_class to public");
    pair.plain.query("reset role");
    pair.check("docs");
    assert_eq!(pair.left("docs")[0], 0);
}
