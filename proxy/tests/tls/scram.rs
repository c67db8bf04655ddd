//! SCRAM through the proxy: the table of docs/tls.md.

use toastrack_proxy::{ListenTlsMode, ProxyOptions, ServerAddress, ServerTls, ServerTlsMode};

use crate::authority::{Authority, psql, psql_ok};
use crate::common::{Rig, RigOptions};

/// Proves, for each pair of client and server side, which of psql's settings of channel_binding
/// authenticate; and that a wrong password never does.
#[tokio::test(flavor = "multi_thread")]
async fn channel_binding() {
    let ours = Authority::new("ours");
    let of_server = ours.issue("server", &["localhost"]);
    let of_proxy = ours.issue("proxy", &["localhost"]);
    let (settings, data_files) = of_server.of_server();
    let rig = Rig::with(RigOptions {
        settings,
        data_files,
        hba_lines: ["local", "host"]
            .map(|kind| {
                let address = if kind == "host" { "all" } else { "" };
                format!("{kind} all alice {address} scram-sha-256")
            })
            .to_vec(),
        ..RigOptions::default()
    })
    .await;
    let sql = "create role alice login replication password 'wonder'";
    rig.cluster.execute("postgres", sql).expect("creates");

    let none = None;
    let other = Some(of_proxy.listen(ListenTlsMode::Require));
    let same = Some(of_server.listen(ListenTlsMode::Require));
    let tcp = Some(ServerTlsMode::Disable);
    let tls = Some(ServerTlsMode::VerifyFull);
    let socket = None;
    // disable, prefer, require
    for (what, listen, server, expected) in [
        ("no TLS, socket", &none, socket, [true, true, false]),
        ("no TLS, TCP", &none, tcp, [true, true, false]),
        ("no TLS, TLS", &none, tls, [true, true, false]),
        ("TLS, socket", &other, socket, [true, true, false]),
        ("TLS, TCP", &other, tcp, [true, true, false]),
        (
            "TLS, TLS with another certificate",
            &other,
            tls,
            [true, false, false],
        ),
        (
            "TLS, TLS with the same certificate",
            &same,
            tls,
            [true, true, true],
        ),
    ] {
        let (port, _) = rig
            .another(|options: &mut ProxyOptions| {
                options.listen_tls.clone_from(listen);
                if let Some(mode) = server {
                    let port = rig.cluster.port();
                    options.server = ServerAddress::Tcp("localhost".to_owned(), port).into();
                    options.server_tls = ServerTls {
                        mode,
                        ca: Some(ours.file()),
                        ..ServerTls::default()
                    };
                }
            })
            .await
            .expect("starts");
        for (setting, works) in ["disable", "prefer", "require"].into_iter().zip(expected) {
            let conninfo = format!(
                "host=127.0.0.1 port={port} user=alice dbname=postgres sslmode={} \
                 channel_binding={setting}",
                if listen.is_some() {
                    "require"
                } else {
                    "disable"
                },
            );
            let right = format!("{conninfo} password=wonder");
            let output = psql(&right, "select current_user");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.success(), works, "{what}, {setting}: {said}");
            if !works && setting == "require" {
                assert!(said.contains("channel binding"), "{what}: {said}");
            }
            let wrong = psql(&format!("{conninfo} password=land"), "select 1");
            assert!(!wrong.status.success(), "{what}, {setting}");
            if works {
                let replication = format!("{right} replication=database");
                let said = psql_ok(&replication, "IDENTIFY_SYSTEM");
                assert!(said.contains("|postgres"), "{what}, {setting}: {said}");
            }
        }
    }
    rig.stop().await;
}
