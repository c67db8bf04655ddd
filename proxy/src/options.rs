//! What a proxy is told when it starts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toastrack_cache::DetoastCache;
use toastrack_offload::Store;

use crate::Metrics;
use crate::tls::{ListenTls, ServerTls};

/// Settings of one proxy.
#[derive(Clone, Debug)]
pub struct ProxyOptions {
    /// Where frontends connect; port 0 takes a free one.
    pub listen: SocketAddr,
    /// A Unix socket that frontends may use as well.
    pub listen_unix: Option<UnixListen>,
    /// TLS with clients; None declines it.
    pub listen_tls: Option<ListenTls>,
    /// The PostgreSQL server behind the proxy.
    pub server: Servers,
    /// TLS with the server, for sessions, cancel requests and the proxy's own connections.
    pub server_tls: ServerTls,
    /// How the proxy itself connects, to read the catalog.
    pub control: ControlOptions,
    /// Bytes from which a value leaves the row, where a column says nothing else.
    pub threshold: u32,
    /// Sessions at a time; further ones are refused with 53300.
    pub max_sessions: usize,
    /// From accept to the start-up packet.
    pub startup_timeout: Duration,
    /// From the signal to stop until sessions that are still busy are cut.
    pub drain_timeout: Duration,
}

/// A Unix socket to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixListen {
    /// A directory, in which the file is named after the port of the TCP listener as libpq looks for
    /// it, `.s.PGSQL.6432`; or the path of a file whose name begins in that way.
    pub path: PathBuf,
    /// Permissions of the file, at most 0o777. Connecting takes the right to write.
    pub mode: u32,
}

impl UnixListen {
    /// The socket file, beside a TCP listener on `port`.
    #[must_use]
    pub fn file(&self, port: u16) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default();
        if name.as_encoded_bytes().starts_with(SOCKET_NAME.as_bytes()) {
            self.path.clone()
        } else {
            self.path.join(format!("{SOCKET_NAME}{port}"))
        }
    }
}

/// How the names of Postgres' sockets begin; the port follows.
const SOCKET_NAME: &str = ".s.PGSQL.";

/// One server, or several that are copies of one another: a primary and its standbys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Servers {
    /// Tried in this order; at least one.
    pub addresses: Vec<ServerAddress>,
    /// Which of them a session takes.
    pub target: TargetSession,
}

impl From<ServerAddress> for Servers {
    fn from(address: ServerAddress) -> Servers {
        Servers {
            addresses: vec![address],
            target: TargetSession::Any,
        }
    }
}

/// libpq's `target_session_attrs`. Whether a server is a standby, and whether its transactions are
/// read-only from the start, is asked as the control role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetSession {
    /// The first that takes a connection.
    #[default]
    Any,
    /// A server that takes writes.
    ReadWrite,
    /// A server that takes none.
    ReadOnly,
    /// A server that is no standby.
    Primary,
    /// A standby.
    Standby,
    /// A standby if there is one, else any.
    PreferStandby,
}

/// Where the server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// Host name or address, and port.
    Tcp(String, u16),
    /// Path of the socket, `/var/run/postgresql/.s.PGSQL.5432`.
    Unix(PathBuf),
}

impl std::fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ServerAddress::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            ServerAddress::Tcp(host, port) => write!(f, "{host}:{port}"),
            ServerAddress::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The role of the proxy's own connections, one for each database in use.
#[derive(Clone)]
pub struct ControlOptions {
    /// Any role that may connect and read the system catalog.
    pub user: String,
    /// Its password, where the server asks for one.
    pub password: Option<String>,
}

impl std::fmt::Debug for ControlOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControlOptions")
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "***"))
            .finish()
    }
}

/// What a proxy works with and shares with others.
#[derive(Clone)]
pub struct Services {
    /// Where values go.
    pub store: Store,
    /// Where values are found first.
    pub cache: DetoastCache,
    /// What is counted.
    pub metrics: Arc<Metrics>,
}
