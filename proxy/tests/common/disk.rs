//! A real disk that a test can fail or hold up.

use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::Arc;

use toastrack_offload::disk::{Audience, Disk, DiskFile, RealDisk};

/// Called with the name of the file, on the thread that wants to touch it.
#[derive(Clone, Copy)]
pub(crate) struct Hooks {
    /// Before a file is made, written or given space.
    pub(crate) write: fn(&str) -> io::Result<()>,
    /// Before `sync_data`.
    pub(crate) sync: fn(&str) -> io::Result<()>,
    /// After a `sync_data` that worked.
    pub(crate) synced: fn(&str),
}

impl Default for Hooks {
    fn default() -> Hooks {
        Hooks {
            write: |_| Ok(()),
            sync: |_| Ok(()),
            synced: |_| {},
        }
    }
}

/// See the module.
pub(crate) struct HookedDisk {
    disk: RealDisk,
    hooks: Hooks,
}

struct HookedFile {
    file: Arc<dyn DiskFile>,
    name: String,
    hooks: Hooks,
}

impl HookedDisk {
    pub(crate) fn new(directory: &Path, hooks: Hooks) -> HookedDisk {
        HookedDisk {
            disk: RealDisk::new(directory, None),
            hooks,
        }
    }

    fn hooked(&self, name: &str, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(HookedFile {
            file,
            name: name.to_owned(),
            hooks: self.hooks,
        })
    }
}

impl Disk for HookedDisk {
    fn open(&self, name: &str, write: bool) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.hooked(name, self.disk.open(name, write)?))
    }

    fn create(&self, name: &str, audience: Audience) -> io::Result<Arc<dyn DiskFile>> {
        (self.hooks.write)(name)?;
        Ok(self.hooked(name, self.disk.create(name, audience)?))
    }

    fn create_dir(&self, name: &str, audience: Audience) -> io::Result<()> {
        self.disk.create_dir(name, audience)
    }

    fn restrict(&self, name: &str, audience: Audience) -> io::Result<()> {
        self.disk.restrict(name, audience)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn list(&self, name: &str) -> io::Result<Vec<String>> {
        self.disk.list(name)
    }

    fn sync_dir(&self, name: &str) -> io::Result<()> {
        self.disk.sync_dir(name)
    }

    fn lock(&self, name: &str) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        self.disk.lock(name)
    }
}

impl DiskFile for HookedFile {
    fn byte_len(&self) -> io::Result<u64> {
        self.file.byte_len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn read_at_now(&self, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        self.file.read_at_now(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        (self.hooks.write)(&self.name)?;
        self.file.write_at(bytes, offset)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        (self.hooks.write)(&self.name)?;
        self.file.allocate(len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        (self.hooks.sync)(&self.name)?;
        self.file.sync_data()?;
        (self.hooks.synced)(&self.name);
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}
