//! A second directory that opens as the store did when it was made, while the store goes on.
//!
//! Promises:   every record that was acknowledged before `take` began is in it. The superblock comes
//!             last: a directory that has one is a whole snapshot, and durable.
//! Invariants: N1 a sealed segment is never written again, so a hard link is a copy. N2 a segment is
//!             in the folder before its first record is acknowledged, so the listing has it.
//! Format:     docs/format/segment-v1.md; docs/operations.md, "Backup"

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{Depth, Finding, Inspector, Pace, SegmentReport, SegmentState};
use crate::error::{Kind, StoreError};
use crate::format::StoreId;
use crate::format::segment::{FILE_LEN_UNIT, RECORDS_START, Seal};
use crate::format::superblock::{self, Superblock};
use crate::store::open::KEY;
use crate::store::segments::{self, FOLDER};

/// Whether sealed segments are shared with the store or copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Hard links: no space and no time, but the same blocks on the same disk.
    Link,
    /// Copies, for another file system.
    Copy,
}

/// What a snapshot consists of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotReport {
    /// Sealed segments that are shared with the store.
    pub linked: u64,
    /// Segments that were copied.
    pub copied: u64,
    /// Bytes of the copies.
    pub copied_bytes: u64,
    /// Segments that were copied as they are although something in them does not verify, and what.
    pub unsound: Vec<(u32, String)>,
    /// Files in the folder of segments that are none of the store's, left out.
    pub foreign: Vec<String>,
}

/// Takes a snapshot of the store in `from` into `to`, which must be empty or not exist. Blocks for as
/// long as copying takes.
///
/// # Errors
/// `BadConfig` when `from` is no store or its key is not to be had, when `to` is in use, or is on
/// another file system and links were asked for; `Full` and `Io` as the disk has it. What was made
/// so far is removed again.
pub fn take(
    from: &Path,
    to: &Path,
    method: Method,
    pace: &mut Pace,
) -> Result<SnapshotReport, StoreError> {
    let inspector = Inspector::open(from)?;
    if let Some(problem) = inspector.key_problem() {
        return Err(bad(format_args!("store {}: {problem}", inspector.shown)));
    }
    let mut making = Making {
        inspector: &inspector,
        from,
        to,
        method,
        pace,
        report: SnapshotReport::default(),
        made: Vec::new(),
    };
    making.prepare()?;
    match making.fill() {
        Ok(()) => Ok(making.report),
        Err(error) => {
            making.undo();
            Err(error)
        }
    }
}

fn bad(what: impl std::fmt::Display) -> StoreError {
    StoreError::new(Kind::BadConfig, what)
}

struct Making<'a> {
    inspector: &'a Inspector,
    from: &'a Path,
    to: &'a Path,
    method: Method,
    pace: &'a mut Pace,
    report: SnapshotReport,
    /// Files and folders that were made, in order.
    made: Vec<PathBuf>,
}

const COPY_LEN: usize = 1 << 20;

impl Making<'_> {
    /// Makes the directory, or sees that it is empty.
    fn prepare(&mut self) -> Result<(), StoreError> {
        let shown = self.to.display();
        if let Ok(to) = fs::canonicalize(
            self.to
                .parent()
                .filter(|p| *p != Path::new(""))
                .unwrap_or(Path::new(".")),
        ) && let Ok(from) = fs::canonicalize(self.from)
            && to.starts_with(&from)
        {
            return Err(bad(format_args!("{shown} is inside of the store")));
        }
        match fs::read_dir(self.to) {
            Ok(mut entries) => match entries.next() {
                Some(_) => Err(bad(format_args!("{shown} is not empty"))),
                None => Ok(()),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make_dir(self.to.to_owned())
            }
            Err(error) => Err(bad(format_args!("{shown}: {error}"))),
        }
    }

    fn fill(&mut self) -> Result<(), StoreError> {
        let folder = self.to.join(FOLDER);
        self.make_dir(folder.clone())?;
        let listing = self.inspector.list()?;
        self.report.foreign = listing.foreign;
        // The newest first: a value in pieces is written after its pieces, so whatever is copied finds
        // them in a segment that is copied later.
        for segment in listing.segments.into_iter().rev() {
            self.segment(segment)?;
        }
        sync_dir(&folder)?;
        let key = read_all(&self.from.join(KEY))?;
        self.write_file(KEY, &key)?;
        let superblock = Superblock {
            store_id: self.inspector.store_id,
            key_check: self.inspector.key_check,
        };
        // What is in the directory must survive before the superblock says that it is a store.
        sync_dir(self.to)?;
        self.write_file(superblock::FILE_NAME, superblock.to_text().as_bytes())?;
        sync_dir(self.to)?;
        match self.to.parent().filter(|parent| *parent != Path::new("")) {
            Some(parent) => sync_dir(parent),
            None => sync_dir(Path::new(".")),
        }
    }

    fn segment(&mut self, segment: u32) -> Result<(), StoreError> {
        let look = self.inspector.look(segment).map_err(|error| {
            StoreError::io(format_args!("reading segment {segment:08x}"), &error)
        })?;
        match look.state {
            SegmentState::Sealed { .. } if self.method == Method::Link => self.link(segment),
            SegmentState::Open => self.copy_open(segment, look.file_len),
            SegmentState::UnknownVersion(_) => Err(bad(format_args!(
                "segment {segment:08x}: {}",
                look.faults.join("; ")
            ))),
            SegmentState::Sealed { .. } => self.copy_whole(segment, look.file_len),
            // The store reads what verifies in it; so does the snapshot.
            SegmentState::Damaged => {
                self.report.unsound.push((segment, look.faults.join("; ")));
                self.copy_whole(segment, look.file_len)
            }
        }
    }

    fn link(&mut self, segment: u32) -> Result<(), StoreError> {
        let name = segments::file_name(segment);
        let (source, target) = (self.from.join(&name), self.to.join(&name));
        match fs::hard_link(&source, &target) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                return Err(bad(format_args!(
                    "{} is on another file system than the store, where hard links cannot reach: \
                     --copy copies every segment",
                    self.to.display()
                )));
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported
                ) =>
            {
                return Err(bad(format_args!(
                    "linking segment {segment:08x}: {error}: run as the store's user, or --copy"
                )));
            }
            Err(error) => return Err(failed("linking", &target, &error)),
        }
        self.made.push(target.clone());
        // The seal was seen, but its sync may still be under way.
        File::open(&target)
            .and_then(|file| file.sync_data())
            .map_err(|error| failed("syncing", &target, &error))?;
        self.report.linked += 1;
        Ok(())
    }

    /// Copies a segment as it is.
    fn copy_whole(&mut self, segment: u32, len: u64) -> Result<(), StoreError> {
        let mut target = self.copy(segment, len)?;
        self.finish(segment, &mut target, len)
    }

    /// Copies what verifies in a segment that may be written meanwhile, and seals the copy there.
    fn copy_open(&mut self, segment: u32, file_len: u64) -> Result<(), StoreError> {
        let mut clean = true;
        let mut used_end = u64::from(RECORDS_START);
        let mut visit = |finding: Finding<'_>| {
            if let Finding::Damaged(damage) | Finding::Remains(damage) = finding {
                clean = false;
                used_end = used_end.max(damage.offset + damage.len);
            }
        };
        let walk = self
            .inspector
            .walk(segment, Depth::Checksums, self.pace, &mut visit)?;
        used_end = used_end.max(walk.tail);
        if !walk.is_sound() {
            let seen = format!("{} stretches of it do not verify", walk.damaged);
            self.report.unsound.push((segment, seen));
        }
        // Up to here no byte changes any more: a writer writes behind it, or the same bytes.
        let mut target = self.copy(segment, used_end.min(file_len))?;
        let seal = sealed_at(&self.inspector.store_id, &walk, used_end, clean, file_len);
        let (block, at, len) = seal;
        let path = self.to.join(segments::file_name(segment));
        target
            .set_len(len)
            .and_then(|()| std::os::unix::fs::FileExt::write_all_at(&target, &block, at))
            .map_err(|error| failed("sealing", &path, &error))?;
        self.finish(segment, &mut target, len)
    }

    /// Copies the first `len` bytes of a segment to a new file.
    fn copy(&mut self, segment: u32, len: u64) -> Result<File, StoreError> {
        let name = segments::file_name(segment);
        let (source_path, target_path) = (self.from.join(&name), self.to.join(&name));
        let source =
            File::open(&source_path).map_err(|error| failed("opening", &source_path, &error))?;
        let mut target = self.create(target_path.clone())?;
        let mut buffer = vec![0u8; COPY_LEN];
        let mut left = source.take(len);
        loop {
            let read = left
                .read(&mut buffer)
                .map_err(|error| failed("reading", &source_path, &error))?;
            if read == 0 {
                return Ok(target);
            }
            target
                .write_all(&buffer[..read])
                .map_err(|error| failed("writing", &target_path, &error))?;
            self.pace.add(read as u64);
        }
    }

    fn finish(&mut self, segment: u32, file: &mut File, len: u64) -> Result<(), StoreError> {
        let path = self.to.join(segments::file_name(segment));
        file.sync_all()
            .map_err(|error| failed("syncing", &path, &error))?;
        self.report.copied += 1;
        self.report.copied_bytes += len;
        Ok(())
    }

    fn create(&mut self, path: PathBuf) -> Result<File, StoreError> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| failed("creating", &path, &error))?;
        self.made.push(path);
        Ok(file)
    }

    fn write_file(&mut self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.to.join(name);
        let mut file = self.create(path.clone())?;
        file.write_all(bytes)
            .and_then(|()| file.sync_all())
            .map_err(|error| failed("writing", &path, &error))
    }

    fn make_dir(&mut self, path: PathBuf) -> Result<(), StoreError> {
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|error| failed("creating", &path, &error))?;
        self.made.push(path);
        Ok(())
    }

    /// Removes what was made, the last first; a folder only when it is empty.
    fn undo(&mut self) {
        for path in self.made.drain(..).rev() {
            let removed = if path.is_dir() {
                fs::remove_dir(&path)
            } else {
                fs::remove_file(&path)
            };
            if let Err(error) = removed {
                tracing::warn!(path = %path.display(), %error, "left behind");
            }
        }
    }
}

/// The seal of the copy of a segment, where it goes, and how long the file is.
fn sealed_at(
    store_id: &StoreId,
    walk: &SegmentReport,
    used_end: u64,
    clean: bool,
    file_len: u64,
) -> ([u8; 64], u64, u64) {
    let seal = Seal {
        store_id: *store_id,
        segment: walk.segment,
        tail: walk.tail,
        records: walk.records,
        recovered: !clean,
    };
    let block = seal.to_block();
    let needed = used_end + block.len() as u64;
    let len = needed.next_multiple_of(FILE_LEN_UNIT).min(file_len);
    (block, len - block.len() as u64, len)
}

fn failed(what: &str, path: &Path, error: &io::Error) -> StoreError {
    StoreError::io(format_args!("{what} {}", path.display()), error)
}

fn read_all(path: &Path) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(4096).read_to_end(&mut bytes))
        .map_err(|error| failed("reading", path, &error))?;
    Ok(bytes)
}

fn sync_dir(path: &Path) -> Result<(), StoreError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| failed("syncing", path, &error))
}
