//! What comes before and instead of the handshake.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use toastrack_proxy::ListenTlsMode;
use toastrack_wire::startup::{encode_gssenc_request, encode_ssl_request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::authority::{Authority, client_config};
use crate::common::Rig;
use crate::common::raw::{self, Raw};

async fn tls_rig(authority: &Authority) -> (Rig, u16) {
    let issued = authority.issue("proxy", &["localhost"]);
    let rig = Rig::start().await;
    let (port, _) = rig
        .another(|o| o.listen_tls = Some(issued.listen(ListenTlsMode::Allow)))
        .await
        .expect("starts");
    (rig, port)
}

fn ssl_request() -> Vec<u8> {
    let mut request = Vec::new();
    encode_ssl_request(&mut request);
    request
}

fn startup() -> Vec<u8> {
    raw::startup(&[("user", "postgres"), ("database", "postgres")])
}

/// Proves (CVE-2021-23214, CVE-2021-23222) that what comes behind an SSLRequest in plain text is never
/// taken for what comes in TLS: together with it, it is refused; after the answer, it is no handshake.
#[tokio::test(flavor = "multi_thread")]
async fn stuffed_bytes() {
    let (rig, port) = tls_rig(&Authority::new("ours")).await;
    let mut glued = Raw::open(port);
    glued.send(&[ssl_request(), startup(), raw::query("select 1")].concat());
    let answer = glued.rest();
    assert_eq!(raw::sqlstate(&answer), "08P01");
    let message = raw::error_field(&answer, b'M').expect("a message");
    assert_eq!(message, "received unencrypted data after SSL request");

    let mut late = TcpStream::connect(("127.0.0.1", port)).expect("connects");
    late.write_all(&ssl_request()).expect("sends");
    let mut byte = [0];
    late.read_exact(&mut byte).expect("an answer");
    assert_eq!(&byte, b"S");
    late.write_all(&startup()).expect("sends");
    let mut rest = Vec::new();
    // An alert at most, and the end.
    let _ = late.read_to_end(&mut rest);
    assert!(rest.is_empty() || rest[0] == 0x15, "{rest:?}");
    assert!(rest.len() < 16, "{rest:?}");
    rig.stop().await;
}

/// Proves that GSSENCRequest is declined before SSLRequest is agreed to, and that inside TLS neither is
/// answered again.
#[tokio::test(flavor = "multi_thread")]
async fn one_encryption() {
    let authority = Authority::new("ours");
    let (rig, port) = tls_rig(&authority).await;
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port))
        .await
        .expect("connects");
    let mut gss = Vec::new();
    encode_gssenc_request(&mut gss);
    stream.write_all(&gss).await.expect("sends");
    assert_eq!(stream.read_u8().await.expect("an answer"), b'N');
    stream.write_all(&ssl_request()).await.expect("sends");
    assert_eq!(stream.read_u8().await.expect("an answer"), b'S');
    let connector = tokio_rustls::TlsConnector::from(Arc::new(client_config(&authority, &[])));
    let name = ServerName::try_from("localhost").expect("a name");
    let mut tls = connector.connect(name, stream).await.expect("TLS");
    tls.write_all(&ssl_request()).await.expect("sends");
    assert_eq!(tls.read_u8().await.expect("an answer"), b'E');
    rig.stop().await;
}

/// Proves that TLS without an SSLRequest works for those who name the protocol, as PostgreSQL 17's
/// sslnegotiation=direct does, and for nobody else.
#[tokio::test(flavor = "multi_thread")]
async fn direct_negotiation() {
    let authority = Authority::new("ours");
    let (rig, port) = tls_rig(&authority).await;
    let session = async |alpn: &[&str]| -> std::io::Result<u8> {
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
        let config = Arc::new(client_config(&authority, alpn));
        let name = ServerName::try_from("localhost").expect("a name");
        let mut tls = tokio_rustls::TlsConnector::from(config)
            .connect(name, stream)
            .await?;
        tls.write_all(&startup()).await?;
        tls.read_u8().await
    };
    assert_eq!(session(&["postgresql"]).await.expect("a session"), b'R');
    assert_eq!(
        session(&["h2", "postgresql"]).await.expect("a session"),
        b'R'
    );
    assert!(session(&[]).await.is_err());
    assert!(session(&["h2"]).await.is_err());
    // Where TLS is declined, the same bytes are a packet that is too long.
    let mut plain = Raw::open(rig.port);
    plain.send(&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);
    assert_eq!(raw::sqlstate(&plain.rest()), "08P01");
    rig.stop().await;
}

/// Proves that TLS before 1.2 is refused, and 1.2 is not.
#[tokio::test(flavor = "multi_thread")]
async fn versions() {
    let (rig, port) = tls_rig(&Authority::new("ours")).await;
    let handshake = |version: &str| {
        let output = Command::new("openssl")
            .args(["s_client", "-starttls", "postgres", version])
            .args(["-cipher", "DEFAULT@SECLEVEL=0"])
            .args(["-connect", &format!("127.0.0.1:{port}")])
            .stdin(Stdio::null())
            .output()
            .expect("openssl runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr)
    };
    for old in ["-tls1", "-tls1_1"] {
        let said = handshake(old);
        let refused = said.contains("alert") && said.contains("Cipher is (NONE)");
        assert!(refused, "{old}: {said}");
    }
    for good in ["-tls1_2", "-tls1_3"] {
        let said = handshake(good);
        assert!(
            said.contains("Cipher is TLS_") || said.contains("Cipher is ECDHE"),
            "{said}"
        );
    }
    rig.stop().await;
}

/// Proves that a client that starts a handshake and goes silent is let go after the start-up timeout,
/// and that a session goes on when others do so.
#[tokio::test(flavor = "multi_thread")]
async fn silent_clients() {
    let authority = Authority::new("ours");
    let issued = authority.issue("proxy", &["localhost"]);
    let rig = Rig::start().await;
    let (port, _) = rig
        .another(|o| {
            o.listen_tls = Some(issued.listen(ListenTlsMode::Allow));
            o.startup_timeout = std::time::Duration::from_millis(300);
        })
        .await
        .expect("starts");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
    stream.write_all(&ssl_request()).expect("sends");
    let mut said = Vec::new();
    let patience = Some(std::time::Duration::from_secs(10));
    stream.set_read_timeout(patience).expect("a timeout");
    stream.read_to_end(&mut said).expect("is let go");
    assert_eq!(said, b"S");
    // One that never says anything.
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
    stream.set_read_timeout(patience).expect("a timeout");
    said.clear();
    stream.read_to_end(&mut said).expect("is let go");
    assert!(said.is_empty());
    rig.stop().await;
}
