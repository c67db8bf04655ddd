//! Certificates of the tests' own, and the clients that look at them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use toastrack_proxy::{ListenTls, ListenTlsMode};

/// An authority and the directory of its files.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: tempfile::TempDir,
}

/// Settings or files, by name.
pub(crate) type Named = Vec<(&'static str, String)>;

/// A certificate and its key, in files and as text.
#[derive(Clone)]
pub(crate) struct Issued {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) certificate_pem: String,
    pub(crate) key_pem: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("an authority");
        let directory = tempfile::tempdir().expect("a directory");
        let authority = Authority { issuer, directory };
        std::fs::write(authority.file(), authority.issuer.pem()).expect("writes");
        authority
    }

    /// The file of its certificate.
    pub(crate) fn file(&self) -> PathBuf {
        self.directory.path().join("ca.crt")
    }

    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for names and addresses, valid for now.
    pub(crate) fn issue(&self, file: &str, names: &[&str]) -> Issued {
        self.issue_until(file, names, 2099)
    }

    pub(crate) fn issue_until(&self, file: &str, names: &[&str], year: i32) -> Issued {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, file);
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("signs");
        let issued = Issued {
            certificate: self.directory.path().join(format!("{file}.crt")),
            key: self.directory.path().join(format!("{file}.key")),
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        };
        std::fs::write(&issued.certificate, &issued.certificate_pem).expect("writes");
        write_key(&issued.key, &issued.key_pem, 0o600);
        issued
    }
}

pub(crate) fn write_key(path: &Path, pem: &str, mode: u32) {
    std::fs::write(path, pem).expect("writes");
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, permissions).expect("a mode");
}

impl Issued {
    /// Settings with this certificate.
    pub(crate) fn listen(&self, mode: ListenTlsMode) -> ListenTls {
        ListenTls {
            mode,
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            client_ca: None,
        }
    }

    /// Settings of a server that shows this certificate, and the files they name.
    pub(crate) fn of_server(&self) -> (Named, Named) {
        let settings = vec![
            ("ssl", "on".to_owned()),
            ("ssl_cert_file", "server.crt".to_owned()),
            ("ssl_key_file", "server.key".to_owned()),
        ];
        let files = vec![
            ("server.crt", self.certificate_pem.clone()),
            ("server.key", self.key_pem.clone()),
        ];
        (settings, files)
    }
}

/// What psql says to a command, without files of the user who runs the test.
pub(crate) fn psql(conninfo: &str, command: &str) -> Output {
    Command::new("psql")
        .args(["-X", "-A", "-t", "-d", conninfo, "-c", command])
        .env("HOME", "/nonexistent")
        .env("LC_ALL", "C")
        .output()
        .expect("psql runs")
}

/// The output of a psql that has to succeed.
pub(crate) fn psql_ok(conninfo: &str, command: &str) -> String {
    let output = psql(conninfo, command);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{conninfo}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The errors of a psql that has to fail.
pub(crate) fn psql_fails(conninfo: &str, command: &str) -> String {
    let output = psql(conninfo, command);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{conninfo}: {shown}");
    String::from_utf8(output.stderr).expect("UTF-8")
}

/// A rustls client that trusts an authority.
pub(crate) fn client_config(authority: &Authority, alpn: &[&str]) -> rustls::ClientConfig {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let mut roots = rustls::RootCertStore::empty();
    let certificate = CertificateDer::from_pem_file(authority.file()).expect("a certificate");
    roots.add(certificate).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}

/// A connection of tokio-postgres with TLS, driven in a task.
pub(crate) async fn tls_client(conninfo: &str, authority: &Authority) -> tokio_postgres::Client {
    let tls = tokio_postgres_rustls::MakeRustlsConnect::new(client_config(authority, &[]));
    let (client, connection) = tokio_postgres::connect(conninfo, tls)
        .await
        .expect("connects");
    tokio::spawn(async move {
        let _ = connection.await;
    });
    client
}
