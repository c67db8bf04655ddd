//! The admin API over real sockets, spoken byte by byte so that also wrong requests can be sent.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use toastrack_admin::{Admin, Check, ROUTES, Readiness, Source, Stats, Token};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A source whose health, speed and soundness the test decides.
#[derive(Default)]
struct Scripted {
    broken: AtomicBool,
    slow: AtomicBool,
    panics: AtomicBool,
}

impl Source for Scripted {
    fn readiness(&self) -> Readiness {
        Readiness::from_checks(vec![Check {
            name: "store".into(),
            ok: !self.broken.load(Ordering::SeqCst),
            detail: "a detail for the operator".into(),
        }])
    }

    fn stats(&self) -> Stats {
        assert!(!self.panics.load(Ordering::SeqCst), "scripted panic");
        if self.slow.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(500));
        }
        Stats {
            version: "9.9.9".into(),
            uptime_seconds: 42,
            ..Stats::default()
        }
    }
}

struct Running {
    address: SocketAddr,
    source: Arc<Scripted>,
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
}

async fn start() -> Running {
    let source = Arc::new(Scripted::default());
    let token = Token::new(TOKEN).unwrap();
    let shared: Arc<dyn Source> = Arc::clone(&source) as Arc<dyn Source>;
    let admin = Admin::bind("127.0.0.1:0".parse().unwrap(), token, shared)
        .await
        .unwrap();
    let address = admin.local_addr();
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(admin.serve(shutdown.clone()));
    Running {
        address,
        source,
        shutdown,
        serving,
    }
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    fn problem(&self) -> Value {
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        let problem: Value = serde_json::from_str(&self.body).unwrap();
        assert_eq!(problem["type"], "about:blank");
        assert_eq!(problem["status"], self.status);
        assert!(problem["title"].is_string() && problem["detail"].is_string());
        problem
    }
}

async fn send(address: SocketAddr, request: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The server may answer and close before it has read everything.
    let _ = stream.write_all(request).await;
    let mut answer = Vec::new();
    let _ = timeout(Duration::from_secs(10), stream.read_to_end(&mut answer))
        .await
        .unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    Answer {
        status: head
            .get(9..12)
            .and_then(|code| code.parse().ok())
            .unwrap_or(0),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

async fn get(address: SocketAddr, path: &str, authorization: Option<&str>) -> Answer {
    let authorization = match authorization {
        Some(value) => format!("Authorization: {value}\r\n"),
        None => String::new(),
    };
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{authorization}\r\n");
    send(address, request.as_bytes()).await
}

fn bearer() -> String {
    format!("Bearer {TOKEN}")
}

/// Proves that each route answers with the token, and that without it exactly those refuse that
/// the list says.
#[tokio::test]
async fn routes_ask_for_the_token_as_listed() {
    let running = start().await;
    for route in ROUTES {
        let with = get(running.address, route.path, Some(&bearer())).await;
        assert_eq!(with.status, 200, "{}", route.path);
        assert_eq!(with.header("cache-control"), Some("no-store"));
        let without = get(running.address, route.path, None).await;
        let expected = if route.needs_token { 401 } else { 200 };
        assert_eq!(without.status, expected, "{}", route.path);
    }
}

/// Proves which spellings of the token are taken, and what a refusal looks like.
#[tokio::test]
async fn only_the_token_opens() {
    let running = start().await;
    for good in [
        bearer(),
        format!("bearer {TOKEN}"),
        format!("BEARER   {TOKEN}"),
    ] {
        let answer = get(running.address, "/api/v1/stats", Some(&good)).await;
        assert_eq!(answer.status, 200, "{good}");
    }
    let twice = format!("Bearer {TOKEN}\r\nAuthorization: Bearer {TOKEN}");
    for bad in [
        "Bearer",
        "Bearer ",
        TOKEN,
        "Basic dXNlcjpwYXNz",
        "Bearer 0123456789abcdef0123456789abcdeX",
        "Bearer 0123456789abcdef0123456789abcde",
        "Bearer 0123456789abcdef0123456789abcdef0",
        "Bearer \u{fc}\u{fc}\u{fc}",
        &twice,
    ] {
        let answer = get(running.address, "/api/v1/stats", Some(bad)).await;
        assert_eq!(answer.status, 401, "{bad}");
        assert_eq!(
            answer.header("www-authenticate"),
            Some("Bearer realm=\"toastrack\"")
        );
        answer.problem();
        assert!(!answer.body.contains("9.9.9"));
    }
}

/// Proves that readiness follows the source, and shows its checks to the token alone.
#[tokio::test]
async fn readiness_tells_details_to_the_token_alone() {
    let running = start().await;
    let open = get(running.address, "/readyz", None).await;
    assert_eq!((open.status, open.body.as_str()), (200, "{\"ready\":true}"));
    running.source.broken.store(true, Ordering::SeqCst);
    let open = get(running.address, "/readyz", None).await;
    assert_eq!(
        (open.status, open.body.as_str()),
        (503, "{\"ready\":false}")
    );
    let shown = get(running.address, "/readyz", Some(&bearer())).await;
    assert_eq!(shown.status, 503);
    let shown: Value = serde_json::from_str(&shown.body).unwrap();
    assert_eq!(shown["checks"][0]["name"], "store");
    assert_eq!(shown["checks"][0]["ok"], false);
    let wrong = get(
        running.address,
        "/readyz",
        Some("Bearer nothing-of-the-kind"),
    )
    .await;
    assert_eq!(wrong.status, 401);
    // Liveness does not depend on any of it.
    assert_eq!(get(running.address, "/healthz", None).await.body, "ok\n");
}

/// Proves that statistics and metrics are those of the source.
#[tokio::test]
async fn statistics_are_those_of_the_source() {
    let running = start().await;
    let stats = get(running.address, "/api/v1/stats", Some(&bearer())).await;
    assert_eq!(stats.header("content-type"), Some("application/json"));
    let stats: Value = serde_json::from_str(&stats.body).unwrap();
    assert_eq!(stats["version"], "9.9.9");
    assert_eq!(stats["uptime_seconds"], 42);
    let metrics = get(running.address, "/metrics", Some(&bearer())).await;
    assert!(metrics.body.contains("\ntoastrack_uptime_seconds 42\n"));
    assert_eq!(
        metrics.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
}

/// Proves that every way to ask wrongly is answered with problem JSON.
#[tokio::test]
async fn wrong_requests_get_problems() {
    let running = start().await;
    let missing = get(running.address, "/api/v1/nothing", Some(&bearer())).await;
    assert_eq!(
        (missing.status, &missing.problem()["title"]),
        (404, &Value::from("Not Found"))
    );

    let posted = send(
        running.address,
        b"POST /api/v1/stats HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    )
    .await;
    assert_eq!(posted.status, 405);
    assert!(posted.header("allow").unwrap().starts_with("GET"));
    posted.problem();

    for body in [
        "Content-Length: 1000000000\r\n\r\nxxxx",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ] {
        let request = format!("GET /healthz HTTP/1.1\r\nHost: a\r\n{body}");
        let answer = send(running.address, request.as_bytes()).await;
        assert_eq!(answer.status, 413, "{body}");
        answer.problem();
    }
}

/// Proves that a head over the limit and bytes that are no HTTP end their connection and nothing
/// else.
#[tokio::test]
async fn oversized_and_broken_heads_are_cut_off() {
    let running = start().await;
    let long = format!(
        "GET /healthz HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        "x".repeat(64 << 10)
    );
    assert_eq!(send(running.address, long.as_bytes()).await.status, 431);
    let many = format!(
        "GET /healthz HTTP/1.1\r\nHost: a\r\n{}\r\n",
        "X: 1\r\n".repeat(200)
    );
    assert_eq!(send(running.address, many.as_bytes()).await.status, 431);
    assert_eq!(
        send(running.address, b"\x00\x00\x00\x08\x04\xd2\x16\x2f\r\n\r\n")
            .await
            .status,
        400
    );
    assert_eq!(get(running.address, "/healthz", None).await.status, 200);
}

/// Proves A2: while eight answers are being made the ninth request is told to come back, and
/// liveness is not held up.
#[tokio::test]
async fn answers_under_way_are_bounded() {
    let running = start().await;
    running.source.slow.store(true, Ordering::SeqCst);
    let authorization = bearer();
    let asking = (0..24).map(|_| get(running.address, "/api/v1/stats", Some(&authorization)));
    let (answers, alive) = tokio::join!(
        join_all(asking.collect()),
        get(running.address, "/healthz", None)
    );
    assert_eq!(alive.status, 200);
    let good = answers.iter().filter(|answer| answer.status == 200).count();
    let busy: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status == 503)
        .collect();
    assert!(
        good >= 8 && !busy.is_empty(),
        "{good} good, {} busy",
        busy.len()
    );
    assert_eq!(good + busy.len(), 24);
    assert_eq!(busy[0].header("retry-after"), Some("1"));
    busy[0].problem();
}

async fn join_all(futures: Vec<impl Future<Output = Answer>>) -> Vec<Answer> {
    let mut pinned: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut answers = Vec::new();
    std::future::poll_fn(|context| {
        pinned.retain_mut(|future| match future.as_mut().poll(context) {
            std::task::Poll::Ready(answer) => {
                answers.push(answer);
                false
            }
            std::task::Poll::Pending => true,
        });
        match pinned.is_empty() {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    answers
}

/// Proves that a source that panics costs one answer, not the API.
#[tokio::test]
async fn panic_of_the_source_is_one_bad_answer() {
    let running = start().await;
    running.source.panics.store(true, Ordering::SeqCst);
    let answer = get(running.address, "/metrics", Some(&bearer())).await;
    assert_eq!(answer.status, 500);
    answer.problem();
    running.source.panics.store(false, Ordering::SeqCst);
    let answer = get(running.address, "/metrics", Some(&bearer())).await;
    assert_eq!(answer.status, 200);
}

/// Proves that shutting down lets the answer under way finish, ends idle connections, and frees
/// the port.
#[tokio::test]
async fn shutdown_drains() {
    let running = start().await;
    running.source.slow.store(true, Ordering::SeqCst);
    let mut idle = TcpStream::connect(running.address).await.unwrap();
    let address = running.address;
    let answer = tokio::spawn(async move { get(address, "/api/v1/stats", Some(&bearer())).await });
    tokio::time::sleep(Duration::from_millis(150)).await;
    running.shutdown.cancel();
    timeout(Duration::from_secs(4), running.serving)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(answer.await.unwrap().status, 200);
    let mut rest = Vec::new();
    assert_eq!(idle.read_to_end(&mut rest).await.unwrap_or(0), 0);
    assert!(TcpStream::connect(address).await.is_err());
}

/// Proves that an address other hosts can reach needs the call that says so.
#[tokio::test]
async fn remote_addresses_must_be_asked_for() {
    let address: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let token = Token::new(TOKEN).unwrap();
    let source: Arc<dyn Source> = Arc::new(Scripted::default());
    let refused = Admin::bind(address, token.clone(), Arc::clone(&source)).await;
    let refused = refused.err().unwrap();
    assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput);
    let bound = Admin::bind_remote(address, token, source).await.unwrap();
    assert_ne!(bound.local_addr().port(), 0);
}
