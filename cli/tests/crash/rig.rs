//! A private Postgres with an offloaded table, and the sidecar in front of it, again and again.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use toastrack_testkit::Cluster;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

use crate::common::{succeed, toastrack};
use crate::model::Ledger;
use crate::random::Random;
use crate::server::{Serving, write_config};
use crate::writer::{Writer, Written};

/// How sessions of writers are found in the server.
const NAME: &str = "crash-writer";
const PATIENCE: Duration = Duration::from_secs(60);

/// See the module.
pub(crate) struct Rig {
    pub(crate) direct: Client,
    pub(crate) config: PathBuf,
    pub(crate) store: PathBuf,
    directory: TempDir,
    _cluster: Cluster,
}

/// Writers at work.
pub(crate) struct Load {
    tasks: Vec<JoinHandle<Written>>,
    ending: Arc<AtomicBool>,
}

impl Rig {
    /// Small segments, a cache that does not hold all, and these lines at the end of the
    /// configuration.
    pub(crate) async fn start(more: &str) -> Rig {
        let cluster = Cluster::start().unwrap();
        let database = cluster.connection_string("postgres");
        cluster
            .execute(
                "postgres",
                "create table docs(id bigint primary key, txn bigint not null,
                                   body text, data jsonb, raw bytea)",
            )
            .unwrap();
        succeed(&["install", "-d", &database]);
        for column in ["docs.body", "docs.data", "docs.raw"] {
            succeed(&["offload", column, "-d", &database, "--threshold", "1KiB"]);
        }
        let directory = tempfile::tempdir().unwrap();
        let more = format!("[cache]\nsize = \"8 MiB\"\n{more}");
        let server = cluster.socket_path().display().to_string();
        let config = write_config(directory.path(), &server, &more);
        let text = fs::read_to_string(&config).unwrap();
        let small = text.replacen("segment_size = \"4 MiB\"", "segment_size = \"1 MiB\"", 1);
        assert_ne!(small, text);
        fs::write(&config, small).unwrap();
        Rig {
            direct: connect(&database).await,
            config,
            store: directory.path().join("store"),
            directory,
            _cluster: cluster,
        }
    }

    pub(crate) fn serve(&self) -> Serving {
        Serving::start(&self.config)
    }

    /// Starts the sidecar and kills it while it is starting.
    pub(crate) fn kill_at_start(&self, after: Duration) {
        let mut child = toastrack()
            .args(["serve", "--config"])
            .arg(&self.config)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(after);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// A session through the sidecar.
    pub(crate) async fn through(&self, serving: &Serving) -> Client {
        connect(&through(serving)).await
    }

    /// Starts a writer for each ledger.
    pub(crate) async fn load(&self, serving: &Serving, ledgers: Vec<Ledger>, seed: u64) -> Load {
        let ending = Arc::new(AtomicBool::new(false));
        let mut tasks = Vec::new();
        for (writer, ledger) in (0u64..).zip(ledgers) {
            let writer = Writer {
                client: connect(&through(serving)).await,
                ledger,
                random: Random::new(seed, writer),
                ending: Arc::clone(&ending),
                acknowledged: 0,
            };
            tasks.push(tokio::spawn(writer.run()));
        }
        Load { tasks, ending }
    }

    /// Waits until the server has noticed that the writers are gone.
    pub(crate) async fn sessions_ended(&self) {
        let started = Instant::now();
        let count = "select count(*) from pg_stat_activity where application_name = $1";
        while self
            .direct
            .query_one(count, &[&NAME])
            .await
            .unwrap()
            .get::<_, i64>(0)
            > 0
        {
            assert!(started.elapsed() < PATIENCE, "sessions stay in the server");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// What it counts now.
    pub(crate) fn metrics(&self, serving: &Serving) -> Metrics {
        let token = fs::read_to_string(self.directory.path().join("admin-token")).unwrap();
        let (status, text) = serving.get("/metrics", Some(token.trim()));
        assert!(status.contains("200"), "{status}");
        Metrics(text)
    }
}

impl Load {
    /// From now on a lost connection is no failure.
    pub(crate) fn expect_end(&self) {
        self.ending.store(true, Ordering::SeqCst);
    }

    /// Waits for the writers; their ledgers, and how many transactions were acknowledged.
    ///
    /// # Errors
    /// What a writer found wrong.
    pub(crate) async fn end(self) -> Result<(Vec<Ledger>, u64), String> {
        let mut ledgers = Vec::new();
        let mut acknowledged = 0;
        for (number, task) in self.tasks.into_iter().enumerate() {
            let written = task.await.unwrap();
            written
                .ended
                .map_err(|wrong| format!("writer {number}: {wrong}"))?;
            ledgers.push(written.ledger);
            acknowledged += written.acknowledged;
        }
        Ok((ledgers, acknowledged))
    }
}

/// What `/metrics` answered.
pub(crate) struct Metrics(String);

/// Each of them counts values that somebody did not get.
const ERRORS: [&str; 3] = [
    "toastrack_proxy_resolve_errors_total",
    "toastrack_store_read_errors_total",
    "toastrack_resolver_errors_total",
];

impl Metrics {
    /// # Panics
    /// When there is no such metric.
    pub(crate) fn value(&self, name: &str) -> u64 {
        let line = self
            .0
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is not in {}", self.0))
            .parse()
            .unwrap()
    }

    /// A metric that counts failed reads and is not 0.
    pub(crate) fn error(&self) -> Option<String> {
        ERRORS
            .iter()
            .map(|name| (name, self.value(name)))
            .find(|(_, value)| *value != 0)
            .map(|(name, value)| format!("{name} is {value}"))
    }
}

fn through(serving: &Serving) -> String {
    let (host, port) = serving.proxy.split_once(':').unwrap();
    format!("host={host} port={port} user=postgres dbname=postgres application_name={NAME}")
}

async fn connect(conninfo: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(conninfo, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
