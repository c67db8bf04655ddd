//! TLS between the proxy and the server: the modes, as libpq has them.

use std::time::Duration;

use toastrack_proxy::{ProxyOptions, ServerAddress, ServerTls, ServerTlsMode};

use crate::authority::{Authority, Issued, psql_fails, psql_ok};
use crate::common::{self, Rig, RigOptions};

const ENCRYPTED: &str = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";

/// A server with TLS, and a proxy that does not use it.
async fn tls_server(issued: &Issued, more: &[(&'static str, String)], hba_lines: &[&str]) -> Rig {
    let (mut settings, mut data_files) = issued.of_server();
    for (name, content) in more {
        settings.push(("ssl_ca_file", (*name).to_owned()));
        data_files.push((name, content.clone()));
    }
    Rig::with(RigOptions {
        settings,
        data_files,
        hba_lines: hba_lines.iter().map(|line| (*line).to_owned()).collect(),
        ..RigOptions::default()
    })
    .await
}

/// A proxy that reaches the server over TCP under a name.
async fn proxy(rig: &Rig, host: &str, tls: ServerTls) -> String {
    let address = ServerAddress::Tcp(host.to_owned(), rig.cluster.port());
    let adjust = |options: &mut ProxyOptions| {
        options.server = address.into();
        options.server_tls = tls;
    };
    let (port, _) = rig.another(adjust).await.expect("starts");
    format!("host=127.0.0.1 port={port} user=postgres dbname=postgres sslmode=disable")
}

fn mode(mode: ServerTlsMode, ca: Option<&Authority>) -> ServerTls {
    ServerTls {
        mode,
        ca: ca.map(Authority::file),
        ..ServerTls::default()
    }
}

/// Proves for every mode whether sessions (and with them the control connections) reach a server that
/// has TLS, and whether they are encrypted; wrong authorities and names are seen where they should be.
#[tokio::test(flavor = "multi_thread")]
async fn modes_with_a_server_that_has_tls() {
    use ServerTlsMode::{Disable, Prefer, Require, VerifyCa, VerifyFull};
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let rig = tls_server(&ours.issue("server", &["localhost"]), &[], &[]).await;
    const UNKNOWN: &str = "UnknownIssuer";
    const NAME: &str = "not valid for name";
    for (host, tls, expected) in [
        ("127.0.0.1", mode(Disable, None), "f\n"),
        ("127.0.0.1", mode(Prefer, None), "t\n"),
        ("127.0.0.1", mode(Prefer, Some(&other)), "t\n"),
        ("127.0.0.1", mode(Require, None), "t\n"),
        ("127.0.0.1", mode(Require, Some(&ours)), "t\n"),
        ("127.0.0.1", mode(Require, Some(&other)), UNKNOWN),
        ("127.0.0.1", mode(VerifyCa, Some(&ours)), "t\n"),
        ("127.0.0.1", mode(VerifyCa, Some(&other)), UNKNOWN),
        ("127.0.0.1", mode(VerifyFull, Some(&ours)), NAME),
        ("localhost", mode(VerifyFull, Some(&ours)), "t\n"),
        ("localhost", mode(VerifyFull, Some(&other)), UNKNOWN),
    ] {
        let conninfo = proxy(&rig, host, tls.clone()).await;
        if expected.ends_with('\n') {
            assert_eq!(psql_ok(&conninfo, ENCRYPTED), expected, "{host} {tls:?}");
        } else {
            let said = psql_fails(&conninfo, ENCRYPTED);
            assert!(said.contains("could not connect to the server"), "{said}");
            assert!(said.contains(expected), "{host} {tls:?}: {said}");
        }
    }
    // The control connections as well: this one reads a catalog for the first time.
    let encrypted = proxy(&rig, "localhost", mode(VerifyFull, Some(&ours))).await;
    psql_ok(&encrypted, "select 1");
    let control = "select bool_and(ssl) from pg_stat_ssl s join pg_stat_activity a using (pid) \
        where application_name = 'toastrack control' and client_addr is not null and client_port > 0 \
        and backend_start = (select max(backend_start) from pg_stat_activity \
            where application_name = 'toastrack control')";
    let direct = rig.cluster.connection_string("postgres");
    assert_eq!(psql_ok(&direct, control), "t\n");
    rig.stop().await;
}

/// Proves that a server without TLS is used where that will do, and refused where it will not, with
/// libpq's words; and that a server that wants TLS is not reached without.
#[tokio::test(flavor = "multi_thread")]
async fn servers_that_have_no_tls_or_insist() {
    use ServerTlsMode::{Disable, Prefer, Require, VerifyFull};
    let ours = Authority::new("ours");
    let without = Rig::start().await;
    for (tls, works) in [
        (mode(Prefer, None), true),
        (mode(Require, None), false),
        (mode(VerifyFull, Some(&ours)), false),
    ] {
        let conninfo = proxy(&without, "localhost", tls).await;
        if works {
            assert_eq!(psql_ok(&conninfo, ENCRYPTED), "f\n");
        } else {
            let said = psql_fails(&conninfo, ENCRYPTED);
            let reason = "server does not support SSL, but SSL was required";
            assert!(said.contains(reason), "{said}");
        }
    }
    without.stop().await;

    let issued = ours.issue("server", &["localhost"]);
    let hba = ["hostnossl all all 127.0.0.1/32 reject"];
    // What the rig itself does over TCP is over TLS nowhere: it sets up over the socket.
    let insists = tls_server(&issued, &[], &[]).await;
    insists
        .cluster
        .execute("postgres", "select 1")
        .expect("answers");
    let file = insists.cluster.data_dir().join("pg_hba.conf");
    let lines = std::fs::read_to_string(&file).expect("reads");
    std::fs::write(&file, format!("{}\n{lines}", hba.join("\n"))).expect("writes");
    let reloaded = insists
        .cluster
        .execute("postgres", "select pg_reload_conf()");
    reloaded.expect("reloads");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let said = psql_fails(
        &proxy(&insists, "127.0.0.1", mode(Disable, None)).await,
        ENCRYPTED,
    );
    assert!(
        said.contains("pg_hba.conf") && said.contains("no encryption"),
        "{said}"
    );
    let conninfo = proxy(&insists, "127.0.0.1", mode(Prefer, None)).await;
    assert_eq!(psql_ok(&conninfo, ENCRYPTED), "t\n");
    insists.stop().await;
}

/// Proves that a self-signed certificate is taken where it is listed itself, and that one that has
/// expired is not.
#[tokio::test(flavor = "multi_thread")]
async fn self_signed_and_expired() {
    use ServerTlsMode::{Require, VerifyCa, VerifyFull};
    let directory = tempfile::tempdir().expect("a directory");
    let (certificate, key) = (
        directory.path().join("s.crt"),
        directory.path().join("s.key"),
    );
    // As the Postgres manual makes one.
    let made = std::process::Command::new("openssl")
        .args([
            "req",
            "-new",
            "-x509",
            "-days",
            "30",
            "-nodes",
            "-subj",
            "/CN=localhost",
        ])
        .args(["-addext", "subjectAltName=DNS:localhost"])
        .arg("-out")
        .arg(&certificate)
        .arg("-keyout")
        .arg(&key)
        .output()
        .expect("openssl runs");
    assert!(made.status.success(), "{made:?}");
    let issued = Issued {
        certificate_pem: std::fs::read_to_string(&certificate).expect("reads"),
        key_pem: std::fs::read_to_string(&key).expect("reads"),
        certificate: certificate.clone(),
        key,
    };
    let rig = tls_server(&issued, &[], &[]).await;
    for verifies in [VerifyCa, VerifyFull] {
        let tls = ServerTls {
            mode: verifies,
            ca: Some(certificate.clone()),
            ..ServerTls::default()
        };
        let conninfo = proxy(&rig, "localhost", tls).await;
        assert_eq!(psql_ok(&conninfo, ENCRYPTED), "t\n");
    }
    let other = Authority::new("other");
    let conninfo = proxy(&rig, "localhost", mode(VerifyCa, Some(&other))).await;
    psql_fails(&conninfo, ENCRYPTED);
    rig.stop().await;

    let ours = Authority::new("ours");
    let expired = ours.issue_until("server", &["localhost"], 2021);
    let rig = tls_server(&expired, &[], &[]).await;
    let said = psql_fails(
        &proxy(&rig, "localhost", mode(VerifyCa, Some(&ours))).await,
        ENCRYPTED,
    );
    assert!(said.contains("expired"), "{said}");
    let conninfo = proxy(&rig, "localhost", mode(Require, None)).await;
    assert_eq!(psql_ok(&conninfo, ENCRYPTED), "t\n");
    rig.stop().await;
}

/// Proves that the proxy shows its certificate to a server that asks for one, that values and cancel
/// requests pass, and that without the certificate nothing does.
#[tokio::test(flavor = "multi_thread")]
async fn certificate_for_the_server() {
    let ours = Authority::new("ours");
    let rig = tls_server(
        &ours.issue("server", &["localhost"]),
        &[("clients.crt", ours.pem())],
        &[],
    )
    .await;
    let file = rig.cluster.data_dir().join("pg_hba.conf");
    let lines = std::fs::read_to_string(&file).expect("reads");
    let demand = "hostssl all all 127.0.0.1/32 trust clientcert=verify-ca";
    std::fs::write(&file, format!("{demand}\n{lines}")).expect("writes");
    let reloaded = rig.cluster.execute("postgres", "select pg_reload_conf()");
    reloaded.expect("reloads");
    tokio::time::sleep(Duration::from_millis(300)).await;

    let mut tls = mode(ServerTlsMode::VerifyFull, Some(&ours));
    let said = psql_fails(&proxy(&rig, "localhost", tls.clone()).await, ENCRYPTED);
    assert!(
        said.contains("requires a valid client certificate"),
        "{said}"
    );
    let shown = ours.issue("toastrack", &["toastrack"]);
    tls.certificate = Some(shown.certificate.clone());
    let unfit = rig
        .another(|options| options.server_tls = tls.clone())
        .await;
    assert!(unfit.is_err(), "a certificate without its key");
    tls.key = Some(shown.key.clone());
    let conninfo = proxy(&rig, "localhost", tls).await;
    assert_eq!(psql_ok(&conninfo, ENCRYPTED), "t\n");

    let client = common::connect(&conninfo.replace(" sslmode=disable", "")).await;
    client
        .batch_execute("create table docs(body toastrack.text)")
        .await
        .expect("creates");
    let body = "t".repeat(4_000_000);
    for _ in 0..3 {
        let sql = "insert into docs values ($1) returning body, $1::text";
        let row = client.query_one(sql, &[&body]).await.expect("inserts");
        assert!(row.get::<_, &str>(0) == body && row.get::<_, &str>(1) == body);
    }
    let cancel = client.cancel_token();
    let sleeping = tokio::spawn(async move { client.batch_execute("select pg_sleep(60)").await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let cancelled = cancel.cancel_query(tokio_postgres::NoTls).await;
    cancelled.expect("cancels");
    let ended = sleeping.await.expect("no panic").expect_err("is cancelled");
    assert_eq!(ended.code().map(|code| code.code()), Some("57014"));
    rig.stop().await;
}
