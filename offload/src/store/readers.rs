//! Open files of segments that are read.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use parking_lot::RwLock;

use super::segments;
use crate::disk::{Disk, DiskFile};
use crate::error::StoreError;
use crate::reference::Address;

/// At most this many files are held open.
const MAX_OPEN: usize = 512;

#[derive(Default)]
pub(super) struct Readers {
    files: RwLock<HashMap<u32, Arc<dyn DiskFile>>>,
}

impl Readers {
    /// The file that a record is in.
    pub(super) fn file(
        &self,
        disk: &dyn Disk,
        address: &Address,
    ) -> Result<Arc<dyn DiskFile>, StoreError> {
        let segment = address.segment;
        if let Some(file) = self.files.read().get(&segment) {
            return Ok(Arc::clone(file));
        }
        let name = segments::file_name(segment);
        let file = disk.open(&name, false).map_err(|error| {
            if error.kind() == io::ErrorKind::NotFound {
                StoreError::corrupt(segment, address.offset, "the segment file is missing")
            } else {
                StoreError::io(format_args!("opening segment {segment:08x}"), &error)
            }
        })?;
        let mut files = self.files.write();
        if files.len() >= MAX_OPEN {
            // Rare, and opening again is cheap next to the disk reads that such a spread means.
            files.clear();
        }
        files.insert(segment, Arc::clone(&file));
        Ok(file)
    }
}
