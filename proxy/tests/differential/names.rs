//! Names of prepared statements, by message and by SQL: re-used, replaced, closed, forgotten.

use crate::common::raw;
use crate::common::values::named;
use crate::pair::{Databases, Pair, Tally};

const INSERT: &str = "insert into docs(id, body) values ($1, $2) returning body";
const INTO_PLAIN: &str = "insert into other.plain(id, body) values ($1, $2) returning body";
const CHECK: &str =
    "select id, body from docs where id > 50 union all select id, body from other.plain order by 1";

fn run(name: &str, id: u32, value: &str) -> Vec<u8> {
    let (id, value) = (id.to_string(), named(value));
    [
        raw::bind(
            "",
            name,
            &[],
            &[Some(id.as_bytes()), Some(value.as_bytes())],
            &[],
        ),
        raw::execute("", 0),
    ]
    .concat()
}

fn script(pair: &mut Pair, tally: &mut Tally, what: &str, batches: &[Vec<u8>]) {
    for batch in batches {
        pair.same(tally, what, &[&batch[..], &raw::sync()].concat(), 1);
    }
    pair.query(tally, CHECK);
    // The raw rows: nothing but plain text may stand in a plain table (S1).
    let answer = pair
        .packed
        .query("select count(*) from other.plain where body like 'toast:%'");
    assert_eq!(raw::first_text(&answer), "0", "{what}");
    pair.quietly(
        "rollback; deallocate all; delete from docs where id > 50; delete from other.plain",
    );
}

/// Proves S1 and S5 while names change what they mean.
#[test]
fn names_change_their_meaning() {
    let databases = Databases::create("names");
    let mut pair = databases.connect();
    let mut tally = Tally::new("names");
    let parse = |name: &str, sql: &str| raw::parse(name, sql, &[]);
    let sql = |text: &str| {
        [
            parse("", text),
            raw::bind("", "", &[], &[], &[]),
            raw::execute("", 0),
        ]
        .concat()
    };
    let cases: Vec<(&str, Vec<Vec<u8>>)> = vec![
        (
            "re-used",
            vec![
                [parse("s", INSERT), run("s", 60, "big")].concat(),
                run("s", 61, "uni"),
                [run("s", 62, "small"), run("s", 63, "big")].concat(),
            ],
        ),
        (
            "parsed twice",
            vec![
                parse("s", INSERT),
                parse("s", INTO_PLAIN),
                run("s", 60, "big"),
            ],
        ),
        (
            "closed and parsed again",
            vec![
                parse("s", INSERT),
                [
                    raw::close_statement("s"),
                    parse("s", INTO_PLAIN),
                    run("s", 60, "big"),
                ]
                .concat(),
                run("s", 61, "uni"),
            ],
        ),
        (
            "closed",
            vec![
                parse("s", INSERT),
                raw::close_statement("s"),
                run("s", 60, "big"),
            ],
        ),
        (
            "the unnamed one replaced",
            vec![
                [
                    parse("", INSERT),
                    run("", 60, "big"),
                    parse("", INTO_PLAIN),
                    run("", 61, "big"),
                ]
                .concat(),
                run("", 62, "big"),
            ],
        ),
        (
            "the unnamed one replaced between Bind and Execute",
            vec![
                [
                    parse("", INSERT),
                    raw::bind(
                        "p",
                        "",
                        &[],
                        &[Some(b"60"), Some(named("big").as_bytes())],
                        &[],
                    ),
                    parse("", INTO_PLAIN),
                    raw::execute("p", 0),
                    run("", 61, "big"),
                ]
                .concat(),
            ],
        ),
        (
            "deallocated",
            vec![
                parse("s", INSERT),
                sql("deallocate s"),
                [parse("s", INTO_PLAIN), run("s", 60, "big")].concat(),
            ],
        ),
        (
            "deallocated, and prepared by SQL",
            vec![
                parse("s", INSERT),
                sql("deallocate all"),
                sql(
                    "prepare s(int, text) as insert into other.plain(id, body) values ($1, $2) returning body",
                ),
                run("s", 60, "big"),
                [raw::describe_statement("s"), run("s", 61, "big")].concat(),
            ],
        ),
        (
            "prepared by SQL into an offloaded column",
            vec![
                sql("prepare s as insert into docs(id, body) values ($1, $2) returning body"),
                run("s", 60, "big"),
                [raw::describe_statement("s"), run("s", 61, "big")].concat(),
            ],
        ),
        (
            "discarded",
            vec![
                parse("s", INSERT),
                run("s", 60, "big"),
                sql("discard all"),
                run("s", 61, "big"),
                [parse("s", INTO_PLAIN), run("s", 62, "big")].concat(),
            ],
        ),
        (
            "executed by SQL",
            vec![
                parse("s", INSERT),
                sql("execute s(60, 'x')"),
                run("s", 61, "big"),
            ],
        ),
        (
            "several names at once",
            vec![
                [
                    parse("a", INSERT),
                    parse("b", INTO_PLAIN),
                    parse("c", INSERT),
                ]
                .concat(),
                [
                    run("a", 60, "big"),
                    run("b", 61, "uni"),
                    run("c", 62, "uni"),
                    run("b", 63, "big"),
                ]
                .concat(),
            ],
        ),
        (
            "long names",
            vec![
                [
                    parse(&"n".repeat(300), INSERT),
                    run(&"n".repeat(300), 60, "big"),
                ]
                .concat(),
                [
                    parse(&"n".repeat(299), INTO_PLAIN),
                    run(&"n".repeat(299), 61, "big"),
                ]
                .concat(),
            ],
        ),
        (
            "deallocated within a string",
            vec![
                parse("s", INSERT),
                sql("do $$ begin execute 'deallocate s'; end $$"),
                [parse("s", INTO_PLAIN), run("s", 60, "big")].concat(),
            ],
        ),
        (
            "an error drops a Parse",
            vec![
                parse("s", INSERT),
                [
                    sql("select 1/0"),
                    raw::close_statement("s"),
                    parse("s", INTO_PLAIN),
                ]
                .concat(),
                run("s", 60, "big"),
            ],
        ),
    ];
    for (what, batches) in &cases {
        script(&mut pair, &mut tally, what, batches);
        // The same without waiting for the Syncs between.
        let bytes: Vec<u8> = batches
            .iter()
            .flat_map(|batch| [&batch[..], &raw::sync()].concat())
            .collect();
        pair.same(&mut tally, what, &bytes, batches.len());
        script(&mut pair, &mut tally, what, &[]);
    }
    tally.finish();
}

/// Proves that a Parse or a Describe which the server skips after an error misleads nobody behind the
/// Sync, although all of it was sent at once.
#[test]
fn skipped_messages_mislead_nobody() {
    let databases = Databases::create("skipped");
    let mut pair = databases.connect();
    let mut tally = Tally::new("skipped");
    let fails = [
        raw::parse("", "select 1/0", &[]),
        raw::bind("", "", &[], &[], &[]),
        raw::execute("", 0),
    ]
    .concat();
    let plain_first = [raw::parse("s", INTO_PLAIN, &[]), raw::sync()].concat();
    pair.same(&mut tally, "prepared", &plain_first, 1);
    let batch = [
        fails.clone(),
        raw::close_statement("s"),
        raw::parse("s", INSERT, &[]),
        raw::sync(),
        run("s", 60, "big"),
        raw::sync(),
    ];
    pair.same(&mut tally, "a skipped Parse", &batch.concat(), 2);
    script(&mut pair, &mut tally, "a skipped Parse", &[]);

    let batch = [
        raw::parse("d", "select body, d from docs order by id", &[]),
        raw::sync(),
        fails,
        raw::describe_statement("d"),
        raw::sync(),
        raw::bind("", "d", &[], &[], &[]),
        raw::execute("", 0),
        raw::sync(),
    ];
    pair.same(&mut tally, "a skipped Describe", &batch.concat(), 3);
    tally.finish();
}
