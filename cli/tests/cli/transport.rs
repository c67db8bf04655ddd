//! `toastrack serve` over TLS and a Unix socket.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{fail, succeed};
use crate::server::{Serving, signal, write_config};
use toastrack_testkit::Cluster;

/// A certificate for 127.0.0.1 that is its own authority, with its key.
fn certify(certificate: &Path, key: &Path) {
    let made = Command::new("openssl")
        .args(["req", "-new", "-x509", "-days", "2", "-nodes"])
        .args([
            "-subj",
            "/CN=toastrack",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
        ])
        .arg("-out")
        .arg(certificate)
        .arg("-keyout")
        .arg(key)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    fs::set_permissions(key, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Whether psql gets through.
fn reaches(conninfo: &str) -> bool {
    let output = Command::new("psql")
        .args(["-X", "-A", "-t", "-c", "select 6 * 7", "-d", conninfo])
        .env("HOME", "/nonexistent")
        .output()
        .unwrap();
    assert!(!output.status.success() || output.stdout == b"42\n");
    output.status.success()
}

/// An operator's way: the files are checked before anything starts, psql verifies what it is shown,
/// SIGHUP puts new certificates in place and leaves the old ones when the new are no good, and local
/// clients find the socket in its directory.
#[test]
fn tls_and_socket() {
    let cluster = Cluster::start().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let (certificate, key) = (at("server.crt"), at("server.key"));
    certify(&certificate, &key);
    let more = format!(
        "[listen.tls]\nmode = \"require\"\ncertificate = \"{}\"\nkey = \"{}\"\n",
        certificate.display(),
        key.display()
    );
    let server = cluster.socket_path().display().to_string();
    let config = write_config(directory.path(), &server, &more);
    let socket = format!("unix_socket = \"{}\"\n[server]", directory.path().display());
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("[server]", &socket)).unwrap();
    let file = config.to_str().unwrap();
    assert_eq!(succeed(&["check-config", file]).trim(), "ok");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(fail(&["check-config", file], 1).contains("group or world access"));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();

    let serving = Serving::start(&config);
    let (_, port) = serving.proxy.split_once(':').unwrap();
    let verified = |authority: &Path| {
        format!(
            "host=127.0.0.1 port={port} user=postgres dbname=postgres sslmode=verify-full \
             sslrootcert={}",
            authority.display()
        )
    };
    let plain = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres sslmode=disable");
    let local = format!(
        "host={} port={port} user=postgres dbname=postgres",
        directory.path().display()
    );
    let old = at("old.crt");
    fs::copy(&certificate, &old).unwrap();
    assert!(reaches(&verified(&old)));
    assert!(!reaches(&plain));
    assert!(reaches(&local));

    let logged = |text: &str| {
        let started = Instant::now();
        while !serving.log().iter().any(|line| line.contains(text)) {
            assert!(started.elapsed() < Duration::from_secs(20), "{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    fs::write(&certificate, "none").unwrap();
    signal(&serving.child, "HUP");
    logged("certificates not read again");
    assert!(reaches(&verified(&old)));
    certify(&certificate, &key);
    signal(&serving.child, "HUP");
    logged("certificates read again");
    assert!(reaches(&verified(&certificate)));
    assert!(!reaches(&verified(&old)));
    let file = at(&format!(".s.PGSQL.{port}"));
    assert!(file.exists());
    assert!(serving.stop().success());
    assert!(!file.exists());
}
