//! How sessions end when the proxy does, and how many there may be.

mod common;

use std::time::{Duration, Instant};

use common::raw::{self, sqlstate, tags};
use common::{Rig, RigOptions};

/// Proves that a proxy that stops ends idle sessions with 57P01 at once, lets a transaction that is
/// open go to its end, refuses new sessions, and cuts at its deadline what is then still busy.
#[tokio::test(flavor = "multi_thread")]
async fn draining() {
    let rig = Rig::with(RigOptions {
        drain_timeout: Duration::from_secs(4),
        ..RigOptions::default()
    })
    .await;
    let mut idle = rig.raw_through("postgres");
    let mut busy = rig.raw_through("postgres");
    let mut running = rig.raw_through("postgres");
    let mut stuck = rig.raw_through("postgres");
    let mut half = rig.raw_through("postgres");
    busy.query("create table docs(id int, body toastrack.text)");
    busy.query("begin");
    running.send(&raw::query("select pg_sleep(1.0), 'done'"));
    stuck.send(&raw::query("select pg_sleep(60)"));
    // A batch without its Sync.
    half.send(&[raw::parse("", "select 1", &[]), raw::flush()].concat());
    assert_eq!(tags(&half.until(b'1', 1)), "1");
    std::thread::sleep(Duration::from_millis(200));
    let asked = Instant::now();
    rig.begin_stop();

    let end = idle.rest();
    assert_eq!(
        (tags(&end).as_str(), sqlstate(&end).as_str()),
        ("E", "57P01")
    );
    assert!(asked.elapsed() < Duration::from_secs(1));
    let big = "b".repeat(5000);
    for id in 0..3 {
        let answer = busy.query(&format!(
            "insert into docs values ({id}, '{big}') returning body"
        ));
        assert_eq!(raw::first_text(&answer), big);
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(tags(&busy.query("commit")), "CZ");
    assert_eq!(sqlstate(&busy.rest()), "57P01");
    assert_eq!(tags(&running.until_ready(1)), "TDCZ");
    assert_eq!(sqlstate(&running.rest()), "57P01");
    half.send(
        &[
            raw::bind("", "", &[], &[], &[]),
            raw::execute("", 0),
            raw::sync(),
        ]
        .concat(),
    );
    assert_eq!(tags(&half.until_ready(1)), "2DCZ");
    assert_eq!(sqlstate(&half.rest()), "57P01");

    // Nothing but the end for the one that stays busy.
    assert_eq!(tags(&stuck.rest()), "");
    let took = asked.elapsed();
    assert!(
        took >= Duration::from_secs(3) && took < Duration::from_secs(6),
        "{took:?}"
    );
    assert!(std::net::TcpStream::connect(("127.0.0.1", rig.port)).is_err());
    let mut direct = rig.raw_direct("postgres");
    let count = direct.query("select count(*) from docs where length(body) = 5000");
    assert_eq!(raw::first_text(&count), "3");
    // The backend whose client is gone notices when it next writes, as with any client; others ended.
    let left = "select count(*) from pg_stat_activity where backend_type = 'client backend' \
        and pid <> pg_backend_pid() and application_name <> 'toastrack control' and query not like '%sleep(60)%' \
        and query not like '%resolve%'";
    assert_eq!(raw::first_text(&direct.query(left)), "0");
    rig.stop().await;
}

/// Proves that sessions beyond the limit get 53300, and that those that end make room.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_sessions() {
    let rig = Rig::with(RigOptions {
        max_sessions: 2,
        ..RigOptions::default()
    })
    .await;
    let one = rig.raw_through("postgres");
    let _two = rig.raw_through("postgres");
    let mut three = raw::Raw::open(rig.port);
    three.send(&raw::startup(&[
        ("user", "postgres"),
        ("database", "postgres"),
    ]));
    assert_eq!(sqlstate(&three.rest()), "53300");
    drop(one);
    std::thread::sleep(Duration::from_millis(200));
    let mut four = rig.raw_through("postgres");
    assert_eq!(tags(&four.query("select 1")), "TDCZ");
    rig.stop().await;
}
