//! Where clients connect.

use std::path::{Path, PathBuf};

use toastrack_testkit::Cluster;
use tokio_postgres::Config;

use crate::args::Transport;
use crate::servers::DATABASE;

/// A port on loopback, and the directory of the Unix socket of the same number.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    port: u16,
    socket_directory: PathBuf,
}

impl Endpoint {
    /// A server that listens on both.
    pub(crate) fn new(port: u16, socket_directory: &Path) -> Endpoint {
        Endpoint {
            port,
            socket_directory: socket_directory.to_owned(),
        }
    }

    /// Postgres itself.
    pub(crate) fn of(cluster: &Cluster) -> Endpoint {
        Endpoint::new(cluster.port(), cluster.socket_dir())
    }

    /// The port, and what libpq takes for a host.
    pub(crate) fn port_and_host(&self, transport: Transport) -> (u16, String) {
        let host = match transport {
            Transport::Unix => self.socket_directory.display().to_string(),
            Transport::Tcp => "127.0.0.1".to_owned(),
        };
        (self.port, host)
    }

    /// How `user` connects to the benchmark's database.
    pub(crate) fn config(&self, user: &str, transport: Transport) -> Config {
        let mut config = Config::new();
        match transport {
            Transport::Unix => config.host_path(&self.socket_directory),
            Transport::Tcp => config.host("127.0.0.1"),
        };
        config.port(self.port).user(user).dbname(DATABASE);
        config
    }
}
