//! From accept to the start-up packet: the encryption preamble and cancel requests.
//!
//! Source: <https://www.postgresql.org/docs/15/protocol-flow.html#id-1.10.6.7.3>

use std::io;

use rustls::pki_types::CertificateDer;
use toastrack_wire::{FrameError, Startup, backend::ErrorBuilder, parse_startup};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::server::Socket;
use crate::session::Context;
use crate::tls::Acceptor;

/// What a frontend wants.
pub(crate) enum Opening {
    /// A session, over the socket as it is now.
    Session(Socket, SessionStart),
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
    /// The certificate that the client was shown, if there is TLS with it.
    pub(crate) shown: Option<CertificateDer<'static>>,
}

/// The first byte of a TLS handshake. A packet that began with it would be 350 MB long.
const TLS_HANDSHAKE: u8 = 0x16;

/// Reads up to the start-up packet. Encryption is agreed on or declined, once for each kind; bytes that
/// came behind such a request before its answer end the connection, as they do in Postgres (keeps T1).
pub(crate) async fn open(mut client: Socket, context: &Context) -> io::Result<Opening> {
    let mut encryption = Encryption::default();
    if let (Socket::Tcp(stream), Some(_)) = (&client, &context.acceptor) {
        let mut first = [0; 1];
        if stream.peek(&mut first).await? == 1 && first[0] == TLS_HANDSHAKE {
            client = encryption.accept(client, context, true).await?;
        }
    }
    let mut inbox = Vec::with_capacity(1024);
    loop {
        match parse_startup(&inbox) {
            Ok(None) => {
                if client.read_buf(&mut inbox).await? == 0 {
                    return Ok(Opening::Done);
                }
            }
            Ok(Some((Startup::Ssl, consumed))) if !encryption.ssl_answered => {
                encryption.ssl_answered = true;
                if inbox.len() > consumed {
                    return refuse_glued(&mut client, "SSL").await;
                }
                inbox.clear();
                // Like Postgres, none over a Unix socket.
                if context.acceptor.is_some() && matches!(client, Socket::Tcp(_)) {
                    client.write_all(b"S").await?;
                    client = encryption.accept(client, context, false).await?;
                } else {
                    client.write_all(b"N").await?;
                }
            }
            Ok(Some((Startup::GssEnc, consumed))) if !encryption.gss_answered => {
                encryption.gss_answered = true;
                if inbox.len() > consumed {
                    return refuse_glued(&mut client, "GSSAPI encryption").await;
                }
                inbox.clear();
                client.write_all(b"N").await?;
            }
            Ok(Some((Startup::Ssl | Startup::GssEnc, _))) => {
                let message = "encryption was requested twice".to_owned();
                return refuse(&mut client, "08P01", message).await;
            }
            Ok(Some((Startup::Cancel { frame }, _))) => {
                // Without TLS as well: up to libpq 16 that is how they come, whatever the session has.
                // Waits until the server has taken it, so that the frontend, whose libpq waits for the
                // end of the connection, learns of it no earlier than from Postgres itself.
                context.upstream.cancel(frame).await?;
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
                    shown: encryption.shown.take(),
                };
                if let Some(message) = encryption.missing(&client, &start, context) {
                    return refuse(&mut client, "28000", message).await;
                }
                return Ok(Opening::Session(client, start));
            }
            Err(error) => {
                let (sqlstate, message) = (FrameError::sqlstate(&error), error.to_string());
                return refuse(&mut client, sqlstate, message).await;
            }
        }
    }
}

/// What was agreed on before the start-up packet.
#[derive(Default)]
struct Encryption {
    ssl_answered: bool,
    gss_answered: bool,
    shown: Option<CertificateDer<'static>>,
    /// There is TLS, and the client has not shown the certificate that it needs.
    untrusted: bool,
}

impl Encryption {
    /// Does the handshake. Nothing else can be agreed on after it.
    async fn accept(
        &mut self,
        client: Socket,
        context: &Context,
        direct: bool,
    ) -> io::Result<Socket> {
        let (Socket::Tcp(stream), Some(acceptor)) = (client, &context.acceptor) else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let accepted = acceptor.accept(stream, direct).await?;
        self.ssl_answered = true;
        self.gss_answered = true;
        self.shown = Some(accepted.shown);
        self.untrusted = !accepted.trusted;
        Ok(Socket::Tls(Box::new(accepted.stream.into())))
    }

    /// Why a session is refused for what was not agreed on.
    fn missing(&self, client: &Socket, start: &SessionStart, context: &Context) -> Option<String> {
        if self.untrusted {
            return Some("connection requires a valid client certificate".to_owned());
        }
        let required = context.acceptor.as_ref().is_some_and(Acceptor::is_required);
        let Socket::Tcp(stream) = client else {
            return None;
        };
        required.then(|| {
            let host = stream.peer_addr().map(|address| address.ip().to_string());
            format!(
                "connection rejected for host \"{}\", user \"{}\", database \"{}\", no encryption",
                host.as_deref().unwrap_or("???"),
                start.user,
                start.database
            )
        })
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
    client.flush().await?;
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

/// What Postgres takes for a yes, and `database`; a no leaves an ordinary session.
fn is_replication(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    !["false", "off", "no", "0", "f", "n", "of"].contains(&value.as_str())
}
