//! From accept to the start-up packet: the encryption preamble and cancel requests.
//!
//! Source: <https://www.postgresql.org/docs/15/protocol-flow.html#id-1.10.6.7.3>

use std::io;

use toastrack_wire::{FrameError, Startup, backend::ErrorBuilder, parse_startup};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::options::ServerAddress;
use crate::server::Socket;

/// What a frontend wants.
pub(crate) enum Opening {
    /// A session.
    Session(SessionStart),
    /// It closed, asked for a cancel that was passed on, or was refused.
    Done,
}

/// The start-up packet of a session.
pub(crate) struct SessionStart {
    /// The whole packet, to be forwarded as it came.
    pub(crate) packet: Vec<u8>,
    /// Bytes that came behind it.
    pub(crate) rest: Vec<u8>,
    /// The database asked for: the user's name where none was.
    pub(crate) database: String,
    /// The user asked for.
    pub(crate) user: String,
    /// A replication connection: passed through without a look.
    pub(crate) replication: bool,
}

/// Reads up to the start-up packet. Encryption is declined, once for each kind; bytes that came
/// behind such a request before its answer end the connection, as they do in Postgres.
pub(crate) async fn open(client: &mut Socket, server: &ServerAddress) -> io::Result<Opening> {
    let mut inbox = Vec::with_capacity(1024);
    let (mut ssl_declined, mut gss_declined) = (false, false);
    loop {
        match parse_startup(&inbox) {
            Ok(None) => {
                if client.read_buf(&mut inbox).await? == 0 {
                    return Ok(Opening::Done);
                }
            }
            Ok(Some((Startup::Ssl, consumed))) if !ssl_declined => {
                ssl_declined = true;
                if inbox.len() > consumed {
                    return refuse_glued(client, "SSL").await;
                }
                inbox.clear();
                client.write_all(b"N").await?;
            }
            Ok(Some((Startup::GssEnc, consumed))) if !gss_declined => {
                gss_declined = true;
                if inbox.len() > consumed {
                    return refuse_glued(client, "GSSAPI encryption").await;
                }
                inbox.clear();
                client.write_all(b"N").await?;
            }
            Ok(Some((Startup::Ssl | Startup::GssEnc, _))) => {
                let message = "encryption was requested twice".to_owned();
                return refuse(client, "08P01", message).await;
            }
            Ok(Some((Startup::Cancel { frame }, _))) => {
                relay_cancel(frame, server).await?;
                return Ok(Opening::Done);
            }
            Ok(Some((Startup::Startup(message), consumed))) => {
                let text = |name: &[u8]| {
                    message
                        .parameter(name)
                        .map(|value| String::from_utf8_lossy(value).into_owned())
                };
                let user = text(b"user").unwrap_or_default();
                let start = SessionStart {
                    packet: message.frame.to_vec(),
                    rest: inbox[consumed..].to_vec(),
                    database: text(b"database")
                        .filter(|d| !d.is_empty())
                        .unwrap_or(user.clone()),
                    replication: text(b"replication").is_some_and(|value| is_replication(&value)),
                    user,
                };
                return Ok(Opening::Session(start));
            }
            Err(error) => {
                return refuse(client, FrameError::sqlstate(&error), error.to_string()).await;
            }
        }
    }
}

/// Sends a FATAL error and gives the connection up.
pub(crate) async fn refuse(
    client: &mut Socket,
    sqlstate: &'static str,
    message: String,
) -> io::Result<Opening> {
    let mut out = Vec::new();
    ErrorBuilder::fatal(sqlstate, message).encode(&mut out);
    client.write_all(&out).await?;
    client.shutdown().await?;
    Ok(Opening::Done)
}

async fn refuse_glued(client: &mut Socket, what: &str) -> io::Result<Opening> {
    refuse(
        client,
        "08P01",
        format!("received unencrypted data after {what} request"),
    )
    .await
}

/// Passes a cancel request on and waits until the server has taken it, so that the frontend, whose
/// libpq waits for the end of the connection, learns of it no earlier than from Postgres itself.
async fn relay_cancel(frame: &[u8], server: &ServerAddress) -> io::Result<()> {
    let mut socket = Socket::connect(server).await?;
    socket.write_all(frame).await?;
    let mut end = [0; 1];
    while socket.read(&mut end).await? > 0 {}
    Ok(())
}

/// What Postgres takes for a yes, and `database`; a no leaves an ordinary session.
fn is_replication(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    !["false", "off", "no", "0", "f", "n", "of"].contains(&value.as_str())
}
