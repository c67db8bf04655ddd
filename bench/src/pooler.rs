//! pgbouncer in front of the same Postgres: what a proxy costs that looks at nothing.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use toastrack_testkit::Cluster;

use crate::endpoint::Endpoint;
use crate::error::BenchError;
use crate::servers::DATABASE;
use crate::sidecar::{free_address, stop};

/// A running pgbouncer in session mode; stopped when dropped.
#[derive(Debug)]
pub(crate) struct Pooler {
    child: Child,
    endpoint: Endpoint,
}

impl Pooler {
    /// Starts pgbouncer, which reaches Postgres by its Unix socket, as the sidecar does.
    ///
    /// Blocks until it takes connections.
    ///
    /// # Errors
    /// `Pooler` when there is no pgbouncer or it does not start, or `Io`.
    pub(crate) fn start(cluster: &Cluster, directory: &Path) -> Result<Pooler, BenchError> {
        let port = free_address()?.port();
        let config = directory.join("pgbouncer.ini");
        fs::write(&config, configuration(cluster, port))
            .map_err(BenchError::io(format!("write {}", config.display())))?;
        let log_path = directory.join("pgbouncer.log");
        let log = File::create(&log_path)
            .map_err(BenchError::io(format!("create {}", log_path.display())))?;
        let (uid, gid) = cluster.server_uid_gid();
        // Debian keeps it where only root's PATH leads.
        let path = format!(
            "{}:/usr/sbin:/usr/local/sbin",
            std::env::var("PATH").unwrap_or_default()
        );
        // It refuses to run as root, and so takes the configuration from its standard input.
        let child = Command::new("pgbouncer")
            .env("PATH", path)
            .arg("/dev/stdin")
            .uid(uid)
            .gid(gid)
            .stdin(File::open(&config).map_err(BenchError::io("open pgbouncer.ini"))?)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| {
                BenchError::Pooler(format!("{error}; install the package pgbouncer"))
            })?;
        let mut pooler = Pooler {
            child,
            endpoint: Endpoint::new(port, cluster.socket_dir()),
        };
        pooler.wait_until_ready(port, &log_path)?;
        Ok(pooler)
    }

    fn wait_until_ready(&mut self, port: u16, log: &Path) -> Result<(), BenchError> {
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Ok(());
            }
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let said = fs::read_to_string(log).unwrap_or_default();
        Err(BenchError::Pooler(format!("did not start: {said}")))
    }

    /// Where clients connect.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}

fn configuration(cluster: &Cluster, port: u16) -> String {
    let sockets = cluster.socket_dir().display();
    format!(
        "[databases]\n\
         {DATABASE} = host={sockets} port={} user={}\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir = {sockets}\n\
         auth_type = any\n\
         pool_mode = session\n\
         default_pool_size = 200\n\
         max_client_conn = 300\n\
         log_connections = 0\n\
         log_disconnections = 0\n",
        cluster.port(),
        cluster.superuser(),
    )
}
