//! A private durable server, and Toastrack in front of it, in this process.
//!
//! Owns:     the cluster, its directory with the store in it, and the running sidecar.
//! Promises: after [`Environment::stop`] nothing is left; if this process is killed,
//!           the cluster's watcher removes the server and the directory all the same.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use toastrack_testkit::Cluster;
use tokio::task::JoinHandle;
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, Group, ResolverListen, ServerLocation};
use crate::database::connect;
use crate::error::CommandError;
use crate::sidecar::{Addresses, Shared, Sidecar, server_settings};

/// The database that the demo uses.
pub(crate) const DATABASE: &str = "demo";

/// A server, and Toastrack in front of it.
pub(crate) struct Environment {
    cluster: Cluster,
    addresses: Addresses,
    token_file: PathBuf,
    shared: Shared,
    shutdown: CancellationToken,
    serving: JoinHandle<Result<(), CommandError>>,
}

impl Environment {
    /// Starts both, and installs the schema.
    ///
    /// # Errors
    /// `Failed` when there are no server binaries, naming the package to install; whatever
    /// else keeps a part from starting.
    pub(crate) async fn start() -> Result<Environment, CommandError> {
        let builder = Cluster::builder()
            .durable(true)
            .setting("shared_buffers", "256MB");
        let cluster = tokio::task::spawn_blocking(|| builder.start())
            .await
            .map_err(CommandError::failed)?
            .map_err(CommandError::failed)?;
        let config = configure(&cluster)?;
        let sidecar = Sidecar::start(&config).await?;
        let addresses = sidecar.addresses().clone();
        let shared = sidecar.shared();
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(sidecar.run(shutdown.clone()));
        let environment = Environment {
            cluster,
            addresses,
            token_file: config.admin.token_file.clone(),
            shared,
            shutdown,
            serving,
        };
        match environment.install(&config).await {
            Ok(()) => Ok(environment),
            Err(error) => {
                environment.stop().await?;
                Err(error)
            }
        }
    }

    async fn install(&self, config: &Config) -> Result<(), CommandError> {
        self.cluster
            .create_database(DATABASE)
            .map_err(CommandError::failed)?;
        let settings = server_settings(config, Some(&self.addresses.resolver))?;
        let mut client = self.direct().await?;
        toastrack_migrations::install(&mut client, &settings)
            .await
            .map_err(CommandError::failed)?;
        use_lz4(&client).await
    }

    /// Connects to the server itself.
    pub(crate) async fn direct(&self) -> Result<Client, CommandError> {
        connect_url(&self.direct_url()).await
    }

    /// Connects through Toastrack.
    pub(crate) async fn through(&self) -> Result<Client, CommandError> {
        connect_url(&self.toastrack_url()).await
    }

    /// The connection string of the server itself.
    pub(crate) fn direct_url(&self) -> String {
        let server = SocketAddr::from(([127, 0, 0, 1], self.cluster.port()));
        format!(
            "postgres://{}@{server}/{DATABASE}",
            self.cluster.superuser()
        )
    }

    /// The connection string of Toastrack.
    pub(crate) fn toastrack_url(&self) -> String {
        let proxy = self.addresses.proxy;
        format!("postgres://{}@{proxy}/{DATABASE}", self.cluster.superuser())
    }

    pub(crate) fn admin_url(&self) -> String {
        format!("http://{}", self.addresses.admin)
    }

    pub(crate) fn token_file(&self) -> &Path {
        &self.token_file
    }

    /// What the store and the cache count.
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Drains Toastrack, stops the server, removes both.
    ///
    /// # Errors
    /// `Failed` when a part of Toastrack ended by a panic.
    pub(crate) async fn stop(self) -> Result<(), CommandError> {
        self.shutdown.cancel();
        let ended = self.serving.await.map_err(CommandError::failed);
        drop(self.shared);
        tokio::task::spawn_blocking(|| drop(self.cluster))
            .await
            .map_err(CommandError::failed)?;
        ended?
    }
}

/// A configuration on free ports, with everything in the cluster's directory.
fn configure(cluster: &Cluster) -> Result<Config, CommandError> {
    let directory = cluster.base_dir().join("toastrack");
    // The server reads segments beneath it by itself.
    fs::create_dir(&directory)
        .and_then(|()| fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)))
        .map_err(CommandError::io("create", &directory))?;
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let (_, gid) = cluster.server_uid_gid();
    let mut config = Config::defaults()?;
    config.listen.address = any_port;
    config.server.addresses = vec![ServerLocation::Unix(cluster.socket_path())];
    config.control.user = cluster.superuser().to_owned();
    config.store.directory = directory.join("store");
    config.store.segment_size = 64 << 20;
    config.store.server_group = Some(Group {
        name: gid.to_string(),
        gid,
    });
    config.resolver.listen = ResolverListen::Tcp(any_port);
    config.resolver.secret_file = directory.join("resolver-secret");
    config.admin.address = any_port;
    config.admin.token_file = directory.join("admin-token");
    config.limits.drain_timeout = std::time::Duration::from_secs(5);
    Ok(config)
}

/// The faster compression for the plain table, where the server was built with it.
async fn use_lz4(client: &Client) -> Result<(), CommandError> {
    client
        .batch_execute(&format!(
            "DO $$ BEGIN \
             IF (SELECT 'lz4' = ANY (enumvals) FROM pg_catalog.pg_settings \
                 WHERE name = 'default_toast_compression') THEN \
             ALTER DATABASE {DATABASE} SET default_toast_compression = lz4; \
             END IF; END $$"
        ))
        .await
        .map_err(CommandError::database("choose lz4"))
}

async fn connect_url(url: &str) -> Result<Client, CommandError> {
    connect(&url.parse().map_err(CommandError::database("connect"))?).await
}
