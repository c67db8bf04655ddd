//! The way to the server: TCP, TLS as set, or a Unix socket.
//!
//! Source: <https://www.postgresql.org/docs/15/libpq-ssl.html>

use std::io;

use toastrack_wire::startup::encode_ssl_request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
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
