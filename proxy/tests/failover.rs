//! Several servers: which of them a session takes, and what happens when one is gone.

mod common;

use std::time::{Duration, Instant};

use common::Rig;
use common::raw::{Raw, first_text, sqlstate, tags};
use toastrack_proxy::{ServerAddress, Servers, TargetSession};
use toastrack_testkit::Cluster;

const IS_STANDBY: &str = "select pg_is_in_recovery()";

/// What a session through a new proxy says to a query, or its error.
async fn ask(rig: &Rig, addresses: &[ServerAddress], target: TargetSession) -> String {
    let addresses = addresses.to_vec();
    let (port, _) = rig
        .another(|options| options.server = Servers { addresses, target })
        .await
        .expect("starts");
    asked(port, IS_STANDBY)
}

fn asked(port: u16, sql: &str) -> String {
    let mut raw = Raw::open(port);
    raw.send(&common::raw::startup(&[
        ("user", "postgres"),
        ("database", "postgres"),
    ]));
    let greeting = raw.until_ready(1);
    if !tags(&greeting).ends_with('Z') {
        let message = common::raw::error_field(&greeting, b'M').unwrap_or_default();
        return format!("{}: {message}", sqlstate(&greeting));
    }
    first_text(&raw.query(sql))
}

fn standby_of(primary: &Cluster) -> Cluster {
    let builder = Cluster::builder().standby_of(primary);
    builder.start().expect("a standby")
}

/// Proves for each target_session_attrs which of a primary and a standby is taken in either order,
/// that dead addresses are passed over, and that the error names each server when none will do.
#[tokio::test(flavor = "multi_thread")]
async fn targets() {
    use TargetSession::{Any, PreferStandby, Primary, ReadOnly, ReadWrite, Standby};
    let rig = Rig::start().await;
    let standby = standby_of(&rig.cluster);
    let primary = ServerAddress::Unix(rig.cluster.socket_path());
    let follower = ServerAddress::Tcp("127.0.0.1".to_owned(), standby.port());
    let dead = ServerAddress::Unix(rig.directory.path().join("nobody"));
    for (target, primary_first, standby_first) in [
        (Any, "f", "t"),
        (ReadWrite, "f", "f"),
        (ReadOnly, "t", "t"),
        (Primary, "f", "f"),
        (Standby, "t", "t"),
        (PreferStandby, "t", "t"),
    ] {
        let order = [dead.clone(), primary.clone(), follower.clone()];
        assert_eq!(ask(&rig, &order, target).await, primary_first, "{target:?}");
        let order = [follower.clone(), dead.clone(), primary.clone()];
        assert_eq!(ask(&rig, &order, target).await, standby_first, "{target:?}");
    }
    let alone = [dead.clone(), primary.clone()];
    assert_eq!(ask(&rig, &alone, PreferStandby).await, "f");
    let said = ask(&rig, &alone, Standby).await;
    assert!(said.starts_with("08006: could not connect"), "{said}");
    assert!(said.contains(&format!("{dead}: No such file")), "{said}");
    let reason = format!("{primary}: server is not in hot standby mode");
    assert!(said.contains(&reason), "{said}");
    let said = ask(&rig, std::slice::from_ref(&follower), ReadWrite).await;
    assert!(said.contains("session is read-only"), "{said}");

    let read_only = "alter system set default_transaction_read_only = on";
    rig.cluster.execute("postgres", read_only).expect("sets");
    let reload = rig.cluster.execute("postgres", "select pg_reload_conf()");
    reload.expect("reloads");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let said = ask(&rig, std::slice::from_ref(&primary), ReadWrite).await;
    assert!(said.contains("session is read-only"), "{said}");
    for target in [Primary, ReadOnly] {
        let said = ask(&rig, std::slice::from_ref(&primary), target).await;
        assert_eq!(said, "f", "{target:?}");
    }
    rig.stop().await;
}

/// Proves that values written through the primary are read through its standby, each session with the
/// catalog of its own server; that a cancel request finds the server of its session; and that after
/// the primary is gone and the standby promoted, sessions go there without a restart of the proxy.
#[tokio::test(flavor = "multi_thread")]
async fn failover() {
    let mut rig = Rig::start().await;
    let standby = standby_of(&rig.cluster);
    let addresses = vec![
        ServerAddress::Unix(rig.cluster.socket_path()),
        ServerAddress::Unix(standby.socket_path()),
    ];
    let with = |target| Servers {
        addresses: addresses.clone(),
        target,
    };
    let (writing, _) = rig
        .another(|options| options.server = with(TargetSession::ReadWrite))
        .await
        .expect("starts");
    let (reading, _) = rig
        .another(|options| options.server = with(TargetSession::Standby))
        .await
        .expect("starts");
    let body = "f".repeat(50_000);
    let mut writer = Raw::connect(writing, "postgres");
    let mut early = Raw::connect(reading, "postgres");
    assert_eq!(first_text(&early.query(IS_STANDBY)), "t");
    writer.query("create table docs(id int, body toastrack.text)");
    let said = writer.query(&format!("insert into docs values (1, '{body}')"));
    assert_eq!(tags(&said), "CZ");
    caught_up(&rig.cluster, &standby);
    let mut late = Raw::connect(reading, "postgres");
    for reader in [&mut early, &mut late] {
        let rows = reader.query("select body from docs");
        assert_eq!(first_text(&rows), body);
    }
    assert_eq!(sqlstate(&early.query("delete from docs")), "25006");

    let mut cancel = Vec::new();
    let key = early.cancel_key();
    let pid = early.backend_pid();
    toastrack_wire::startup::encode_cancel_request(&mut cancel, pid, &key[4..]).expect("fits");
    early.send(&common::raw::query("select pg_sleep(60)"));
    std::thread::sleep(Duration::from_millis(200));
    let mut other = Raw::open(reading);
    other.send(&cancel);
    assert!(other.rest().is_empty());
    assert_eq!(sqlstate(&early.until_ready(1)), "57014");

    rig.cluster.stop_immediate().expect("stops");
    // With the connection, its session.
    while writer.next().is_some() {}
    let said = asked(writing, IS_STANDBY);
    assert!(said.starts_with("08006: could not connect"), "{said}");
    standby
        .execute("postgres", "select pg_promote()")
        .expect("is promoted");
    let started = Instant::now();
    while asked(writing, IS_STANDBY) != "f" {
        assert!(started.elapsed() < Duration::from_secs(10), "no failover");
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut writer = Raw::connect(writing, "postgres");
    let said = writer.query(&format!(
        "insert into docs values (2, '{body}') returning body"
    ));
    assert_eq!(first_text(&said), body);
    let count = writer.query("select count(*) from docs where length(body) = 50000");
    assert_eq!(first_text(&count), "2");
    rig.stop().await;
}

/// Waits until the standby has replayed what the primary has written.
fn caught_up(primary: &Cluster, standby: &Cluster) {
    let mut on_primary = Raw::connect(primary.port(), "postgres");
    let mut on_standby = Raw::connect(standby.port(), "postgres");
    let written = first_text(&on_primary.query("select pg_current_wal_lsn()"));
    let replayed = format!("select pg_last_wal_replay_lsn() >= '{written}'");
    let started = Instant::now();
    while first_text(&on_standby.query(&replayed)) != "t" {
        assert!(started.elapsed() < Duration::from_secs(20), "lags");
        std::thread::sleep(Duration::from_millis(20));
    }
}
