//! The sockets of a session: TCP, TLS over it, or a Unix socket behind one type.
//!
//! Promises: without TLS the two halves of a socket have no lock between them; with TLS they have one
//!           that nobody ever waits for, since both are used in one task. The end of a TLS connection
//!           is an end whether the other side announced it or not: the protocol has its own way to
//!           say goodbye, and clients that just close are usual.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BytesMut;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsStream;

/// A socket of either side.
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Small messages must not wait for one another.
pub(crate) fn without_delay(stream: TcpStream) -> TcpStream {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "nodelay not set");
    }
    stream
}

/// A socket on its way from the runtime that accepted it to the one that `register` is called in.
pub(crate) enum Detached {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl Detached {
    pub(crate) fn tcp(stream: TcpStream) -> io::Result<Detached> {
        without_delay(stream).into_std().map(Detached::Tcp)
    }

    pub(crate) fn unix(stream: UnixStream) -> io::Result<Detached> {
        stream.into_std().map(Detached::Unix)
    }

    /// Makes it a socket of the current runtime.
    pub(crate) fn register(self) -> io::Result<Socket> {
        Ok(match self {
            Detached::Tcp(stream) => Socket::Tcp(TcpStream::from_std(stream)?),
            Detached::Unix(stream) => Socket::Unix(UnixStream::from_std(stream)?),
        })
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Socket::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
            Socket::Tls(stream) => match Pin::new(stream).poll_read(cx, buf) {
                Poll::Ready(Err(error)) if is_end(&error) => Poll::Ready(Ok(())),
                read => read,
            },
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Socket::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
            Socket::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Socket::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Socket::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

const GOODBYE_TIMEOUT: Duration = Duration::from_secs(1);

/// The other side has closed without the alert that announces it.
fn is_end(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof
}

/// The reading half of a socket.
pub(crate) enum Reader<'s> {
    Tcp(tokio::net::tcp::ReadHalf<'s>),
    Unix(tokio::net::unix::ReadHalf<'s>),
    Tls(tokio::io::ReadHalf<&'s mut TlsStream<TcpStream>>),
}

/// The writing half of a socket.
pub(crate) enum Writer<'s> {
    Tcp(tokio::net::tcp::WriteHalf<'s>),
    Unix(tokio::net::unix::WriteHalf<'s>),
    Tls(tokio::io::WriteHalf<&'s mut TlsStream<TcpStream>>),
}

impl Socket {
    /// The certificate that the other side has shown.
    pub(crate) fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        match self {
            Socket::Tcp(_) | Socket::Unix(_) => None,
            Socket::Tls(stream) => stream.get_ref().1.peer_certificates()?.first(),
        }
    }

    /// Tells the other side of a TLS connection that its end is meant; one that does not take it in
    /// time goes without.
    pub(crate) async fn say_goodbye(&mut self) {
        if let Socket::Tls(stream) = self {
            let said = tokio::time::timeout(GOODBYE_TIMEOUT, stream.shutdown()).await;
            if !matches!(said, Ok(Ok(()))) {
                tracing::debug!("end of TLS not announced");
            }
        }
    }

    /// Two halves that are used in one task.
    pub(crate) fn split(&mut self) -> (Reader<'_>, Writer<'_>) {
        match self {
            Socket::Tcp(stream) => {
                let (reader, writer) = stream.split();
                (Reader::Tcp(reader), Writer::Tcp(writer))
            }
            Socket::Unix(stream) => {
                let (reader, writer) = stream.split();
                (Reader::Unix(reader), Writer::Unix(writer))
            }
            Socket::Tls(stream) => {
                let (reader, writer) = tokio::io::split(stream.as_mut());
                (Reader::Tls(reader), Writer::Tls(writer))
            }
        }
    }
}

impl Reader<'_> {
    /// Reads what there is, at least one byte, into the spare room of `inbox`; 0 at the end.
    ///
    /// Cancel-safe.
    pub(crate) async fn fill(&mut self, inbox: &mut BytesMut) -> io::Result<usize> {
        match self {
            Reader::Tcp(reader) => reader.read_buf(inbox).await,
            Reader::Unix(reader) => reader.read_buf(inbox).await,
            Reader::Tls(reader) => match reader.read_buf(inbox).await {
                Err(error) if is_end(&error) => Ok(0),
                read => read,
            },
        }
    }
}

impl Writer<'_> {
    pub(crate) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Writer::Tcp(writer) => writer.write_all(bytes).await,
            Writer::Unix(writer) => writer.write_all(bytes).await,
            Writer::Tls(writer) => {
                // What was taken may not have been sent yet.
                writer.write_all(bytes).await?;
                writer.flush().await
            }
        }
    }

    /// Tells the other side that no more will come.
    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        match self {
            Writer::Tcp(writer) => writer.shutdown().await,
            Writer::Unix(writer) => writer.shutdown().await,
            Writer::Tls(writer) => writer.shutdown().await,
        }
    }
}
