//! Where the resolver listens: loopback, or a Unix socket named as libpq looks for it.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixSocket, UnixStream};

/// Mode of the Unix socket: its owner and the server's group.
const SOCKET_MODE: u32 = 0o660;
const BACKLOG: u32 = 128;

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolverListen {
    /// A loopback address; port 0 takes a free one.
    Tcp(SocketAddr),
    /// A socket file `.s.PGSQL.<port>` with mode 0660 in a directory that exists.
    Unix {
        /// The directory, which is the `host` of a connection string.
        directory: PathBuf,
        /// The number in the file's name, which is the `port` of a connection string.
        port: u16,
        /// The group that may connect, or the process' own.
        group_id: Option<u32>,
    },
}

impl ResolverListen {
    /// `host` and `port` as a libpq connection string wants them.
    pub fn host_and_port(&self) -> (String, u16) {
        match self {
            ResolverListen::Tcp(address) => (address.ip().to_string(), address.port()),
            ResolverListen::Unix {
                directory, port, ..
            } => (directory.display().to_string(), *port),
        }
    }
}

/// A bound socket. Dropping it removes the socket file, if it is still the one that was made.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix {
        listener: UnixListener,
        /// Held for its drop.
        _file: SocketFile,
    },
}

/// One accepted connection.
pub(crate) enum Accepted {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

impl Listener {
    /// Binds, and says where: with the port that port 0 became.
    pub(crate) async fn bind(address: ResolverListen) -> io::Result<(Listener, ResolverListen)> {
        match address {
            ResolverListen::Tcp(address) => {
                if !address.ip().is_loopback() {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidInput,
                        format!("the resolver address {address} is not loopback"),
                    ));
                }
                let listener = TcpListener::bind(address).await?;
                let bound = ResolverListen::Tcp(listener.local_addr()?);
                Ok((Listener::Tcp(listener), bound))
            }
            ResolverListen::Unix {
                directory,
                port,
                group_id,
            } => {
                let path = directory.join(format!(".s.PGSQL.{port}"));
                let (listener, file) = bind_unix(path, group_id).await?;
                let bound = ResolverListen::Unix {
                    directory,
                    port,
                    group_id,
                };
                let listener = Listener::Unix {
                    listener,
                    _file: file,
                };
                Ok((listener, bound))
            }
        }
    }

    /// Cancel-safe: a connection is accepted and returned, or neither.
    pub(crate) async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Accepted::Tcp(stream, peer))
            }
            Listener::Unix { listener, .. } => {
                let (stream, _) = listener.accept().await?;
                Ok(Accepted::Unix(stream))
            }
        }
    }
}

/// Binds, sets group and mode, and only then listens, so that nobody gets in meanwhile.
async fn bind_unix(path: PathBuf, group_id: Option<u32>) -> io::Result<(UnixListener, SocketFile)> {
    remove_stale(&path).await?;
    let socket = UnixSocket::new_stream()?;
    socket.bind(&path)?;
    let file = SocketFile::of(path)?;
    if group_id.is_some() {
        std::os::unix::fs::chown(&file.path, None, group_id)?;
    }
    std::fs::set_permissions(&file.path, PermissionsExt::from_mode(SOCKET_MODE))?;
    Ok((socket.listen(BACKLOG)?, file))
}

/// Removes a socket file that nobody listens on any more.
async fn remove_stale(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => {}
        Ok(_) => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("{} exists and is not a socket", path.display()),
            ));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            format!("another process listens on {}", path.display()),
        )),
    }
}

/// The socket file, known by its inode: a successor may have put another one in its place.
pub(crate) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    fn of(path: PathBuf) -> io::Result<SocketFile> {
        let found = std::fs::symlink_metadata(&path)?;
        Ok(SocketFile {
            device: found.dev(),
            inode: found.ino(),
            path,
        })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let Ok(found) = std::fs::symlink_metadata(&self.path) else {
            return;
        };
        if (found.dev(), found.ino()) != (self.device, self.inode) {
            return;
        }
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "socket file not removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unix(directory: &Path) -> ResolverListen {
        ResolverListen::Unix {
            directory: directory.to_owned(),
            port: 6434,
            group_id: None,
        }
    }

    /// Proves name and mode of the socket file, that it goes with its listener, that a stale one is
    /// replaced and one in use is not.
    #[tokio::test]
    async fn socket_files_are_handled_with_care() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(".s.PGSQL.6434");
        let (first, bound) = Listener::bind(unix(directory.path())).await.unwrap();
        assert_eq!(bound.host_and_port().1, 6434);
        assert_eq!(bound.host_and_port().0, directory.path().to_str().unwrap());
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o660);

        let second = Listener::bind(unix(directory.path())).await;
        assert_eq!(second.err().unwrap().kind(), io::ErrorKind::AddrInUse);
        assert!(path.exists());
        drop(first);
        assert!(!path.exists());

        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let (third, _) = Listener::bind(unix(directory.path())).await.unwrap();
        // A successor's file is left alone.
        std::fs::remove_file(&path).unwrap();
        let successor = std::os::unix::net::UnixListener::bind(&path).unwrap();
        drop(third);
        assert!(path.exists());
        drop(successor);
        std::fs::remove_file(&path).unwrap();

        std::fs::write(&path, "no socket").unwrap();
        let fourth = Listener::bind(unix(directory.path())).await;
        assert_eq!(fourth.err().unwrap().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"no socket");
    }

    /// Proves that the resolver cannot be reached from elsewhere.
    #[tokio::test]
    async fn only_loopback_is_bound() {
        let everywhere = ResolverListen::Tcp("0.0.0.0:0".parse().unwrap());
        let refused = Listener::bind(everywhere).await;
        assert_eq!(refused.err().unwrap().kind(), io::ErrorKind::InvalidInput);
        let loopback = ResolverListen::Tcp("127.0.0.1:0".parse().unwrap());
        let (_listener, bound) = Listener::bind(loopback).await.unwrap();
        assert_ne!(bound.host_and_port().1, 0);
    }
}
