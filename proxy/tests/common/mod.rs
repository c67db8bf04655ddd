//! A private Postgres with the schema installed, and a proxy in front of it, in this process.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod disk;
pub(crate) mod raw;
pub(crate) mod values;

use std::sync::Arc;
use std::time::Duration;

use toastrack_cache::DetoastCache;
use toastrack_migrations::{ResolverAddress, ServerSettings};
use toastrack_offload::{Store, StoreOptions};
use toastrack_proxy::{
    ControlOptions, Metrics, Proxy, ProxyOptions, ServerAddress, ServerTls, Services,
};
use toastrack_resolver::{Limits, Resolver, ResolverListen, Secret};
use toastrack_testkit::Cluster;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};
use tokio_util::sync::CancellationToken;

/// Bytes over which values are offloaded, unless a test says otherwise.
pub(crate) const THRESHOLD: u32 = 2048;
/// A database that others are copied from.
const TEMPLATE: &str = "packed_template";
const SECRET: &str = "a-secret-of-the-tests-long-enough";

/// A running rig; what it started ends with it.
pub(crate) struct Rig {
    pub(crate) cluster: Cluster,
    pub(crate) port: u16,
    pub(crate) store: Store,
    pub(crate) cache: DetoastCache,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) directory: tempfile::TempDir,
    /// What the proxy was started with.
    pub(crate) proxy_options: ProxyOptions,
    stop: CancellationToken,
    running: Option<JoinHandle<()>>,
}

/// Makes the disk of a directory.
pub(crate) type DiskOf = fn(&std::path::Path) -> Arc<dyn toastrack_offload::disk::Disk>;

/// How a rig is to be.
pub(crate) struct RigOptions {
    pub(crate) threshold: u32,
    pub(crate) cache_bytes: u64,
    pub(crate) drain_timeout: Duration,
    pub(crate) max_sessions: usize,
    /// Over which disk the store is opened, if not the real one.
    pub(crate) disk: Option<DiskOf>,
    /// Lines before those of pg_hba.conf that trust everybody.
    pub(crate) hba_lines: Vec<String>,
    /// Settings of the server.
    pub(crate) settings: Vec<(&'static str, String)>,
    /// Files in the server's data directory.
    pub(crate) data_files: Vec<(&'static str, String)>,
    /// Changes what the proxy is told.
    pub(crate) adjust: Option<Adjust>,
}

/// Changes the options of a proxy in front of a cluster.
pub(crate) type Adjust = Box<dyn FnOnce(&mut ProxyOptions, &Cluster) + Send>;

impl Default for RigOptions {
    fn default() -> RigOptions {
        RigOptions {
            threshold: THRESHOLD,
            cache_bytes: 64 << 20,
            drain_timeout: Duration::from_secs(2),
            max_sessions: 200,
            disk: None,
            hba_lines: Vec::new(),
            settings: Vec::new(),
            data_files: Vec::new(),
            adjust: None,
        }
    }
}

impl Rig {
    /// Starts with the usual settings.
    pub(crate) async fn start() -> Rig {
        Rig::with(RigOptions::default()).await
    }

    /// A rig that lives as long as the test process, on a runtime of its own.
    pub(crate) fn shared(options: RigOptions) -> Rig {
        let started = std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("a runtime");
            let rig = runtime.block_on(Rig::with(options));
            std::mem::forget(runtime);
            rig
        });
        started.join().expect("the rig starts")
    }

    /// Starts with settings of one's own.
    pub(crate) async fn with(options: RigOptions) -> Rig {
        let mut builder = Cluster::builder();
        for line in &options.hba_lines {
            builder = builder.hba_line(line);
        }
        for (name, value) in &options.settings {
            builder = builder.setting(name, value);
        }
        for (name, content) in options.data_files {
            builder = builder.data_file(name, content);
        }
        let cluster = builder.start().expect("a private Postgres");
        let directory = tempfile::tempdir().expect("a directory");
        let store_options = StoreOptions {
            directory: directory.path().join("store"),
            segment_len_bytes: 16 << 20,
            failure_pause: Duration::from_millis(500),
            ..StoreOptions::default()
        };
        let store = match options.disk {
            Some(disk) => Store::open_on(disk(&store_options.directory), store_options),
            None => Store::open(store_options),
        }
        .expect("a store");
        let cache = DetoastCache::new(options.cache_bytes);
        let stop = CancellationToken::new();
        let resolver = serve_resolver(&store, &cache, &stop).await;
        cluster.create_database(TEMPLATE).expect("creates");
        for database in ["postgres", TEMPLATE] {
            install(&cluster, database, resolver.clone()).await;
        }
        let metrics = Arc::new(Metrics::default());
        let mut proxy_options = ProxyOptions {
            listen: ([127, 0, 0, 1], 0).into(),
            listen_unix: None,
            listen_tls: None,
            server: ServerAddress::Unix(cluster.socket_path()).into(),
            server_tls: ServerTls::default(),
            control: ControlOptions {
                user: "postgres".to_owned(),
                password: None,
            },
            threshold: options.threshold,
            max_sessions: options.max_sessions,
            startup_timeout: Duration::from_secs(10),
            drain_timeout: options.drain_timeout,
        };
        if let Some(adjust) = options.adjust {
            adjust(&mut proxy_options, &cluster);
        }
        let services = Services {
            store: store.clone(),
            cache: cache.clone(),
            metrics: Arc::clone(&metrics),
        };
        let proxy = Proxy::bind(proxy_options.clone(), services)
            .await
            .expect("a free port");
        let port = proxy.local_addr().expect("an address").port();
        let running = Some(tokio::spawn(proxy.run(stop.clone())));
        Rig {
            cluster,
            port,
            store,
            cache,
            metrics,
            directory,
            proxy_options,
            stop,
            running,
        }
    }

    /// Starts a second proxy with options that differ, on a port of its own; it ends with the first.
    pub(crate) async fn another(
        &self,
        adjust: impl FnOnce(&mut ProxyOptions),
    ) -> Result<(u16, toastrack_proxy::Reload), toastrack_proxy::ProxyError> {
        let mut options = self.proxy_options.clone();
        adjust(&mut options);
        let services = Services {
            store: self.store.clone(),
            cache: self.cache.clone(),
            metrics: Arc::clone(&self.metrics),
        };
        let proxy = Proxy::bind(options, services).await?;
        let port = proxy.local_addr().expect("an address").port();
        let reload = proxy.reload_handle();
        tokio::spawn(proxy.run(self.stop.clone()));
        Ok((port, reload))
    }

    /// Makes a database with the schema installed.
    pub(crate) fn create_packed(&self, name: &str) {
        let sql = format!("create database {name} template {TEMPLATE}");
        self.cluster.execute("postgres", &sql).expect("creates");
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

    /// A raw frontend on Postgres itself.
    pub(crate) fn raw_direct(&self, database: &str) -> raw::Raw {
        raw::Raw::connect(self.cluster.port(), database)
    }

    /// A raw frontend on the proxy.
    pub(crate) fn raw_through(&self, database: &str) -> raw::Raw {
        raw::Raw::connect(self.port, database)
    }

    /// Asks the proxy to stop, without waiting.
    pub(crate) fn begin_stop(&self) {
        self.stop.cancel();
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

/// Serves what the functions in the server ask for.
async fn serve_resolver(
    store: &Store,
    cache: &DetoastCache,
    stop: &CancellationToken,
) -> ResolverAddress {
    let resolver = Resolver::bind(
        ResolverListen::Tcp(([127, 0, 0, 1], 0).into()),
        Secret::new(SECRET).expect("a secret"),
        store.clone(),
        cache.clone(),
        Limits::default(),
    )
    .await
    .expect("a resolver");
    let (host, port) = resolver.local_address().host_and_port();
    tokio::spawn(resolver.serve(stop.clone()));
    ResolverAddress {
        host,
        port,
        secret: SECRET.to_owned(),
    }
}

async fn install(cluster: &Cluster, database: &str, resolver: ResolverAddress) {
    let mut client = connect(&cluster.connection_string(database)).await;
    let settings = ServerSettings {
        store_directory: None,
        resolver: Some(resolver),
    };
    toastrack_migrations::install(&mut client, &settings)
        .await
        .expect("the schema installs");
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

/// Resident memory of this process, of which the proxy is a part, in bytes.
pub(crate) fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.and_then(|kib| kib.parse::<usize>().ok())
        .expect("a number")
        * 1024
}
