//! Portals that are read bit by bit, and cursors that SQL opened and the protocol reads.

use crate::common::raw;
use crate::pair::{Databases, Tally};

/// Proves S5 for portals with row limits, several at a time, described or not, over several Syncs.
#[test]
fn portals_bit_by_bit() {
    let databases = Databases::create("portals");
    let mut pair = databases.connect();
    let mut tally = Tally::new("portals");
    let texts = [
        "select id, body, d from docs order by id",
        "select b, j, 1 from docs order by id",
        "fetch all from c",
        "execute q",
        "update docs set note = note returning body, d",
        "show bytea_output",
        "explain (costs off) select body from docs",
        "select array_agg(body order by id) from docs group by n order by n",
    ];
    pair.quietly("prepare q as select body, b from docs order by id");
    for results in [&[][..], &[0], &[1]] {
        for described in [false, true] {
            for sql in texts {
                let what = format!("{sql} {results:?} {described}");
                pair.quietly("begin; declare c cursor for select body, d from docs order by id");
                let mut open = [
                    raw::parse("s", sql, &[]),
                    raw::bind("one", "s", &[], &[], results),
                ]
                .concat();
                if described {
                    open.extend(raw::describe_portal("one"));
                }
                pair.same(&mut tally, &what, &[open, raw::sync()].concat(), 1);
                for rows in [1, 2, 1] {
                    let fetch = [raw::execute("one", rows), raw::sync()].concat();
                    pair.same(&mut tally, &what, &fetch, 1);
                }
                let others = [
                    raw::parse("", "select body from docs where id = $1", &[]),
                    raw::bind("two", "", &[], &[Some(b"1")], &[]),
                    raw::execute("two", 0),
                    raw::execute("one", 2),
                    raw::execute("one", 0),
                    raw::close_portal("one"),
                    raw::close_statement("s"),
                    raw::sync(),
                ];
                pair.same(&mut tally, &what, &others.concat(), 1);
                pair.quietly("rollback; deallocate all");
                pair.quietly("prepare q as select body, b from docs order by id");
            }
        }
    }
    tally.finish();
}

/// Proves that the protocol reads cursors of SQL and SQL those of the protocol, also when one name
/// means first the one and then the other.
#[test]
fn cursors_by_either_way() {
    let databases = Databases::create("cursors");
    let mut pair = databases.connect();
    let mut tally = Tally::new("cursors");
    let sync = raw::sync();
    pair.query(&mut tally, "begin");
    pair.query(
        &mut tally,
        "declare c cursor for select id, body from docs order by id",
    );
    for messages in [
        raw::execute("c", 2),
        [raw::describe_portal("c"), raw::execute("c", 1)].concat(),
        [raw::execute("c", 1), raw::execute("c", 1)].concat(),
    ] {
        pair.same(
            &mut tally,
            "Execute of a SQL cursor",
            &[messages, sync.clone()].concat(),
            1,
        );
    }
    pair.query(&mut tally, "fetch 1 from c");
    pair.query(&mut tally, "close c");
    // The same name with other columns, other places of the values, and in binary.
    pair.query(
        &mut tally,
        "declare c binary cursor for select d, id, b, body from docs order by id",
    );
    pair.same(
        &mut tally,
        "Execute of its successor",
        &[raw::execute("c", 2), sync.clone()].concat(),
        1,
    );
    let replaced = [
        raw::parse("", "close c", &[]),
        raw::bind("", "", &[], &[], &[]),
        raw::execute("", 0),
        raw::parse(
            "",
            "declare c cursor for select 1, 2, body from docs order by id",
            &[],
        ),
        raw::bind("", "", &[], &[], &[]),
        raw::execute("", 0),
        raw::execute("c", 2),
        sync.clone(),
    ];
    pair.same(
        &mut tally,
        "replaced within a pipeline",
        &replaced.concat(),
        1,
    );
    pair.query(&mut tally, "commit");

    pair.query(&mut tally, "begin");
    let open = [
        raw::parse("s", "select body, id from docs order by id", &[]),
        raw::bind("p", "s", &[], &[], &[1]),
        raw::execute("p", 1),
        sync.clone(),
    ];
    pair.same(&mut tally, "a portal", &open.concat(), 1);
    pair.query(&mut tally, "fetch 2 from p");
    pair.query(&mut tally, "move 1 in p");
    pair.query(&mut tally, "close p");
    pair.query(
        &mut tally,
        "declare p cursor for select id, d from docs order by id",
    );
    pair.same(
        &mut tally,
        "its successor",
        &[raw::execute("p", 3), sync.clone()].concat(),
        1,
    );
    pair.query(
        &mut tally,
        "declare h cursor with hold for select b, body from docs order by id",
    );
    pair.query(&mut tally, "commit");
    pair.same(
        &mut tally,
        "with hold",
        &[raw::execute("h", 3), sync.clone()].concat(),
        1,
    );
    pair.query(&mut tally, "fetch all from h");
    pair.same(
        &mut tally,
        "closed by message",
        &[raw::close_portal("h"), sync.clone()].concat(),
        1,
    );
    pair.same(
        &mut tally,
        "gone",
        &[raw::execute("h", 3), sync.clone()].concat(),
        1,
    );

    // A function that opens a cursor.
    pair.query(
        &mut tally,
        "create function opens(c refcursor) returns refcursor language plpgsql as \
         $f$ begin open c for select body, d from docs order by id; return c; end $f$",
    );
    pair.query(&mut tally, "begin; select opens('of_function')");
    pair.same(
        &mut tally,
        "of a function",
        &[raw::execute("of_function", 2), sync.clone()].concat(),
        1,
    );
    pair.query(&mut tally, "fetch all from of_function; commit");
    tally.finish();
}
