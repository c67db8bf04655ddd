//! The seam between the store and the file system.
//!
//! Everything the store does to files goes through [`Disk`] and [`DiskFile`], so that a test can
//! fail, drop or reorder any of it. Names are relative to the store's directory, with `/` between
//! folders.

mod real;

use std::any::Any;
use std::io;
use std::sync::Arc;

pub use self::real::RealDisk;

/// Who may read a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The store's own user alone.
    Owner,
    /// The server's group as well, where one is configured.
    Server,
}

/// One directory of files.
pub trait Disk: Send + Sync + 'static {
    /// Opens a file that exists, for reading and, if `write`, for writing.
    fn open(&self, name: &str, write: bool) -> io::Result<Arc<dyn DiskFile>>;

    /// Creates a file that must not exist, for reading and writing.
    fn create(&self, name: &str, audience: Audience) -> io::Result<Arc<dyn DiskFile>>;

    /// Creates a folder, or the directory itself for `""`; it may exist.
    fn create_dir(&self, name: &str, audience: Audience) -> io::Result<()>;

    /// Gives a file or folder that exists the owner group and mode of a new one.
    fn restrict(&self, name: &str, audience: Audience) -> io::Result<()>;

    /// Renames a file. `AlreadyExists` when there is one of the new name: it is never replaced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// The names in a folder, in no order.
    fn list(&self, name: &str) -> io::Result<Vec<String>>;

    /// Makes creations, renames and removals in a folder durable.
    fn sync_dir(&self, name: &str) -> io::Result<()>;

    /// Takes an exclusive lock on a file, creating it if need be; held until the result is dropped.
    /// `None` when somebody else holds it.
    fn lock(&self, name: &str) -> io::Result<Option<Box<dyn Any + Send + Sync>>>;
}

/// One open file. Every call may come from several threads at once.
pub trait DiskFile: Send + Sync + 'static {
    /// Length in bytes.
    fn byte_len(&self) -> io::Result<u64>;

    /// Fills `buffer` from `offset` on; returns fewer bytes only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// As `read_at`, but only from memory: `None` when it would have to wait for the disk.
    fn read_at_now(&self, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>>;

    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Reserves space for the first `len` bytes, where the file system can.
    fn allocate(&self, len: u64) -> io::Result<()>;

    /// Cuts or extends the file.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes the content durable (`fdatasync`).
    fn sync_data(&self) -> io::Result<()>;

    /// Makes content, length and allocation durable (`fsync`).
    fn sync_all(&self) -> io::Result<()>;
}
