//! Looks now and then whether the Postgres server, or one of several, takes connections.

use std::time::Duration;

use toastrack_proxy::ServerAddress;
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const INTERVAL: Duration = Duration::from_secs(2);
const TIMEOUT: Duration = Duration::from_secs(5);

/// What the last look found: nothing yet, all well, or what was wrong.
pub(super) type Outcome = Option<Result<(), String>>;

/// Connects to the server at an interval, without saying a word; the server does not
/// log such connections.
pub(super) struct Probe {
    servers: Vec<ServerAddress>,
    outcome: watch::Sender<Outcome>,
}

impl Probe {
    pub(super) fn new(servers: Vec<ServerAddress>) -> Probe {
        Probe {
            servers,
            outcome: watch::Sender::new(None),
        }
    }

    pub(super) fn outcome(&self) -> watch::Receiver<Outcome> {
        self.outcome.subscribe()
    }

    pub(super) async fn run(self, shutdown: CancellationToken) {
        let look = async {
            loop {
                let found = self.look().await;
                self.outcome.send_replace(Some(found));
                tokio::time::sleep(INTERVAL).await;
            }
        };
        // Cancel-safe: a look that is dropped has changed nothing.
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = look => {}
        }
    }

    async fn look(&self) -> Result<(), String> {
        let mut reasons = Vec::new();
        for server in &self.servers {
            match reach(server).await {
                Ok(()) => return Ok(()),
                Err(reason) if self.servers.len() == 1 => return Err(reason),
                Err(reason) => reasons.push(format!("{server}: {reason}")),
            }
        }
        Err(reasons.join("; "))
    }
}

async fn reach(server: &ServerAddress) -> Result<(), String> {
    let connect = async {
        match server {
            ServerAddress::Tcp(host, port) => {
                TcpStream::connect((host.as_str(), *port)).await.map(drop)
            }
            ServerAddress::Unix(path) => UnixStream::connect(path).await.map(drop),
        }
    };
    match timeout(TIMEOUT, connect).await {
        Ok(connected) => connected.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s", TIMEOUT.as_secs())),
    }
}
