//! One connection, from its first byte to its last.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use futures::{SinkExt, StreamExt};
use pgwire::api::{ClientInfo, DefaultClient, NoopHandler, PgWireConnectionState};
use pgwire::error::{ErrorInfo, PgWireError};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use pgwire::tokio::server::{PgWireMessageServerCodec, process_error, process_message};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tokio_util::codec::Framed;
use tokio_util::sync::CancellationToken;

use crate::counters::Counters;
use crate::frames::{CheckedFrames, FrameError};
use crate::login::Login;
use crate::query::Queries;

const SSL_REQUEST: u32 = 80_877_103;
const GSS_ENC_REQUEST: u32 = 80_877_104;
const CANCEL_REQUEST: u32 = 80_877_102;
/// A larger write buffer than this is given back after an answer; most are smaller.
const KEPT_WRITE_BUFFER_LEN: usize = 64 << 10;

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) login: Arc<Login>,
    pub(crate) queries: Arc<Queries>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) login_timeout: Duration,
    pub(crate) answer_timeout: Duration,
    pub(crate) shutdown: CancellationToken,
}

/// Whether there was a place for the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    Admitted,
    TooMany,
}

/// A byte stream of either sort.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + Sync + 'static> Stream for T {}

type Socket<S> = Framed<CheckedFrames<S>, PgWireMessageServerCodec<String>>;

/// Serves a connection until either side ends it.
///
/// # Errors
/// Whatever breaks the socket; a log-in that takes too long is `TimedOut`.
pub(crate) async fn serve<S: Stream>(
    stream: S,
    peer: Option<SocketAddr>,
    admission: Admission,
    shared: &Shared,
) -> io::Result<()> {
    let logging_in = log_in(stream, peer, admission, shared);
    let Some(mut socket) = timeout(shared.login_timeout, logging_in).await?? else {
        return Ok(());
    };
    socket.get_mut().logged_in();
    loop {
        // Cancel-safe: a partial frame stays in the reader.
        let message = tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => {
                let ending = fatal("57P01", "the resolver is shutting down");
                return timeout(shared.answer_timeout, end(&mut socket, ending)).await?;
            }
            message = socket.next() => message,
        };
        let step = answer(&mut socket, message, shared);
        match timeout(shared.answer_timeout, step).await?? {
            Step::Next => {}
            Step::End => return Ok(()),
        }
    }
}

/// Whether the connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Next,
    End,
}

/// `None` when the connection ended in an orderly way without a log-in.
async fn log_in<S: Stream>(
    mut stream: S,
    peer: Option<SocketAddr>,
    admission: Admission,
    shared: &Shared,
) -> io::Result<Option<Socket<S>>> {
    let Some(head) = refuse_encryption(&mut stream).await? else {
        return Ok(None);
    };
    // pgwire wants an address also for a Unix socket.
    let peer = peer.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
    let codec = PgWireMessageServerCodec::new(DefaultClient::new(peer, false));
    let mut socket = Framed::new(CheckedFrames::new(stream, &head), codec);
    socket.set_state(PgWireConnectionState::AwaitingStartup);
    while !matches!(socket.state(), PgWireConnectionState::ReadyForQuery) {
        let message = socket.next().await;
        // Only now, since a client that has not been heard may never read what it is told.
        if admission == Admission::TooMany && message.is_some() {
            let full = fatal("53300", "too many connections to the resolver");
            end(&mut socket, full).await?;
            return Ok(None);
        }
        if answer(&mut socket, message, shared).await? == Step::End {
            return Ok(None);
        }
    }
    Ok(Some(socket))
}

/// Answers requests for encryption with `N` and returns the first 8 bytes of what comes then;
/// `None` for a cancel request, since nothing here takes long enough to be cancelled.
///
/// Libpq asks for either at most once.
async fn refuse_encryption<S: Stream>(stream: &mut S) -> io::Result<Option<[u8; 8]>> {
    for _ in 0..3 {
        let mut head = [0u8; 8];
        stream.read_exact(&mut head).await?;
        let code = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        match (&head[..4], code) {
            ([0, 0, 0, 8], SSL_REQUEST | GSS_ENC_REQUEST) => {
                stream.write_all(b"N").await?;
                stream.flush().await?;
            }
            (_, CANCEL_REQUEST) => return Ok(None),
            _ => return Ok(Some(head)),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        "encryption was asked for again and again",
    ))
}

/// Answers one message, or what came instead of one.
async fn answer<S: Stream>(
    socket: &mut Socket<S>,
    message: Option<Result<PgWireFrontendMessage, PgWireError>>,
    shared: &Shared,
) -> io::Result<Step> {
    let message = match message {
        None | Some(Ok(PgWireFrontendMessage::Terminate(_))) => return Ok(Step::End),
        Some(Err(error)) => {
            end(socket, broken(error)?).await?;
            return Ok(Step::End);
        }
        Some(Ok(message)) => message,
    };
    let nothing = Arc::new(NoopHandler);
    let answered = process_message(
        message,
        socket,
        Arc::clone(&shared.login),
        Arc::clone(&shared.queries),
        Arc::clone(&nothing),
        Arc::clone(&nothing),
        nothing,
    )
    .await;
    // A connection lives as long as a server session and mostly idles: do not let each keep the
    // room for its largest answer.
    if socket.write_buffer().capacity() > KEPT_WRITE_BUFFER_LEN && socket.write_buffer().is_empty()
    {
        *socket.write_buffer_mut() = BytesMut::new();
    }
    let Err(error) = answered else {
        return Ok(Step::Next);
    };
    // A log-in that failed in whatever way is over.
    let logging_in = !matches!(
        socket.state(),
        PgWireConnectionState::ReadyForQuery | PgWireConnectionState::QueryInProgress
    );
    if logging_in || error.is_fatal() {
        end(socket, error).await?;
        return Ok(Step::End);
    }
    process_error(socket, error, false).await?;
    Ok(Step::Next)
}

/// What to tell a client whose bytes could not be read as messages.
///
/// # Errors
/// When the socket itself broke, so that there is nobody to tell.
fn broken(error: PgWireError) -> io::Result<PgWireError> {
    let PgWireError::IoError(error) = error else {
        return Ok(error);
    };
    let refused = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<FrameError>());
    match refused {
        Some(refused) => Ok(fatal(refused.sqlstate(), &refused.to_string())),
        None => Err(error),
    }
}

/// Sends a last error and closes.
async fn end<S: Stream>(socket: &mut Socket<S>, error: PgWireError) -> io::Result<()> {
    let mut info: ErrorInfo = error.into();
    info.severity = "FATAL".to_owned();
    socket
        .send(PgWireBackendMessage::ErrorResponse(info.into()))
        .await?;
    socket.close().await
}

fn fatal(sqlstate: &str, message: &str) -> PgWireError {
    PgWireError::UserError(Box::new(ErrorInfo::new(
        "FATAL".to_owned(),
        sqlstate.to_owned(),
        message.to_owned(),
    )))
}
