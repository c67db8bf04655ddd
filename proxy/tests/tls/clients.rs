//! Clients that ask for TLS, with libpq's modes and with a driver.

use std::time::Duration;

use toastrack_proxy::ListenTlsMode;

use crate::authority::{Authority, client_config, psql_fails, psql_ok, tls_client, write_key};
use crate::common::{self, Rig};

const CONNINFO: &str = "\\conninfo";

/// Proves for every sslmode of psql whether it gets through, and with TLS or without, where the proxy
/// declines, offers and requires TLS.
#[tokio::test(flavor = "multi_thread")]
async fn modes_of_psql() {
    let authority = Authority::new("of the proxy");
    let issued = authority.issue("proxy", &["localhost", "127.0.0.1"]);
    let rig = Rig::start().await;
    let allow = rig.another(|o| o.listen_tls = Some(issued.listen(ListenTlsMode::Allow)));
    let (allow, _) = allow.await.expect("starts");
    let require = rig.another(|o| o.listen_tls = Some(issued.listen(ListenTlsMode::Require)));
    let (require, _) = require.await.expect("starts");
    // Without TLS, with it, or the error.
    const NONE: &str = "no TLS";
    const TLS: &str = "SSL connection (protocol: TLSv1.3";
    const DECLINED: &str = "server does not support SSL, but SSL was required";
    const REFUSED: &str = "no encryption";
    for (sslmode, off_is, allow_is, require_is) in [
        ("disable", NONE, NONE, REFUSED),
        ("allow", NONE, NONE, TLS),
        ("prefer", NONE, TLS, TLS),
        ("require", DECLINED, TLS, TLS),
        ("verify-ca", DECLINED, TLS, TLS),
        ("verify-full", DECLINED, TLS, TLS),
    ] {
        for (port, expected) in [(rig.port, off_is), (allow, allow_is), (require, require_is)] {
            let conninfo = format!(
                "host=127.0.0.1 port={port} user=postgres dbname=postgres sslmode={sslmode} sslrootcert={}",
                authority.file().display()
            );
            if expected == NONE || expected == TLS {
                let said = psql_ok(&conninfo, CONNINFO);
                assert_eq!(said.contains(TLS), expected == TLS, "{conninfo}: {said}");
                assert_eq!(psql_ok(&conninfo, "select 6 * 7"), "42\n");
            } else {
                let said = psql_fails(&conninfo, CONNINFO);
                assert!(said.contains(expected), "{conninfo}: {said}");
            }
        }
    }
    let mut raw = common::raw::Raw::open(require);
    raw.send(&common::raw::startup(&[
        ("user", "postgres"),
        ("database", "d"),
    ]));
    let refused = raw.rest();
    assert_eq!(common::raw::sqlstate(&refused), "28000");
    let message = common::raw::error_field(&refused, b'M').expect("a message");
    assert_eq!(
        message,
        "connection rejected for host \"127.0.0.1\", user \"postgres\", database \"d\", no encryption"
    );
    rig.stop().await;
}

/// Proves that clients that verify see through certificates of another authority, of another name and
/// of another time, and that names count where they should.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_certificates() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let rig = Rig::start().await;
    let named = ours.issue("named", &["db.example"]);
    let expired = ours.issue_until("expired", &["127.0.0.1"], 2021);
    let (named, _) = rig
        .another(|o| o.listen_tls = Some(named.listen(ListenTlsMode::Allow)))
        .await
        .expect("starts");
    let (expired, _) = rig
        .another(|o| o.listen_tls = Some(expired.listen(ListenTlsMode::Allow)))
        .await
        .expect("starts");
    let conninfo = |port: u16, mode: &str, authority: &Authority| {
        format!(
            "host=127.0.0.1 port={port} user=postgres dbname=postgres sslmode={mode} sslrootcert={}",
            authority.file().display()
        )
    };
    psql_ok(&conninfo(named, "verify-ca", &ours), CONNINFO);
    let said = psql_fails(&conninfo(named, "verify-full", &ours), CONNINFO);
    assert!(said.contains("does not match host name"), "{said}");
    let said = psql_fails(&conninfo(named, "verify-ca", &other), CONNINFO);
    assert!(said.contains("certificate verify failed"), "{said}");
    let said = psql_fails(&conninfo(expired, "verify-ca", &ours), CONNINFO);
    assert!(said.contains("certificate verify failed"), "{said}");
    let by_name = format!(
        "hostaddr=127.0.0.1 {}",
        conninfo(named, "verify-full", &ours)
    );
    let by_name = by_name.replace("host=127.0.0.1", "host=db.example");
    psql_ok(&by_name, CONNINFO);
    rig.stop().await;
}

/// Proves that with an authority for clients a session needs a certificate of it, and that the refusal
/// is Postgres' own; a cancel request without TLS still goes through.
#[tokio::test(flavor = "multi_thread")]
async fn client_certificates() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let issued = ours.issue("proxy", &["127.0.0.1"]);
    let rig = Rig::start().await;
    let (port, _) = rig
        .another(|o| {
            let mut listen = issued.listen(ListenTlsMode::Require);
            listen.client_ca = Some(ours.file());
            o.listen_tls = Some(listen);
        })
        .await
        .expect("starts");
    let base = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres sslmode=require");
    let said = psql_fails(&base, CONNINFO);
    assert!(
        said.contains("FATAL:  connection requires a valid client certificate"),
        "{said}"
    );
    let with = |one: &crate::authority::Issued| {
        format!(
            "{base} sslcert={} sslkey={}",
            one.certificate.display(),
            one.key.display()
        )
    };
    let good = with(&ours.issue("alice", &["alice"]));
    assert!(psql_ok(&good, CONNINFO).contains("SSL connection"));
    let said = psql_fails(&with(&other.issue("mallory", &["mallory"])), CONNINFO);
    assert!(
        said.contains("unknown ca") || said.contains("alert"),
        "{said}"
    );
    let expired = ours.issue_until("old", &["old"], 2021);
    let said = psql_fails(&with(&expired), CONNINFO);
    assert!(said.contains("expired") || said.contains("alert"), "{said}");

    // psql 15 cancels without TLS, whatever the session has.
    let started = std::time::Instant::now();
    let mut sleeping = std::process::Command::new("psql")
        .args(["-X", "-d", &good, "-c", "select pg_sleep(60)"])
        .env("HOME", "/nonexistent")
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("psql runs");
    tokio::time::sleep(Duration::from_millis(700)).await;
    let pid = rustix::process::Pid::from_child(&sleeping);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("interrupts");
    let status = sleeping.wait().expect("psql ends");
    assert!(!status.success());
    assert!(started.elapsed() < Duration::from_secs(20), "not cancelled");
    rig.stop().await;
}

/// Proves that large values go both ways over TLS, offloaded and not, while both directions are busy,
/// and that a cancel request over TLS works.
#[tokio::test(flavor = "multi_thread")]
async fn large_values_and_cancel() {
    let authority = Authority::new("of the proxy");
    let issued = authority.issue("proxy", &["localhost"]);
    let rig = Rig::start().await;
    let listen = issued.listen(ListenTlsMode::Require);
    let (port, _) = rig
        .another(|o| o.listen_tls = Some(listen))
        .await
        .expect("starts");
    let conninfo = format!(
        "host=localhost hostaddr=127.0.0.1 port={port} user=postgres dbname=postgres sslmode=require"
    );
    let client = tls_client(&conninfo, &authority).await;
    client
        .batch_execute("create table docs(id int, body toastrack.text, plain text)")
        .await
        .expect("creates");
    let body: String = (0..5_000_000_u32)
        .map(|at| char::from(b'a' + (at.wrapping_mul(2_654_435_761) >> 27) as u8 % 26))
        .collect();
    // Pipelined: the next value is on its way while the last one comes back.
    let insert = async |id: i32| {
        let row = client
            .query_one(
                "insert into docs values ($1, $2, $2) returning body, plain",
                &[&id, &body],
            )
            .await
            .expect("inserts");
        assert!(row.get::<_, &str>(0) == body && row.get::<_, &str>(1) == body);
    };
    tokio::join!(insert(1), insert(2), insert(3), insert(4));
    let direct = rig.through().await;
    let rows = direct
        .query("select body from docs", &[])
        .await
        .expect("reads");
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row.get::<_, &str>(0) == body));

    let cancel = client.cancel_token();
    let sleeping = tokio::spawn(async move { client.batch_execute("select pg_sleep(60)").await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let tls = tokio_postgres_rustls::MakeRustlsConnect::new(client_config(&authority, &[]));
    cancel.cancel_query(tls).await.expect("cancels");
    let ended = sleeping.await.expect("no panic").expect_err("is cancelled");
    assert_eq!(ended.code().map(|code| code.code()), Some("57014"));
    rig.stop().await;
}

/// Proves that certificates are read again for new connections while sessions go on, and that a file
/// that cannot be used changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn reload() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let issued = old.issue("proxy", &["localhost"]);
    let rig = Rig::start().await;
    let listen = issued.listen(ListenTlsMode::Require);
    let (port, reload) = rig
        .another(|o| o.listen_tls = Some(listen))
        .await
        .expect("starts");
    let conninfo = |authority: &Authority| {
        format!(
            "host=localhost hostaddr=127.0.0.1 port={port} user=postgres dbname=postgres \
             sslmode=verify-full sslrootcert={}",
            authority.file().display()
        )
    };
    let tls = format!(
        "host=localhost hostaddr=127.0.0.1 port={port} user=postgres dbname=postgres sslmode=require"
    );
    let session = tls_client(&tls, &old).await;
    let next = new.issue("proxy", &["localhost"]);
    std::fs::write(&issued.certificate, &next.certificate_pem).expect("writes");
    // The certificate without its key.
    assert!(reload.certificates().is_err());
    psql_ok(&conninfo(&old), CONNINFO);
    write_key(&issued.key, &next.key_pem, 0o644);
    let error = reload.certificates().expect_err("is readable").to_string();
    assert!(error.contains("group or world access"), "{error}");
    psql_ok(&conninfo(&old), CONNINFO);
    write_key(&issued.key, &next.key_pem, 0o600);
    reload.certificates().expect("reloads");
    psql_ok(&conninfo(&new), CONNINFO);
    psql_fails(&conninfo(&old), CONNINFO);
    session.batch_execute("select 1").await.expect("lives on");
    rig.stop().await;
}

/// Proves that a proxy does not start with a key that others can read, or that is none.
#[tokio::test(flavor = "multi_thread")]
async fn keys_that_are_not_used() {
    let authority = Authority::new("ours");
    let issued = authority.issue("proxy", &["localhost"]);
    let rig = Rig::start().await;
    let start = async || {
        let listen = issued.listen(ListenTlsMode::Allow);
        let proxy = rig.another(|o| o.listen_tls = Some(listen)).await;
        proxy
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert_eq!(start().await, "");
    write_key(&issued.key, &issued.key_pem, 0o604);
    assert!(start().await.contains("group or world access"));
    write_key(&issued.key, "-----BEGIN", 0o600);
    assert!(start().await.contains("proxy.key"), "{}", start().await);
    let other = authority.issue("other", &["localhost"]);
    write_key(&issued.key, &other.key_pem, 0o600);
    assert!(start().await.contains("proxy.crt"), "{}", start().await);
    std::fs::remove_file(&issued.key).expect("removes");
    assert!(start().await.contains("No such file"), "{}", start().await);
    rig.stop().await;
}
