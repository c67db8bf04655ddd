//! The way to the server: TCP, TLS as set, or a Unix socket; and to which of several.
//!
//! Promises: what a session needs to know of its server, it asks this server and not another.
//! Source:   <https://www.postgresql.org/docs/15/libpq-ssl.html>,
//!           <https://www.postgresql.org/docs/15/libpq-connect.html>, `target_session_attrs`

use std::io;
use std::time::Duration;

use toastrack_wire::startup::encode_ssl_request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, timeout};
use tokio_postgres::{Client, NoTls};

use crate::options::{ControlOptions, ServerAddress, Servers, TargetSession};
use crate::server::{Socket, without_delay};
use crate::tls::{Connector, ServerTls, TlsError};

/// Connects to the server.
pub struct Upstream {
    servers: Vec<Server>,
    target: TargetSession,
    connector: Option<Connector>,
    control: ControlOptions,
}

/// One of the servers.
struct Server {
    address: ServerAddress,
    /// What it last said of itself, and the connection to ask it again.
    role: tokio::sync::Mutex<Asked>,
}

/// A server's place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ServerNumber(usize);

impl Upstream {
    /// Reads the files that TLS needs. Nothing is connected.
    ///
    /// # Errors
    /// When one cannot be used.
    pub fn new(
        servers: &Servers,
        tls: &ServerTls,
        control: &ControlOptions,
    ) -> Result<Upstream, TlsError> {
        let server = |address: &ServerAddress| Server {
            address: address.clone(),
            role: tokio::sync::Mutex::default(),
        };
        Ok(Upstream {
            servers: servers.addresses.iter().map(server).collect(),
            target: servers.target,
            connector: Connector::load(tls)?,
            control: control.clone(),
        })
    }

    /// Reads the files again, for connections from now on.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        self.connector.as_ref().map_or(Ok(()), Connector::reload)
    }

    /// Connects for a session, to the first server that is as it is to be.
    pub(crate) async fn connect(&self) -> io::Result<(Socket, ServerNumber)> {
        use TargetSession::{Any, PreferStandby, Standby};
        let passes = match self.target {
            PreferStandby => &[Standby, Any][..],
            ref other => std::slice::from_ref(other),
        };
        let mut reasons = Vec::new();
        for target in passes {
            for (number, server) in self.numbered() {
                match self.connect_if(number, *target).await {
                    Ok(socket) => return Ok((socket, number)),
                    Err(error) if self.servers.len() == 1 => return Err(error),
                    Err(error) => reasons.push(format!("{}: {error}", server.address)),
                }
            }
        }
        Err(io::Error::other(reasons.join("; ")))
    }

    fn numbered(&self) -> impl Iterator<Item = (ServerNumber, &Server)> {
        let numbered = self.servers.iter().enumerate();
        numbered.map(|(number, server)| (ServerNumber(number), server))
    }

    async fn connect_if(&self, number: ServerNumber, target: TargetSession) -> io::Result<Socket> {
        if target != TargetSession::Any {
            let role = self.role(number).await.map_err(io::Error::other)?;
            if let Some(reason) = role.is_not(target) {
                return Err(io::Error::other(reason));
            }
        }
        self.connect_to(number).await
    }

    /// Sends a cancel request to every server, since only its own knows the key, and waits until all
    /// that can be reached have taken it.
    pub(crate) async fn cancel(&self, frame: &[u8]) -> io::Result<()> {
        let one = async |number: ServerNumber| {
            let mut socket = self.connect_to(number).await?;
            socket.write_all(frame).await?;
            socket.flush().await?;
            let mut end = [0; 1];
            while socket.read(&mut end).await? > 0 {}
            Ok(())
        };
        let all = self.numbered().map(|(number, _)| one(number));
        let taken: Vec<io::Result<()>> = futures::future::join_all(all).await;
        match taken.iter().any(Result::is_ok) {
            true => Ok(()),
            false => taken.into_iter().collect(),
        }
    }

    /// What a server is, as it says itself; not older than [`FRESH`].
    async fn role(&self, number: ServerNumber) -> Result<Role, String> {
        let mut asked = self.servers[number.0].role.lock().await;
        if let Some((at, role)) = &asked.answer
            && at.elapsed() < FRESH
        {
            return role.clone();
        }
        let role = match timeout(ROLE_TIMEOUT, self.ask_role(number, &mut asked.client)).await {
            Ok(role) => role,
            Err(_) => Err("timeout expired".to_owned()),
        };
        if role.is_err() {
            asked.client = None;
        }
        asked.answer = Some((Instant::now(), role.clone()));
        role
    }

    async fn ask_role(
        &self,
        number: ServerNumber,
        client: &mut Option<Client>,
    ) -> Result<Role, String> {
        if let Some(client) = client.as_ref().filter(|client| !client.is_closed())
            && let Ok(role) = Role::ask(client).await
        {
            return Ok(role);
        }
        let mut config = tokio_postgres::Config::new();
        config
            .user(&self.control.user)
            .dbname(MAINTENANCE_DATABASE)
            .application_name("toastrack control");
        if let Some(password) = &self.control.password {
            config.password(password);
        }
        let client = client.insert(self.client_of(number, &config).await?);
        Role::ask(client).await.map_err(|error| error.to_string())
    }

    async fn connect_to(&self, number: ServerNumber) -> io::Result<Socket> {
        let limit = match self.servers.len() {
            1 => CONNECT_TIMEOUT,
            _ => CONNECT_TIMEOUT_OF_SEVERAL,
        };
        let address = &self.servers[number.0].address;
        match timeout(limit, self.connect_slowly(address)).await {
            Ok(connected) => connected,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "timeout expired")),
        }
    }

    async fn connect_slowly(&self, address: &ServerAddress) -> io::Result<Socket> {
        match address {
            ServerAddress::Unix(path) => Ok(Socket::Unix(UnixStream::connect(path).await?)),
            ServerAddress::Tcp(host, port) => self.connect_tcp(host, *port).await,
        }
    }

    async fn connect_tcp(&self, host: &str, port: u16) -> io::Result<Socket> {
        let dial = async || TcpStream::connect((host, port)).await.map(without_delay);
        let mut stream = dial().await?;
        let Some(connector) = &self.connector else {
            return Ok(Socket::Tcp(stream));
        };
        match ask_for_tls(&mut stream).await? {
            Answer::Ready => match connector.connect(stream, host).await {
                Ok(stream) => Ok(Socket::Tls(Box::new(stream.into()))),
                Err(error) if connector.is_optional() => {
                    tracing::debug!(%error, "no TLS with the server, connecting without");
                    dial().await.map(Socket::Tcp)
                }
                Err(error) => Err(io::Error::new(error.kind(), format!("TLS error: {error}"))),
            },
            Answer::Refused if connector.is_optional() => Ok(Socket::Tcp(stream)),
            Answer::Refused => Err(io::Error::new(
                io::ErrorKind::ConnectionRefused,
                "server does not support SSL, but SSL was required",
            )),
            // A server that cannot start a process for this connection.
            Answer::Failed if connector.is_optional() => dial().await.map(Socket::Tcp),
            Answer::Failed => Err(io::Error::new(
                io::ErrorKind::ConnectionRefused,
                "server sent an error response during SSL exchange",
            )),
        }
    }

    /// Connects as a client of one's own, over the same way as sessions, to the server that takes
    /// writes where there are several.
    ///
    /// # Errors
    /// What the system or the server said.
    pub async fn client(&self, config: &tokio_postgres::Config) -> Result<Client, String> {
        let mut reasons = Vec::new();
        for (number, server) in self.numbered() {
            let reason = match self.client_of(number, config).await {
                Ok(client) if self.servers.len() == 1 => return Ok(client),
                Ok(client) => match Role::ask(&client).await {
                    Ok(Role { standby: false, .. }) => return Ok(client),
                    Ok(_) => "server is in hot standby mode".to_owned(),
                    Err(error) => error.to_string(),
                },
                Err(error) if self.servers.len() == 1 => return Err(error),
                Err(error) => error,
            };
            reasons.push(format!("{}: {reason}", server.address));
        }
        Err(reasons.join("; "))
    }

    /// The same, to one server. Requests and answers travel in a task of their own.
    pub(crate) async fn client_of(
        &self,
        number: ServerNumber,
        config: &tokio_postgres::Config,
    ) -> Result<Client, String> {
        let socket = self.connect_to(number).await;
        let socket = socket.map_err(|error| error.to_string())?;
        let connected = config.connect_raw(socket, NoTls).await;
        let (client, connection) = connected.map_err(|error| match error.as_db_error() {
            Some(db) => format!("{} ({})", db.message(), db.code().code()),
            None => std::error::Error::source(&error)
                .map_or_else(|| error.to_string(), |source| format!("{error}: {source}")),
        })?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection of our own ended");
            }
        });
        Ok(client)
    }
}

/// Until a server has taken the connection and done its part of a handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The same where the next one may be better.
const CONNECT_TIMEOUT_OF_SEVERAL: Duration = Duration::from_secs(5);
/// Until a server has said what it is.
const ROLE_TIMEOUT: Duration = Duration::from_secs(5);
/// Sessions that start at once ask once.
const FRESH: Duration = Duration::from_millis(200);
/// Where a server is asked what it is: every one has it.
const MAINTENANCE_DATABASE: &str = "postgres";

/// See [`Upstream::role`].
#[derive(Default)]
struct Asked {
    client: Option<Client>,
    answer: Option<(Instant, Result<Role, String>)>,
}

/// What a server is at the moment.
#[derive(Clone, Copy)]
struct Role {
    standby: bool,
    /// Transactions begin as read-only ones on a server that is none.
    read_only: bool,
}

impl Role {
    async fn ask(client: &Client) -> Result<Role, tokio_postgres::Error> {
        let sql = "select pg_catalog.pg_is_in_recovery(), \
            pg_catalog.current_setting('default_transaction_read_only') operator(pg_catalog.=) 'on'";
        let row = client.query_one(sql, &[]).await?;
        Ok(Role {
            standby: row.get(0),
            read_only: row.get(1),
        })
    }

    /// Why a server of this role is none for a session, in libpq's words.
    fn is_not(self, target: TargetSession) -> Option<&'static str> {
        let read_only = self.standby || self.read_only;
        match target {
            TargetSession::ReadWrite if read_only => Some("session is read-only"),
            TargetSession::ReadOnly if !read_only => Some("session is not read-only"),
            TargetSession::Primary if self.standby => Some("server is in hot standby mode"),
            TargetSession::Standby if !self.standby => Some("server is not in hot standby mode"),
            _ => None,
        }
    }
}

/// What a server says to an SSLRequest.
enum Answer {
    Ready,
    Refused,
    Failed,
}

/// Exactly one byte is read: the handshake begins with the next (keeps T1).
async fn ask_for_tls(stream: &mut TcpStream) -> io::Result<Answer> {
    let mut request = Vec::new();
    encode_ssl_request(&mut request);
    stream.write_all(&request).await?;
    match stream.read_u8().await? {
        b'S' => Ok(Answer::Ready),
        b'N' => Ok(Answer::Refused),
        b'E' => Ok(Answer::Failed),
        other => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "received invalid response to SSL negotiation: {}",
                other.escape_ascii()
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::net::TcpListener;

    use super::*;
    use crate::tls::ServerTlsMode;

    fn upstream(address: ServerAddress, tls: &ServerTls) -> Upstream {
        let control = ControlOptions {
            user: "postgres".to_owned(),
            password: None,
        };
        Upstream::new(&address.into(), tls, &control).unwrap()
    }

    /// A server that gives the same answer to every first packet.
    async fn server(answer: &'static [u8]) -> (ServerAddress, Arc<AtomicUsize>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    let mut request = [0; 8];
                    stream.read_exact(&mut request).await?;
                    stream.write_all(answer).await?;
                    stream.read_to_end(&mut Vec::new()).await
                });
            }
        });
        (ServerAddress::Tcp("127.0.0.1".to_owned(), port), accepted)
    }

    /// Proves (CVE-2021-23222) that what a server, or somebody in its place, says in plain text behind
    /// its yes is not taken for what it says in TLS; and that other answers than yes and no are errors.
    #[tokio::test]
    async fn nothing_before_the_handshake_counts() {
        let require = ServerTls {
            mode: ServerTlsMode::Require,
            ..ServerTls::default()
        };
        for (answer, reason) in [
            (&b"SR\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"[..], "TLS error"),
            (b"N", "server does not support SSL, but SSL was required"),
            (b"E\0\0\0\x05\0", "error response during SSL exchange"),
            (b"R", "invalid response to SSL negotiation: R"),
        ] {
            let (address, _) = server(answer).await;
            let upstream = upstream(address, &require);
            let error = upstream.connect().await.err().unwrap().to_string();
            assert!(error.contains(reason), "{answer:?}: {error}");
        }
    }

    /// Proves that `prefer` goes on without TLS, over a new connection where the first one is spoilt.
    #[tokio::test]
    async fn prefer_goes_without() {
        let prefer = ServerTls {
            mode: ServerTlsMode::Prefer,
            ..ServerTls::default()
        };
        for (answer, connections) in [(&b"N"[..], 1), (b"E\0\0\0\x05\0", 2), (b"Sx", 2)] {
            let (address, accepted) = server(answer).await;
            let upstream = upstream(address, &prefer);
            let (socket, _) = upstream.connect().await.unwrap();
            assert!(matches!(socket, Socket::Tcp(_)));
            // The listener may be a moment behind.
            while accepted.load(Ordering::Relaxed) < connections {
                tokio::task::yield_now().await;
            }
        }
    }
}
