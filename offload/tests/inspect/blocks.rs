//! Blocks of a disk that cannot be read.

use std::any::Any;
use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use toastrack_offload::disk::{Audience, Disk, DiskFile, RealDisk};
use toastrack_offload::inspect::Inspector;

use crate::common::segment_path;
use crate::{closed, walk};

/// A disk that cannot read some blocks of one file.
struct BadBlocks {
    disk: RealDisk,
    name: String,
    bad: std::ops::Range<u64>,
}

struct BadFile {
    file: Arc<dyn DiskFile>,
    bad: std::ops::Range<u64>,
}

impl Disk for BadBlocks {
    fn open(&self, name: &str, write: bool) -> io::Result<Arc<dyn DiskFile>> {
        let bad = if name == self.name {
            self.bad.clone()
        } else {
            0..0
        };
        let file = self.disk.open(name, write)?;
        Ok(Arc::new(BadFile { file, bad }))
    }
    fn list(&self, name: &str) -> io::Result<Vec<String>> {
        self.disk.list(name)
    }
    fn create(&self, _: &str, _: Audience) -> io::Result<Arc<dyn DiskFile>> {
        unreachable!("an inspector changes nothing")
    }
    fn create_dir(&self, _: &str, _: Audience) -> io::Result<()> {
        unreachable!("an inspector changes nothing")
    }
    fn restrict(&self, _: &str, _: Audience) -> io::Result<()> {
        unreachable!("an inspector changes nothing")
    }
    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        unreachable!("an inspector changes nothing")
    }
    fn remove(&self, _: &str) -> io::Result<()> {
        unreachable!("an inspector changes nothing")
    }
    fn sync_dir(&self, _: &str) -> io::Result<()> {
        unreachable!("an inspector changes nothing")
    }
    fn lock(&self, _: &str) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        unreachable!("an inspector takes no lock")
    }
}

impl DiskFile for BadFile {
    fn byte_len(&self) -> io::Result<u64> {
        self.file.byte_len()
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let end = offset + buffer.len() as u64;
        if offset < self.bad.end && end > self.bad.start {
            return Err(io::Error::from_raw_os_error(5));
        }
        self.file.read_at(buffer, offset)
    }
    fn read_at_now(&self, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        self.read_at(buffer, offset).map(Some)
    }
    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        unreachable!("an inspector changes nothing")
    }
    fn allocate(&self, _: u64) -> io::Result<()> {
        unreachable!("an inspector changes nothing")
    }
    fn set_len(&self, _: u64) -> io::Result<()> {
        unreachable!("an inspector changes nothing")
    }
    fn sync_data(&self) -> io::Result<()> {
        unreachable!("an inspector changes nothing")
    }
    fn sync_all(&self) -> io::Result<()> {
        unreachable!("an inspector changes nothing")
    }
}

/// Proves: blocks that the disk cannot read are damage where they are, also in header and seal; every
/// record beside them is still verified. An inspector never writes, which the disk sees to.
#[tokio::test]
async fn unreadable_blocks_are_damage_and_no_more() {
    let (dir, rows) = closed().await;
    let len = fs::metadata(segment_path(dir.path(), 1)).unwrap().len();
    for bad in [
        8192..12_288,
        4096..8192,
        20_480..40_960,
        0..4096,
        len - 4096..len,
    ] {
        let disk = BadBlocks {
            disk: RealDisk::new(dir.path(), None),
            name: "segments/00000001.seg".to_owned(),
            bad: bad.clone(),
        };
        let inspector = Inspector::open_on(Arc::new(disk), "bad blocks")
            .unwrap()
            .settle_within(Duration::ZERO);
        let found = walk(&inspector);
        assert!(!found.reports[0].is_sound(), "{bad:?}");
        assert!(found.reports[1].is_sound());
        let untouched: Vec<(u32, u32)> = rows
            .iter()
            .map(|row| row.0)
            .filter(|r| {
                let end = u64::from(r.offset()) + 80 + u64::from(r.stored_len());
                r.segment() != 1 || end <= bad.start || u64::from(r.offset()) >= bad.end
            })
            .map(|r| (r.segment(), r.offset()))
            .collect();
        assert_eq!(found.records, untouched, "{bad:?}");
        if bad.start == 8192 {
            assert!(
                found.damaged.iter().any(|d| d.seen.contains("cannot read")),
                "{found:?}"
            );
        }
    }
}
