//! The connection to the server: TCP or a Unix socket behind one type.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::options::ServerAddress;

/// A socket of either side.
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Connects to the server.
    pub(crate) async fn connect(address: &ServerAddress) -> io::Result<Socket> {
        match address {
            ServerAddress::Tcp(host, port) => Ok(Socket::tcp(
                TcpStream::connect((host.as_str(), *port)).await?,
            )),
            ServerAddress::Unix(path) => Ok(Socket::Unix(UnixStream::connect(path).await?)),
        }
    }

    /// Moves the socket to the runtime that `register` is called in.
    pub(crate) fn detach(self) -> io::Result<Detached> {
        Ok(match self {
            Socket::Tcp(stream) => Detached::Tcp(stream.into_std()?),
            Socket::Unix(stream) => Detached::Unix(stream.into_std()?),
        })
    }

    /// Small messages must not wait for one another.
    pub(crate) fn tcp(stream: TcpStream) -> Socket {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "nodelay not set");
        }
        Socket::Tcp(stream)
    }
}

/// A socket between two runtimes.
pub(crate) enum Detached {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl Detached {
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
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Socket::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// The reading half of a socket.
pub(crate) enum Reader<'s> {
    Tcp(tokio::net::tcp::ReadHalf<'s>),
    Unix(tokio::net::unix::ReadHalf<'s>),
}

/// The writing half of a socket.
pub(crate) enum Writer<'s> {
    Tcp(tokio::net::tcp::WriteHalf<'s>),
    Unix(tokio::net::unix::WriteHalf<'s>),
}

impl Socket {
    /// Two halves without a lock between them.
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
        }
    }
}

impl Writer<'_> {
    pub(crate) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Writer::Tcp(writer) => writer.write_all(bytes).await,
            Writer::Unix(writer) => writer.write_all(bytes).await,
        }
    }

    /// Tells the other side that no more will come.
    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        match self {
            Writer::Tcp(writer) => writer.shutdown().await,
            Writer::Unix(writer) => writer.shutdown().await,
        }
    }
}
