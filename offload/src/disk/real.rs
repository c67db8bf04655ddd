//! The real file system, through system calls that say exactly what they do.

use std::any::Any;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FlockOperation, Gid, Mode, OFlags, RenameFlags, chmodat, chownat,
    fallocate, fchmod, fchown, flock, openat, renameat_with,
};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2, pwrite, retry_on_intr};

use super::{Audience, Disk, DiskFile};

/// A directory of the real file system.
#[derive(Debug, Clone)]
pub struct RealDisk {
    directory: PathBuf,
    server_gid: Option<u32>,
}

impl RealDisk {
    /// Files for `Audience::Server` belong to the group `server_gid`, where one is given.
    pub fn new(directory: &Path, server_gid: Option<u32>) -> RealDisk {
        RealDisk {
            directory: directory.to_owned(),
            server_gid,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn group(&self, audience: Audience) -> Option<Gid> {
        match audience {
            Audience::Owner => None,
            Audience::Server => self.server_gid.map(Gid::from_raw),
        }
    }

    fn open_with(&self, name: &str, flags: OFlags, mode: Mode) -> io::Result<File> {
        let path = self.path(name);
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = retry_on_intr(|| openat(CWD, &path, flags, mode))?;
        Ok(File::from(fd))
    }
}

const OWNER_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

fn file_mode(group: Option<Gid>) -> Mode {
    match group {
        Some(_) => OWNER_FILE | Mode::RGRP,
        None => OWNER_FILE,
    }
}

fn dir_mode(group: Option<Gid>) -> Mode {
    match group {
        Some(_) => Mode::RWXU | Mode::RGRP | Mode::XGRP,
        None => Mode::RWXU,
    }
}

impl Disk for RealDisk {
    fn open(&self, name: &str, write: bool) -> io::Result<Arc<dyn DiskFile>> {
        let access = if write { OFlags::RDWR } else { OFlags::RDONLY };
        // NONBLOCK is nothing to a file, and keeps a pipe of that name from holding up its opener.
        let file = self.open_with(name, access | OFlags::NONBLOCK, Mode::empty())?;
        Ok(Arc::new(RealFile { file }))
    }

    fn create(&self, name: &str, audience: Audience) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.open_with(
            name,
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
            OWNER_FILE,
        )?;
        let group = self.group(audience);
        if group.is_some() {
            fchown(&file, None, group)?;
        }
        // Explicitly, since the mode given at creation is subject to the umask.
        fchmod(&file, file_mode(group))?;
        Ok(Arc::new(RealFile { file }))
    }

    fn create_dir(&self, name: &str, audience: Audience) -> io::Result<()> {
        let path = self.path(name);
        match std::fs::create_dir_all(&path) {
            Ok(()) => self.restrict(name, audience),
            Err(error) => Err(error),
        }
    }

    fn restrict(&self, name: &str, audience: Audience) -> io::Result<()> {
        let path = self.path(name);
        let group = self.group(audience);
        let stat = rustix::fs::stat(&path)?;
        if let Some(gid) = group
            && stat.st_gid != gid.as_raw()
        {
            chownat(CWD, &path, None, group, AtFlags::empty())?;
        }
        let is_dir = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir();
        let mode = if is_dir {
            dir_mode(group)
        } else {
            file_mode(group)
        };
        if Mode::from_raw_mode(stat.st_mode) != mode {
            chmodat(CWD, &path, mode, AtFlags::empty())?;
        }
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (self.path(from), self.path(to));
        match renameat_with(CWD, &from, CWD, &to, RenameFlags::NOREPLACE) {
            // File systems that cannot do it exclusively: a hard link is exclusive as well.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                std::fs::hard_link(&from, &to)?;
                std::fs::remove_file(&from)
            }
            other => Ok(other?),
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path(name))
    }

    fn list(&self, name: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.path(name))? {
            // A name that is not UTF-8 is none of the store's.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn sync_dir(&self, name: &str) -> io::Result<()> {
        File::open(self.path(name))?.sync_all()
    }

    fn lock(&self, name: &str) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        let file = self.open_with(name, OFlags::RDWR | OFlags::CREATE, OWNER_FILE)?;
        fchmod(&file, OWNER_FILE)?;
        let began = Instant::now();
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(Box::new(file))),
                Err(Errno::WOULDBLOCK) if began.elapsed() < LOCK_PATIENCE => {
                    std::thread::sleep(LOCK_PATIENCE / 20);
                }
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A lock that was given back may be held for a moment more: by a child that another thread has forked
/// and that has not run its program yet.
const LOCK_PATIENCE: Duration = Duration::from_millis(200);

struct RealFile {
    file: File,
}

fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut written = 0;
    while written < bytes.len() {
        let at = offset + written as u64;
        match retry_on_intr(|| pwrite(file, &bytes[written..], at))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            more => written += more,
        }
    }
    Ok(())
}

impl DiskFile for RealFile {
    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset + filled as u64;
            match retry_on_intr(|| pread(&self.file, &mut buffer[filled..], at))? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(filled)
    }

    fn read_at_now(&self, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        let wanted = buffer.len();
        let mut slices = [IoSliceMut::new(buffer)];
        match preadv2(&self.file, &mut slices, offset, ReadWriteFlags::NOWAIT) {
            // A short count is either the end of the file or the end of what is in memory; the
            // waiting read will tell which.
            Ok(read) if read == wanted => Ok(Some(read)),
            Ok(_) | Err(Errno::AGAIN | Errno::INTR | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        write_all_at(&self.file, bytes, offset)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        match retry_on_intr(|| fallocate(&self.file, FallocateFlags::empty(), 0, len)) {
            // Without it the zeroes that are written next allocate just as well.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}
