//! The resolver over a scripted lookup: what it says on the wire, and to dblink.

mod dblink;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::lookup::{Answer, Lookup};
use crate::{Counters, Limits, Resolver, ResolverListen, ResolverStats, Secret, USER};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// Answers by the argument: `len:<n>` with a value of n bytes, and each failure by its name.
#[derive(Default)]
struct Scripted {
    slow: AtomicBool,
}

#[async_trait]
impl Lookup for Scripted {
    async fn resolve(&self, text: &[u8]) -> Answer {
        if self.slow.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let text = std::str::from_utf8(text).unwrap();
        if let Some(len) = text.strip_prefix("len:") {
            return Answer::Value(value(len.parse().unwrap()));
        }
        match text {
            "corrupt" => Answer::Failed {
                sqlstate: "XX001",
                message: "segment 3 offset 4096: identity differs".into(),
            },
            "io" => Answer::Failed {
                sqlstate: "58030",
                message: "segment 3: read failed".into(),
            },
            "panic" => panic!("scripted panic"),
            _ => Answer::NotAReference,
        }
    }
}

/// Bytes in which every value of a byte occurs.
fn value(len: usize) -> Bytes {
    (0..len).map(|n| (n * 7 + n / 256) as u8).collect()
}

struct Running {
    address: ResolverListen,
    lookup: Arc<Scripted>,
    counters: Arc<Counters>,
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
}

impl Running {
    async fn start(limits: Limits) -> Running {
        let tcp = ResolverListen::Tcp("127.0.0.1:0".parse().unwrap());
        Running::start_at(tcp, limits).await
    }

    async fn start_at(address: ResolverListen, limits: Limits) -> Running {
        let lookup = Arc::new(Scripted::default());
        let secret = Secret::new(SECRET).unwrap();
        let shared: Arc<dyn Lookup> = Arc::clone(&lookup) as Arc<dyn Lookup>;
        let resolver = Resolver::bind_over(address, secret, shared, limits)
            .await
            .unwrap();
        let address = resolver.local_address().clone();
        let counters = resolver.counters();
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(resolver.serve(shutdown.clone()));
        Running {
            address,
            lookup,
            counters,
            shutdown,
            serving,
        }
    }

    fn stats(&self) -> ResolverStats {
        self.counters.snapshot()
    }

    /// Waits until the counters are as wanted; connections end a moment after their peer.
    async fn wait_for(&self, wanted: impl Fn(&ResolverStats) -> bool) {
        for _ in 0..500 {
            if wanted(&self.stats()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("never came: {:?}", self.stats());
    }

    fn conninfo(&self) -> String {
        self.conninfo_as(USER, SECRET)
    }

    fn conninfo_as(&self, user: &str, password: &str) -> String {
        let (host, port) = self.address.host_and_port();
        format!("host={host} port={port} user={user} password={password} dbname=any")
    }
}

fn resolve(argument: &str) -> String {
    format!("select toastrack.resolve('{argument}')")
}
