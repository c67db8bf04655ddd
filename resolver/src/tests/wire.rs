//! With tokio-postgres, and byte by byte.

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use super::{Running, SECRET, resolve, value};
use crate::{Limits, ResolverListen, USER};

async fn connect(conninfo: &str) -> Result<Client, tokio_postgres::Error> {
    let config: Config = conninfo.parse()?;
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

fn sqlstate(error: &tokio_postgres::Error) -> String {
    let code = error.code().unwrap_or_else(|| panic!("{error:?}"));
    code.code().to_owned()
}

async fn value_of(client: &Client, query: &str) -> Result<String, tokio_postgres::Error> {
    let messages = client.simple_query(query).await?;
    let [
        SimpleQueryMessage::RowDescription(columns),
        SimpleQueryMessage::Row(row),
        SimpleQueryMessage::CommandComplete(1),
    ] = &messages[..]
    else {
        panic!("{messages:?}");
    };
    assert_eq!(columns.len(), 1);
    Ok(row.get(0).unwrap().to_owned())
}

fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\\x{digits}")
}

/// Proves that values of every size come back as bytea text, many on one connection.
#[tokio::test]
async fn values_come_back_as_bytea_text() {
    let running = Running::start(Limits::default()).await;
    let client = connect(&running.conninfo()).await.unwrap();
    let mut bytes = 0;
    let lens = [0, 1, 2_047, 2_048, 2_049, 8_192, 65_537, 1 << 20];
    for len in lens {
        let text = value_of(&client, &resolve(&format!("len:{len}"))).await;
        assert!(text.unwrap() == hex(&value(len)), "{len} bytes");
        bytes += len as u64;
    }
    let stats = running.stats();
    assert_eq!(stats.values_resolved, lens.len() as u64);
    assert_eq!(stats.bytes_resolved, bytes);
    assert_eq!((stats.connections_active, stats.connections_total), (1, 1));
    drop(client);
    running
        .wait_for(|stats| stats.connections_active == 0)
        .await;
}

/// Proves the SQLSTATE of each failure, and that the connection answers the next question.
#[tokio::test]
async fn failures_have_their_sqlstate_and_leave_the_connection() {
    let running = Running::start(Limits::default()).await;
    let client = connect(&running.conninfo()).await.unwrap();
    for (query, expected) in [
        (resolve("corrupt"), "XX001"),
        (resolve("io"), "58030"),
        (resolve("toast:of another store"), "TR001"),
        ("select 1".to_owned(), "0A000"),
        ("set client_encoding to 'LATIN1'".to_owned(), "0A000"),
        (format!("{}; select 1", resolve("len:1")), "0A000"),
    ] {
        let error = client.simple_query(&query).await.unwrap_err();
        assert_eq!(sqlstate(&error), expected, "{query}");
        if expected == "XX001" {
            let message = error.as_db_error().unwrap().message();
            assert!(message.contains("segment 3 offset 4096"), "{message}");
        }
        let next = value_of(&client, &resolve("len:1")).await.unwrap();
        assert_eq!(next, "\\x00");
    }
    // An empty query is no statement at all, as in Postgres.
    assert!(client.simple_query("").await.is_ok());
    let stats = running.stats();
    assert_eq!((stats.errors, stats.not_references), (2, 1));
}

/// Proves that only the user with the secret gets in, and that both ways to be wrong look alike.
#[tokio::test]
async fn only_the_user_with_the_secret_logs_in() {
    let running = Running::start(Limits::default()).await;
    let almost = SECRET.replace("0123", "0124");
    for (user, password) in [
        (USER, almost.as_str()),
        (USER, ""),
        (USER, &SECRET[..31]),
        ("postgres", SECRET),
        ("toastrack_resolver2", SECRET),
    ] {
        let mut config = running.conninfo().parse::<Config>().unwrap();
        let config = config.user(user).password(password);
        let error = config.connect(NoTls).await.err().unwrap();
        assert_eq!(sqlstate(&error), "28P01", "{user} {password}");
        let db_error = error.as_db_error().unwrap();
        let expected = format!("password authentication failed for user \"{user}\"");
        assert_eq!(db_error.message(), expected);
        assert_eq!(db_error.severity(), "FATAL");
    }
    assert_eq!(running.stats().logins_refused, 5);
    running
        .wait_for(|stats| stats.connections_active == 0)
        .await;
    assert!(connect(&running.conninfo()).await.is_ok());
}

/// Proves what a client is told at the log-in, and that what it asks for is tolerated.
#[tokio::test]
async fn start_up_parameters_are_answered() {
    let running = Running::start(Limits::default()).await;
    let mut config = running.conninfo().parse::<Config>().unwrap();
    config
        .application_name("an application")
        .options("-c geqo=off")
        .ssl_mode(SslMode::Prefer);
    let (client, connection) = config.connect(NoTls).await.unwrap();
    let told = |name| connection.parameter(name).map(str::to_owned);
    assert!(
        told("server_version")
            .unwrap()
            .starts_with("14.0 (toastrack")
    );
    assert_eq!(told("client_encoding").as_deref(), Some("UTF8"));
    assert_eq!(told("standard_conforming_strings").as_deref(), Some("on"));
    assert_eq!(told("integer_datetimes").as_deref(), Some("on"));
    assert_eq!(told("DateStyle"), None);
    tokio::spawn(connection);
    assert!(value_of(&client, &resolve("len:3")).await.is_ok());
}

/// Proves that the extended protocol is refused with a reason.
#[tokio::test]
async fn extended_protocol_is_refused() {
    let running = Running::start(Limits::default()).await;
    let client = connect(&running.conninfo()).await.unwrap();
    let error = client.query("select 1", &[]).await.unwrap_err();
    assert_eq!(sqlstate(&error), "0A000");
    running
        .wait_for(|stats| stats.connections_active == 0)
        .await;
    assert_eq!(running.stats().panics, 0);
}

/// Proves Q2: a connection that panics ends alone.
#[tokio::test]
async fn panic_ends_one_connection() {
    let running = Running::start(Limits::default()).await;
    let other = connect(&running.conninfo()).await.unwrap();
    let client = connect(&running.conninfo()).await.unwrap();
    assert!(client.simple_query(&resolve("panic")).await.is_err());
    running.wait_for(|stats| stats.panics == 1).await;
    running
        .wait_for(|stats| stats.connections_active == 1)
        .await;
    assert!(value_of(&other, &resolve("len:1")).await.is_ok());
    assert!(connect(&running.conninfo()).await.is_ok());
}

/// Proves that the connection over the limit is told so, and that a place that comes free is used.
#[tokio::test]
async fn connections_are_bounded() {
    let limits = Limits {
        max_connections: 2,
        ..Limits::default()
    };
    let running = Running::start(limits).await;
    let first = connect(&running.conninfo()).await.unwrap();
    let _second = connect(&running.conninfo()).await.unwrap();
    let error = connect(&running.conninfo()).await.err().unwrap();
    assert_eq!(sqlstate(&error), "53300");
    assert_eq!(running.stats().connections_refused, 1);
    drop(first);
    running
        .wait_for(|stats| stats.connections_active == 1)
        .await;
    assert!(connect(&running.conninfo()).await.is_ok());
}

/// Proves that a peer that does not finish its log-in is cut off, wherever it stops.
#[tokio::test]
async fn log_in_has_a_deadline() {
    let limits = Limits {
        login_timeout: Duration::from_millis(200),
        ..Limits::default()
    };
    let running = Running::start(limits).await;
    let partial: [&[u8]; 4] = [b"", b"\0\0\0", b"\0\0\0\x08\x04\xd2\x16\x2f", STARTUP];
    for bytes in partial {
        let mut stream = raw(&running).await;
        stream.write_all(bytes).await.unwrap();
        let mut rest = Vec::new();
        let read = timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
        assert!(read.is_ok(), "still open after {bytes:?}");
    }
    running
        .wait_for(|stats| stats.connections_active == 0)
        .await;
    // One that did finish stays, however long it says nothing.
    let client = connect(&running.conninfo()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert!(value_of(&client, &resolve("len:1")).await.is_ok());
}

/// Proves that a client that stops reading its answer is cut off, so that it holds nothing for
/// ever.
#[tokio::test]
async fn answers_have_a_deadline() {
    let limits = Limits {
        answer_timeout: Duration::from_millis(500),
        ..Limits::default()
    };
    let running = Running::start(limits).await;
    let mut stream = logged_in_raw(&running).await;
    // 32 MiB of text do not fit the socket buffers, and nobody reads them.
    let query = resolve(&format!("len:{}", 16 << 20));
    let body = [query.as_bytes(), b"\0"].concat();
    let len = (body.len() as u32 + 4).to_be_bytes();
    stream
        .write_all(&[b"Q", &len[..], &body].concat())
        .await
        .unwrap();
    running.wait_for(|stats| stats.values_resolved == 1).await;
    running
        .wait_for(|stats| stats.connections_active == 0)
        .await;
}

/// Proves S9 on the wire: malformed and random bytes before and after the log-in end their own
/// connection at most, none of them by a panic, and the resolver goes on.
#[tokio::test]
async fn malformed_bytes_end_their_connection() {
    let running = Running::start(Limits::default()).await;
    let mut cases: Vec<Vec<u8>> = vec![
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0; 64],
        vec![0xff; 64],
        b"\0\0\0\x09\0\x02\0\0\0".to_vec(),
        b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x01\0\0\0\x02".to_vec(),
        b"\0\0\0\x08\x04\xd2\x16\x2f".repeat(4),
        b"\x16\x03\x01\x02\0\x01\0\x01".to_vec(),
    ];
    // Behind a good start-up message: SASL messages with wrong lengths and no terminators.
    for body in [
        &b"x"[..],
        b"SCRAM-SHA-256",
        b"SCRAM-SHA-256\0",
        b"SCRAM-SHA-256\0\0\0",
        b"SCRAM-SHA-256\0\x7f\xff\xff\xff",
        b"SCRAM-SHA-256\0\xff\xff\xff\xff",
        b"SCRAM-SHA-256\0\0\0\0\x05n,,",
        b"SCRAM-SHA-256\0\0\0\0\x03n,,",
        b"SCRAM-SHA-256\0\0\0\0\x0cn,,n=,r=\xff\xff\xff\xff",
        b"SCRAM-SHA-256-PLUS\0\0\0\0\x03p=,",
        b"\0\0\0\0\0",
    ] {
        let len = (body.len() as u32 + 4).to_be_bytes();
        cases.push([STARTUP, b"p", &len, body].concat());
    }
    // Behind a good client-first: a client-final that is none.
    let first = b"SCRAM-SHA-256\0\0\0\0\x0bn,,n=,r=abc";
    let first = [
        STARTUP,
        b"p",
        &(first.len() as u32 + 4).to_be_bytes(),
        first,
    ]
    .concat();
    for body in [
        &b"x"[..],
        b",,,",
        b"c=biws",
        b"c=biws,r=abc",
        b"c=biws,r=abc,p=",
        b"c=,r=,p=AAAA",
        b"c=\xff\xfe,r=abc,p=!!!!",
        b"p=AAAA,c=biws,r=abc",
    ] {
        let len = (body.len() as u32 + 4).to_be_bytes();
        cases.push([&first, &b"p"[..], &len, body].concat());
    }
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..200 {
        let mut noise = STARTUP.to_vec();
        for _ in 0..(seed % 60) {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            noise.push((seed >> 56) as u8);
        }
        seed = seed.rotate_left(7).wrapping_add(11);
        cases.push(noise);
    }
    for case in &cases {
        let mut stream = raw(&running).await;
        let _ = stream.write_all(case).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let read = timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
        assert!(read.is_ok(), "still open after {case:?}");
    }
    running
        .wait_for(|stats| stats.connections_active == 0)
        .await;
    assert_eq!(running.stats().logins_refused, 0);
    assert_eq!(
        running.stats().panics,
        0,
        "something got past the frame check"
    );

    for bytes in [
        &b"Q\0\0\0\x08none"[..],
        b"Q\x3f\0\0\0",
        b"d\0\0\0\x04",
        b"\0\0\0\0\0",
        b"B\0\0\0\x06\0\0",
    ] {
        let mut stream = logged_in_raw(&running).await;
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        let read = timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
        read.unwrap().unwrap();
        assert_eq!(answer.first(), Some(&b'E'), "{bytes:?}");
    }
    assert!(connect(&running.conninfo()).await.is_ok());
}

/// Proves that shutting down ends idle connections with a reason, lets an answer finish, and frees
/// the port.
#[tokio::test]
async fn shutdown_drains() {
    let running = Running::start(Limits::default()).await;
    let idle = connect(&running.conninfo()).await.unwrap();
    let busy = connect(&running.conninfo()).await.unwrap();
    let slow = &running.lookup.slow;
    slow.store(true, std::sync::atomic::Ordering::SeqCst);
    let answer = tokio::spawn(async move { value_of(&busy, &resolve("len:2")).await });
    tokio::time::sleep(Duration::from_millis(150)).await;
    running.shutdown.cancel();
    assert_eq!(answer.await.unwrap().unwrap(), "\\x0007");
    timeout(Duration::from_secs(4), running.serving)
        .await
        .unwrap()
        .unwrap();
    assert!(idle.simple_query(&resolve("len:1")).await.is_err());
    let (host, port) = running.address.host_and_port();
    assert!(TcpStream::connect((host, port)).await.is_err());
}

/// Proves that the Unix socket works as libpq names it, with its mode, and goes away at the end.
#[tokio::test]
async fn unix_socket_is_named_as_libpq_looks_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let address = ResolverListen::Unix {
        directory: directory.path().to_owned(),
        port: 6434,
        group_id: None,
    };
    let running = Running::start_at(address, Limits::default()).await;
    let path = directory.path().join(".s.PGSQL.6434");
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o660);
    let client = connect(&running.conninfo()).await.unwrap();
    assert!(value_of(&client, &resolve("len:1")).await.is_ok());
    running.shutdown.cancel();
    running.serving.await.unwrap();
    assert!(!path.exists());
}

const STARTUP: &[u8] = b"\0\0\0\x21\0\x03\0\0user\0toastrack_resolver\0\0";

async fn raw(running: &Running) -> TcpStream {
    let ResolverListen::Tcp(address) = running.address else {
        panic!("not TCP");
    };
    TcpStream::connect(address).await.unwrap()
}

/// A raw stream behind a log-in: tokio-postgres logs in over a relay that then lets go.
async fn logged_in_raw(running: &Running) -> TcpStream {
    let stream = raw(running).await.into_std().unwrap();
    let kept = stream.try_clone().unwrap();
    let stream = TcpStream::from_std(stream).unwrap();
    let config: Config = running.conninfo().parse().unwrap();
    let (client, connection) = config.connect_raw(stream, NoTls).await.unwrap();
    // Neither says anything when it is forgotten, and the socket stays open in `kept`.
    std::mem::forget(client);
    std::mem::forget(connection);
    TcpStream::from_std(kept).unwrap()
}
