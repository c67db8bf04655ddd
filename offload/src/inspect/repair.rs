//! Makes a damaged store usable again, and brings records back from a copy of it.
//!
//! Owns:       the lock of the store, so that nobody else writes.
//! Invariants: F1 a record that verifies is neither moved nor overwritten nor cut off. F2 nothing is
//!             deleted: files that are no segments are renamed aside, bytes that are overwritten or
//!             cut off are written aside before. F3 a segment that is repaired is sealed, so that
//!             nothing is appended behind damage.
//! Proof:      tests/inspect_repair.rs

mod plan;
mod run;

use std::any::Any;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Inspector;
use crate::disk::{Disk, RealDisk};
use crate::error::{Kind, StoreError};
use crate::format::bytes::array_at;
use crate::format::superblock::{self, Superblock, SuperblockError};
use crate::key::StoreKey;
use crate::store::open::{KEY, KEY_LEN, LOCK, read_small};

/// The folder of what was put aside.
pub const QUARANTINE: &str = "quarantine";

/// A store that is locked for its repair.
pub struct Repair {
    inspector: Inspector,
    /// Files of the directory to be taken from the copy.
    lost: Vec<&'static str>,
    copy: Option<Inspector>,
    /// Released when it is dropped.
    _lock: Box<dyn Any + Send + Sync>,
}

/// What is to be done, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// One after the other; each can be done again after a crash.
    pub steps: Vec<Step>,
    /// What cannot be repaired, and why.
    pub left: Vec<String>,
}

/// One change to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Renames a file of the folder of segments aside.
    Quarantine {
        /// Its name in the folder.
        name: String,
        /// What it turned out to be.
        seen: String,
    },
    /// Keeps the number of a segment that was put aside from being used again.
    Reserve {
        /// The number.
        segment: u32,
    },
    /// Copies a segment that is missing from the other copy.
    CopySegment {
        /// Its number.
        segment: u32,
    },
    /// Copies the superblock or the key from the other copy.
    CopyFile {
        /// Its name in the directory.
        name: &'static str,
    },
    /// Repairs a segment in place.
    Mend(Mend),
}

/// The repair of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mend {
    /// Its number.
    pub segment: u32,
    /// Records to copy from the other copy: offset and bytes.
    pub restored: Vec<(u32, u64)>,
    /// The header is written anew.
    pub header: bool,
    /// The seal is written anew, and the file gets this length.
    pub seal: Option<NewSeal>,
}

/// A seal to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewSeal {
    /// End of the last record that verifies.
    pub tail: u64,
    /// Records that verify.
    pub records: u64,
    /// There are bytes that do not verify.
    pub recovered: bool,
    /// Length of the file, with the seal in its last bytes.
    pub file_len: u64,
}

impl Repair {
    /// Locks the store in a directory. `copy` is a snapshot or backup of the same store.
    ///
    /// # Errors
    /// `BadConfig` when either is no store, they are of different stores, the key is not to be had, or
    /// the store is open in another process.
    pub fn begin(directory: &Path, copy: Option<&Path>) -> Result<Repair, StoreError> {
        let on = |path: &Path| -> (Arc<dyn Disk>, String) {
            let disk = RealDisk::new(path, None);
            (Arc::new(disk), path.display().to_string())
        };
        let (disk, shown) = on(directory);
        let copy = copy.map(on);
        Repair::begin_on(disk, &shown, copy)
    }

    /// As [`Repair::begin`], on disks of the caller's, each with a name for messages.
    ///
    /// # Errors
    /// As [`Repair::begin`].
    pub fn begin_on(
        disk: Arc<dyn Disk>,
        shown: &str,
        copy: Option<(Arc<dyn Disk>, String)>,
    ) -> Result<Repair, StoreError> {
        let bad = |shown: &str, what: &dyn fmt::Display| {
            StoreError::new(Kind::BadConfig, format_args!("store {shown}: {what}"))
        };
        let copy = match copy {
            None => None,
            Some((disk, shown)) => {
                let copy = Inspector::open_on(disk, &shown)?;
                if let Some(problem) = copy.key_problem() {
                    return Err(bad(&shown, &problem));
                }
                Some(copy)
            }
        };
        let (inspector, lost) = match &copy {
            Some(copy) => with_copy(&disk, shown, copy)?,
            None => (Inspector::open_on(Arc::clone(&disk), shown)?, Vec::new()),
        };
        // Nobody writes, so nothing is waited for.
        let inspector = inspector.settle_within(Duration::ZERO);
        if let Some(problem) = inspector.key_problem() {
            return Err(bad(shown, &problem));
        }
        if let Some(copy) = &copy
            && copy.store_id != inspector.store_id
        {
            return Err(bad(&copy.shown, &"it is a copy of another store"));
        }
        let lock = disk
            .lock(LOCK)
            .map_err(|error| StoreError::io(format_args!("store {shown}: locking"), &error))?
            .ok_or_else(|| {
                bad(
                    shown,
                    &"another process has it open; a repair needs it stopped",
                )
            })?;
        Ok(Repair {
            inspector,
            lost,
            copy,
            _lock: lock,
        })
    }
}

/// The store as its own superblock and key have it, or as those of the copy do where its own are lost,
/// and which are.
fn with_copy(
    disk: &Arc<dyn Disk>,
    shown: &str,
    copy: &Inspector,
) -> Result<(Inspector, Vec<&'static str>), StoreError> {
    let mut lost = Vec::new();
    let opened = match read_small(&**disk, superblock::FILE_NAME, superblock::MAX_LEN) {
        Ok(bytes) => Superblock::parse(&bytes).map(drop),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(SuperblockError::Damaged),
        Err(error) => {
            let what = format_args!("store {shown}: reading the superblock");
            return Err(StoreError::io(what, &error));
        }
    };
    let mut inspector = match opened {
        Ok(()) | Err(SuperblockError::UnknownVersion(_)) => {
            Inspector::open_on(Arc::clone(disk), shown)?
        }
        Err(SuperblockError::Damaged | SuperblockError::NotASuperblock) => {
            lost.push(superblock::FILE_NAME);
            let ours = Inspector {
                disk: Arc::clone(disk),
                shown: shown.into(),
                ..copy.clone()
            };
            if !ours.is_of_this_store()? {
                let what = format_args!(
                    "store {shown}: no segment in it is of the store that {} is a copy of",
                    copy.shown
                );
                return Err(StoreError::new(Kind::BadConfig, what));
            }
            ours
        }
    };
    // With a superblock of its own it has its own key, or none that fits; the copy's fits if it is a
    // copy of the same store.
    let own_key = read_small(&**disk, KEY, KEY_LEN + 1).ok();
    let fits = own_key.is_some_and(|bytes| {
        bytes.len() == KEY_LEN && StoreKey::new(array_at(&bytes, 0)).check() == inspector.key_check
    });
    if !fits && copy.key_check == inspector.key_check {
        lost.insert(0, KEY);
        inspector.key = copy.key.clone();
    }
    Ok((inspector, lost))
}

impl Inspector {
    /// Whether a segment has a header or a seal with this store's id.
    fn is_of_this_store(&self) -> Result<bool, StoreError> {
        for segment in self.list()?.segments {
            let look = self.look(segment).map_err(|error| {
                StoreError::io(format_args!("reading segment {segment:08x}"), &error)
            })?;
            if look.header.is_some() || look.seal.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl fmt::Debug for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repair")
            .field("store", &self.inspector)
            .field("copy", &self.copy)
            .finish_non_exhaustive()
    }
}

impl Plan {
    /// There is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Quarantine { name, seen } => {
                write!(
                    f,
                    "move segments/{name} to {QUARANTINE}: it is no segment of this store: {seen}"
                )
            }
            Step::Reserve { segment } => {
                write!(
                    f,
                    "segment {segment:08x}: put an empty sealed segment in its place, so that its number \
                     is not used again"
                )
            }
            Step::CopyFile { name } => write!(f, "copy the file {name} from the other copy"),
            Step::CopySegment { segment } => {
                write!(f, "segment {segment:08x}: copy it from the other copy")
            }
            Step::Mend(mend) => mend.fmt(f),
        }
    }
}

impl fmt::Display for Mend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment {:08x}:", self.segment)?;
        let mut comma = "";
        if !self.restored.is_empty() {
            write!(f, " restore {} records from the copy", self.restored.len())?;
            comma = ",";
        }
        if self.header {
            write!(f, "{comma} write the header anew")?;
            comma = ",";
        }
        if let Some(seal) = &self.seal {
            write!(
                f,
                "{comma} seal it behind {} records at {}, length {}",
                seal.records, seal.tail, seal.file_len
            )?;
        }
        Ok(())
    }
}
