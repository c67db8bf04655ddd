//! The way to the server: TCP, TLS as set, or a Unix socket.
//!
//! Source: <https://www.postgresql.org/docs/15/libpq-ssl.html>

use std::io;
use std::time::Duration;

use toastrack_wire::startup::encode_ssl_request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_postgres::{Client, NoTls};

use crate::options::ServerAddress;
use crate::server::{Socket, without_delay};
use crate::tls::{Connector, ServerTls, TlsError};

/// Connects to the server.
pub struct Upstream {
    address: ServerAddress,
    connector: Option<Connector>,
}

impl Upstream {
    /// Reads the files that TLS needs. Nothing is connected.
    ///
    /// # Errors
    /// When one cannot be used.
    pub fn new(address: ServerAddress, tls: &ServerTls) -> Result<Upstream, TlsError> {
        Ok(Upstream {
            address,
            connector: Connector::load(tls)?,
        })
    }

    /// Reads the files again, for connections from now on.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        self.connector.as_ref().map_or(Ok(()), Connector::reload)
    }

    /// Connects for a session or a cancel request.
    pub(crate) async fn connect(&self) -> io::Result<Socket> {
        match timeout(CONNECT_TIMEOUT, self.connect_slowly()).await {
            Ok(connected) => connected,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "timeout expired")),
        }
    }

    async fn connect_slowly(&self) -> io::Result<Socket> {
        match &self.address {
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

    /// Connects as a client of one's own, over the same way as sessions. Its requests and answers
    /// travel in a task of their own.
    ///
    /// # Errors
    /// What the system or the server said.
    pub async fn client(&self, config: &tokio_postgres::Config) -> Result<Client, String> {
        let socket = self.connect().await.map_err(|error| error.to_string())?;
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
            let upstream = Upstream::new(address, &require).unwrap();
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
            let upstream = Upstream::new(address, &prefer).unwrap();
            let socket = upstream.connect().await.unwrap();
            assert!(matches!(socket, Socket::Tcp(_)));
            // The listener may be a moment behind.
            while accepted.load(Ordering::Relaxed) < connections {
                tokio::task::yield_now().await;
            }
        }
    }
}
