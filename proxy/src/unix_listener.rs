//! The Unix socket that frontends may use instead of TCP.
//!
//! Owns:     the socket file.
//! Promises: nobody connects before the file has its permissions; the file of a process that is gone
//!           is replaced, that of one which answers is not; it is removed when the listener is dropped.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixSocket, UnixStream};

/// See the module.
pub(crate) struct UnixSocketListener {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the file that was made.
    identity: (u64, u64),
}

/// Connections that wait to be accepted; the system takes less if it is set to.
const BACKLOG: u32 = 1024;

impl UnixSocketListener {
    /// Listens on `path`, with `mode` as the permissions of the file.
    ///
    /// # Errors
    /// `AddrInUse` when another process listens there, `AlreadyExists` for a file that is no socket,
    /// and those of the system.
    pub(crate) async fn bind(path: PathBuf, mode: u32) -> io::Result<UnixSocketListener> {
        remove_stale(&path).await?;
        let socket = UnixSocket::new_stream()?;
        socket.bind(&path)?;
        // Between bind and listen, while connections are still refused.
        fs::set_permissions(&path, Permissions::from_mode(mode))?;
        let listener = socket.listen(BACKLOG)?;
        let metadata = fs::symlink_metadata(&path)?;
        Ok(UnixSocketListener {
            listener,
            identity: (metadata.dev(), metadata.ino()),
            path,
        })
    }

    /// The socket file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Cancel-safe.
    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }
}

impl Drop for UnixSocketListener {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == self.identity);
        if ours && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "socket file not removed");
        }
    }
}

/// A socket that nobody listens on refuses connections; whatever else happens, it is left alone.
async fn remove_stale(path: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata?,
    };
    if !metadata.file_type().is_socket() {
        let message = "there is a file of this name that is no socket";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
        _ => {
            let message = "another process listens on this socket";
            Err(io::Error::new(io::ErrorKind::AddrInUse, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: private as asked, refused while it lives, replaced when its process is gone, removed
    /// at the end, and no other file is ever removed.
    #[tokio::test]
    async fn the_life_of_a_socket_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(".s.PGSQL.1");
        let first = UnixSocketListener::bind(path.clone(), 0o700).await.unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let second = UnixSocketListener::bind(path.clone(), 0o700).await;
        assert_eq!(second.err().unwrap().kind(), io::ErrorKind::AddrInUse);
        assert!(UnixStream::connect(&path).await.is_ok());
        drop(first);
        assert!(!path.exists());

        // Dropped without its file being removed, as by SIGKILL.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let third = UnixSocketListener::bind(path.clone(), 0o770).await.unwrap();
        assert!(UnixStream::connect(&path).await.is_ok());
        // A file that somebody else put in its place is not removed.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "precious").unwrap();
        drop(third);
        let fourth = UnixSocketListener::bind(path.clone(), 0o700).await;
        assert_eq!(fourth.err().unwrap().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }
}
