//! What the proxy holds while one side is slow or talkative.

use std::time::Duration;

use crate::common::raw::{self, sqlstate};
use crate::common::resident;
use crate::{RIG, big, database};

const MIB: usize = 1 << 20;

/// Clients that stop reading during results of 1 GB, inline and offloaded, by SELECT and by COPY: the
/// proxy's memory stays, and others go on.
#[test]
fn wire_bug_19_clients_that_stop_reading() {
    let name = database("slow");
    let mut other = RIG.raw_through(&name);
    let mib = "m".repeat(MIB);
    other.query(&format!("insert into docs(id, body) values (1, '{mib}')"));
    let before = resident();
    let mut slow = Vec::new();
    for sql in [
        "select repeat('x', 1000000) from generate_series(1, 1000)",
        "select body from docs, generate_series(1, 1000)",
        "select repeat('x', 1000) from generate_series(1, 1000000)",
        "copy (select body from docs, generate_series(1, 1000)) to stdout",
    ] {
        let mut session = RIG.raw_through(&name);
        session.send(&raw::query(sql));
        slow.push(session);
    }
    for _ in 0..40 {
        std::thread::sleep(Duration::from_millis(25));
        assert_eq!(raw::first_text(&other.query("select 'fine'")), "fine");
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 * MIB, "grown by {} MiB", grown / MIB);
    // Reading on gives what was asked for.
    let mut session = slow.swap_remove(1);
    let page = session.until(b'D', 20);
    assert!(
        raw::rows(&page)
            .iter()
            .all(|row| row[0].as_deref() == Some(mib.as_bytes()))
    );
}

/// Clients that send a long message slowly, and many texts: nothing is kept of either.
#[test]
fn wire_bug_19_many_distinct_statements() {
    let name = database("distinct");
    let mut session = RIG.raw_through(&name);
    let mut run = |from: usize, count: usize| {
        for batch in 0..count / 100 {
            let mut messages = Vec::new();
            for at in 0..100 {
                let number = from + batch * 100 + at;
                // Mentions the table, so that each is analysed.
                messages.extend(raw::parse(
                    "",
                    &format!("select {number} from docs where id = {number}"),
                    &[],
                ));
                messages.extend(raw::parse(
                    &format!("n{number}"),
                    &format!("update docs set d = $1 where id = {number}"),
                    &[],
                ));
                messages.extend(raw::close_statement(&format!("n{number}")));
            }
            messages.extend(raw::sync());
            session.send(&messages);
            assert_eq!(sqlstate(&session.until_ready(1)), "none");
        }
    };
    // Fills what is bounded.
    run(0, 6000);
    // Other tests of this process take memory meanwhile; what is kept of each statement adds up every
    // time, about 1 kB a statement to 40 MiB.
    let mut grown = Vec::new();
    for round in 0..3 {
        let before = resident();
        run(6000 + round * 20_000, 20_000);
        grown.push(resident().saturating_sub(before) / 1024);
        if grown[round] < 16 * 1024 {
            return;
        }
    }
    panic!("grown each time, by {grown:?} KiB");
}

/// C20: a pipeline of ten arrays of a thousand large texts each, into offloaded rows and out again.
#[test]
fn case_c20_a_pipeline_of_large_arrays() {
    let name = database("arrays");
    let mut session = RIG.raw_through(&name);
    let array = format!("{{{}}}", vec![big(); 1000].join(",").replace(", ", ""));
    let mut messages = raw::parse(
        "s",
        "insert into docs(id, body) select $1 * 1000 + n, v from unnest($2::text[]) with ordinality u(v, n)",
        &[23],
    );
    for round in 0..10 {
        let round = round.to_string();
        messages.extend(raw::bind(
            "",
            "s",
            &[],
            &[Some(round.as_bytes()), Some(array.as_bytes())],
            &[],
        ));
        messages.extend(raw::execute("", 0));
    }
    messages.extend(raw::sync());
    let mut sender = session.stream.try_clone().expect("a handle");
    let sending = std::thread::spawn(move || {
        std::io::Write::write_all(&mut sender, &messages).expect("sends")
    });
    let answer = session.until_ready(1);
    sending.join().expect("sent");
    assert_eq!(sqlstate(&answer), "none");
    let count = session.query("select count(*) from docs");
    assert_eq!(raw::first_text(&count), "10000");
}
