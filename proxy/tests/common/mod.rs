//! A private Postgres with the schema installed, and a proxy in front of it, in this process.

use std::sync::Arc;
use std::time::Duration;

use toastrack_cache::DetoastCache;
use toastrack_migrations::ServerSettings;
use toastrack_offload::{Store, StoreOptions};
use toastrack_proxy::{ControlOptions, Metrics, Proxy, ProxyOptions, ServerAddress, Services};
use toastrack_testkit::Cluster;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};
use tokio_util::sync::CancellationToken;

/// Bytes over which values are offloaded, unless a test says otherwise.
pub(crate) const THRESHOLD: u32 = 2048;

/// A running rig; what it started ends with it.
pub(crate) struct Rig {
    pub(crate) cluster: Cluster,
    pub(crate) port: u16,
    pub(crate) store: Store,
    pub(crate) cache: DetoastCache,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) directory: tempfile::TempDir,
    stop: CancellationToken,
    running: Option<JoinHandle<()>>,
}

impl Rig {
    /// Starts with the usual threshold.
    pub(crate) async fn start() -> Rig {
        Rig::with_threshold(THRESHOLD).await
    }

    /// Starts with a threshold in bytes.
    pub(crate) async fn with_threshold(threshold: u32) -> Rig {
        let cluster = Cluster::start().expect("a private Postgres");
        let mut direct = connect(&cluster.connection_string("postgres")).await;
        toastrack_migrations::install(&mut direct, &ServerSettings::default())
            .await
            .expect("the schema installs");
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::open(StoreOptions {
            directory: directory.path().join("store"),
            segment_len_bytes: 16 << 20,
            ..StoreOptions::default()
        })
        .expect("a store");
        let cache = DetoastCache::new(64 << 20);
        let metrics = Arc::new(Metrics::default());
        let options = ProxyOptions {
            listen: ([127, 0, 0, 1], 0).into(),
            listen_unix: None,
            server: ServerAddress::Unix(cluster.socket_path()),
            control: ControlOptions {
                user: "postgres".to_owned(),
                password: None,
            },
            threshold,
            max_sessions: 200,
            startup_timeout: Duration::from_secs(10),
            drain_timeout: Duration::from_secs(2),
        };
        let services = Services {
            store: store.clone(),
            cache: cache.clone(),
            metrics: Arc::clone(&metrics),
        };
        let proxy = Proxy::bind(options, services).await.expect("a free port");
        let port = proxy.local_addr().expect("an address").port();
        let stop = CancellationToken::new();
        let running = Some(tokio::spawn(proxy.run(stop.clone())));
        Rig {
            cluster,
            port,
            store,
            cache,
            metrics,
            directory,
            stop,
            running,
        }
    }

    /// Connects straight to Postgres.
    pub(crate) async fn direct(&self) -> Client {
        connect(&self.cluster.connection_string("postgres")).await
    }

    /// Connects through the proxy.
    pub(crate) async fn through(&self) -> Client {
        connect(&self.through_string()).await
    }

    /// What [`Rig::through`] connects with.
    pub(crate) fn through_string(&self) -> String {
        format!(
            "host=127.0.0.1 port={} user=postgres dbname=postgres",
            self.port
        )
    }

    /// Stops the proxy and waits for it.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        if let Some(running) = self.running.take() {
            running.await.expect("the proxy ends");
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Connects and drives the connection in a task of its own.
pub(crate) async fn connect(conninfo: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(conninfo, NoTls)
        .await
        .expect("connects");
    tokio::spawn(async move {
        // Ends with an error where a test kills the backend.
        let _ = connection.await;
    });
    client
}
