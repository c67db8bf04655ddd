//! Does what a plan says, each step durable before the next.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::super::Inspector;
use super::{Mend, NewSeal, Plan, QUARANTINE, Repair, Step};
use crate::disk::{Audience, Disk, DiskFile};
use crate::error::{Kind, StoreError};
use crate::format::bytes::{all_zero, array_at};
use crate::format::record::{self, HEADER_LEN};
use crate::format::segment::{
    BLOCK_LEN, FILE_LEN_UNIT, MAX_FILE_LEN, MIN_FILE_LEN, RECORDS_START, Seal, SegmentHeader,
};
use crate::format::superblock;
use crate::recover::Window;
use crate::store::open::{read_small, write_whole};
use crate::store::segments::{self, FOLDER};

const COPY_LEN: u64 = 1 << 20;
/// Names that are tried for one thing put aside.
const MAX_SAME_NAME: u32 = 10_000;

impl Repair {
    /// Does what `plan` says. A crash in the middle leaves a store of which a new plan can be made.
    ///
    /// # Errors
    /// `Io` and `Full` as the disk has it; `Corrupt` when a record of the copy does not verify any
    /// more.
    pub fn run(&self, plan: &Plan) -> Result<(), StoreError> {
        for step in &plan.steps {
            self.step(step)?;
        }
        Ok(())
    }

    fn disk(&self) -> &dyn Disk {
        &*self.inspector.disk
    }

    fn step(&self, step: &Step) -> Result<(), StoreError> {
        let about = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| StoreError::io(what, &error)
        };
        match step {
            Step::Quarantine { name, .. } => self
                .put_aside(name)
                .map_err(about(&format!("moving segments/{name} aside"))),
            Step::Reserve { segment } => self
                .reserve(*segment)
                .map_err(about(&format!("reserving segment {segment:08x}"))),
            Step::CopyFile { name } => self
                .copy_file(name)
                .map_err(about(&format!("copying {name}"))),
            Step::CopySegment { segment } => self
                .copy_segment(*segment)
                .map_err(about(&format!("copying segment {segment:08x}"))),
            Step::Mend(mend) => self.mend(mend),
        }
    }

    fn make_quarantine(&self) -> io::Result<()> {
        self.disk().create_dir(QUARANTINE, Audience::Owner)?;
        self.disk().sync_dir("")
    }

    fn put_aside(&self, name: &str) -> io::Result<()> {
        self.put_aside_from(&format!("{FOLDER}/{name}"), name)?;
        self.disk().sync_dir(FOLDER)
    }

    fn put_aside_from(&self, from: &str, name: &str) -> io::Result<()> {
        self.make_quarantine()?;
        new_name(name, |to| self.disk().rename(from, to))?;
        self.disk().sync_dir(QUARANTINE)
    }

    /// Superblock or key: small, and whole or not there.
    fn copy_file(&self, name: &str) -> io::Result<()> {
        let Some(copy) = &self.copy else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let bytes = read_small(&*copy.disk, name, superblock::MAX_LEN)?;
        match self.put_aside_from(name, name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // The store gives the superblock its group when it opens.
        write_whole(self.disk(), name, Audience::Owner, &bytes)
    }

    /// Writes bytes of a segment aside before they are overwritten or cut off, unless they are zero.
    fn keep(&self, segment: u32, file: &dyn DiskFile, start: u64, stop: u64) -> io::Result<()> {
        let mut kept: Option<Arc<dyn DiskFile>> = None;
        let mut window = Window::over_damage(file, stop);
        let mut at = start;
        while at < stop {
            let bytes = window.slice(at, (stop - at).min(COPY_LEN) as usize)?;
            if bytes.is_empty() {
                break;
            }
            if kept.is_none() && !all_zero(bytes) {
                self.make_quarantine()?;
                let name = format!("{segment:08x}.seg.at-{start}");
                kept = Some(new_name(&name, |to| {
                    self.disk().create(to, Audience::Owner)
                })?);
            }
            if let Some(kept) = &kept {
                kept.write_at(bytes, at - start)?;
            }
            at += bytes.len() as u64;
        }
        if let Some(kept) = kept {
            kept.sync_all()?;
            self.disk().sync_dir(QUARANTINE)?;
        }
        Ok(())
    }

    fn reserve(&self, segment: u32) -> io::Result<()> {
        let made = segments::make(
            self.disk(),
            &self.inspector.store_id,
            segment,
            MIN_FILE_LEN,
            &AtomicBool::new(false),
        )?;
        let empty = NewSeal {
            tail: made.tail,
            records: 0,
            recovered: true,
            file_len: u64::from(RECORDS_START) + FILE_LEN_UNIT,
        };
        self.seal(segment, &*made.file, &empty)
    }

    fn copy_segment(&self, segment: u32) -> io::Result<()> {
        let Some(copy) = &self.copy else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let source = copy.open_segment(segment)?;
        let draft = format!("{FOLDER}/{segment:08x}.tmp");
        match self.disk().remove(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let target = self.disk().create(&draft, Audience::Server)?;
        let mut at = 0;
        let mut bytes = vec![0u8; COPY_LEN as usize];
        loop {
            let read = source.read_at(&mut bytes, at)?;
            if read == 0 {
                break;
            }
            target.write_at(&bytes[..read], at)?;
            at += read as u64;
        }
        target.sync_all()?;
        self.disk().rename(&draft, &segments::file_name(segment))?;
        self.disk().sync_dir(FOLDER)
    }

    fn mend(&self, mend: &Mend) -> Result<(), StoreError> {
        let segment = mend.segment;
        let failed = |error: io::Error| {
            StoreError::io(format_args!("repairing segment {segment:08x}"), &error)
        };
        let name = segments::file_name(segment);
        let file = self.disk().open(&name, true).map_err(failed)?;
        let old_len = file.byte_len().map_err(failed)?;
        if let Some(seal) = &mend.seal {
            self.clear_old_end(segment, &*file, old_len, seal)
                .map_err(failed)?;
        }
        for (offset, len) in &mend.restored {
            let bytes = self.record_of_copy(segment, *offset, *len)?;
            let start = u64::from(*offset);
            self.keep(segment, &*file, start, (start + len).min(old_len))
                .and_then(|()| file.write_at(&bytes, start))
                .map_err(failed)?;
        }
        if !mend.restored.is_empty() {
            file.sync_all().map_err(failed)?;
        }
        if mend.header {
            self.write_header(segment, &*file, old_len)
                .map_err(failed)?;
        }
        match &mend.seal {
            Some(seal) => self.seal(segment, &*file, seal).map_err(failed),
            None => Ok(()),
        }
    }

    /// Makes room for records where the old seal stands, when the file gets longer; and keeps what
    /// the new seal overwrites and what is cut off.
    fn clear_old_end(
        &self,
        segment: u32,
        file: &dyn DiskFile,
        old_len: u64,
        seal: &NewSeal,
    ) -> io::Result<()> {
        let seal_start = segments::records_end(seal.file_len);
        self.keep(segment, file, seal_start, old_len)?;
        let Some(old_seal) = old_len.checked_sub(BLOCK_LEN as u64) else {
            return Ok(());
        };
        let mut block = [0u8; BLOCK_LEN];
        if file.read_at(&mut block, old_seal).is_err() {
            // What the disk cannot read is no seal.
            return Ok(());
        }
        let store_id = &self.inspector.store_id;
        let is_seal = !matches!(
            Seal::read(&block, store_id, segment),
            crate::format::segment::Found::Damaged | crate::format::segment::Found::Absent
        );
        if is_seal && seal.file_len > old_len {
            file.write_at(&[0u8; BLOCK_LEN], old_seal)?;
        }
        Ok(())
    }

    fn write_header(&self, segment: u32, file: &dyn DiskFile, old_len: u64) -> io::Result<()> {
        self.keep(segment, file, 0, RECORDS_START.into())?;
        let header = SegmentHeader {
            store_id: self.inspector.store_id,
            segment,
            // How long it was made is not known any more, and only counts while it is open.
            file_len: old_len
                .next_multiple_of(FILE_LEN_UNIT)
                .clamp(MIN_FILE_LEN, MAX_FILE_LEN),
        };
        let mut block = [0u8; RECORDS_START as usize];
        block[..BLOCK_LEN].copy_from_slice(&header.to_block());
        file.write_at(&block, 0)?;
        file.sync_data()
    }

    fn seal(&self, segment: u32, file: &dyn DiskFile, new: &NewSeal) -> io::Result<()> {
        let seal = Seal {
            store_id: self.inspector.store_id,
            segment,
            tail: new.tail,
            records: new.records,
            recovered: new.recovered,
        };
        // Everything that it vouches for comes first.
        file.sync_all()?;
        file.write_at(&seal.to_block(), segments::records_end(new.file_len))?;
        file.sync_data()?;
        file.set_len(new.file_len)?;
        file.sync_all()
    }

    /// A record of the copy, padded, verified once more.
    fn record_of_copy(&self, segment: u32, offset: u32, len: u64) -> Result<Vec<u8>, StoreError> {
        let Some(copy) = &self.copy else {
            return Err(StoreError::new(
                Kind::Bug,
                "a plan without a copy restores records",
            ));
        };
        let bytes = raw_record(copy, segment, offset, len)
            .map_err(|error| StoreError::io(format_args!("reading {}", copy.shown), &error))?;
        let verifies = bytes.len() as u64 == len && {
            let header = array_at(&bytes, 0);
            record::claimed_stored_len(&header, segment, offset)
                .and_then(|stored_len| bytes.get(HEADER_LEN..HEADER_LEN + stored_len))
                .is_some_and(|payload| record::verifies(&copy.store_id, &header, payload))
        };
        if !verifies {
            return Err(StoreError::corrupt(
                segment,
                offset,
                "the copy does not verify any more",
            ));
        }
        Ok(bytes)
    }
}

/// `len` is the footprint of a record that was walked over: 80 bytes to a little over 1 MiB.
fn raw_record(copy: &Inspector, segment: u32, offset: u32, len: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0u8; len as usize];
    let read = copy
        .open_segment(segment)?
        .read_at(&mut bytes, offset.into())?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Does something with the first name of this kind that is not taken.
fn new_name<T>(name: &str, mut make: impl FnMut(&str) -> io::Result<T>) -> io::Result<T> {
    let mut made = make(&format!("{QUARANTINE}/{name}"));
    for n in 1..MAX_SAME_NAME {
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                made = make(&format!("{QUARANTINE}/{name}.{n}"));
            }
            other => return other,
        }
    }
    made
}
