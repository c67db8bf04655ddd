//! A disk in memory that keeps what was written apart from what was synced, fails calls on demand,
//! and loses power.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use toastrack_offload::disk::{Audience, Disk, DiskFile};

/// Calls that can be failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Write,
    Sync,
    Create,
    Rename,
    SyncDir,
}

/// A rule: from the `after`-th matching call on, `times` calls fail with `errno`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) call: Call,
    pub(crate) after: usize,
    pub(crate) times: usize,
    pub(crate) errno: i32,
}

pub(crate) const EIO: i32 = 5;
pub(crate) const ENOSPC: i32 = 28;
/// Instead of an error number: the call panics.
pub(crate) const PANIC: i32 = -1;

#[derive(Clone, Default)]
pub(crate) struct SimDisk {
    machine: Arc<Machine>,
}

#[derive(Default)]
struct Machine {
    state: Mutex<State>,
    locked: Arc<AtomicBool>,
}

#[derive(Default)]
struct State {
    names: BTreeMap<String, Arc<Mutex<Content>>>,
    /// The names as of the last `sync_dir` of their folder.
    synced_names: BTreeMap<String, Arc<Mutex<Content>>>,
    faults: Vec<Fault>,
    /// Power goes before the call of this number.
    power_left: Option<usize>,
    calls: usize,
    overwriting: bool,
}

#[derive(Clone, Default)]
struct Content {
    now: Vec<u8>,
    synced: Vec<u8>,
    /// Sectors that the next sync writes.
    dirty: BTreeSet<usize>,
}

const SECTOR: usize = 512;

impl Content {
    fn write(&mut self, bytes: &[u8], at: usize) {
        let end = at + bytes.len();
        if self.now.len() < end {
            self.now.resize(end, 0);
        }
        self.now[at..end].copy_from_slice(bytes);
        self.dirty.extend(at / SECTOR..end.div_ceil(SECTOR));
    }

    fn sync(&mut self) {
        self.synced.resize(self.now.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            let start = (sector * SECTOR).min(self.now.len());
            let end = (start + SECTOR).min(self.now.len());
            self.synced[start..end].copy_from_slice(&self.now[start..end]);
        }
    }

    fn forget_dirty(&mut self) {
        self.dirty.clear();
    }
}

impl SimDisk {
    pub(crate) fn fail(&self, fault: Fault) {
        self.machine.state.lock().faults.push(fault);
    }

    pub(crate) fn heal(&self) {
        self.machine.state.lock().faults.clear();
    }

    /// Lets `calls` more changing calls through; the rest fail and change nothing.
    pub(crate) fn lose_power_after(&self, calls: usize) {
        self.machine.state.lock().power_left = Some(calls);
    }

    /// Changing calls so far.
    pub(crate) fn calls(&self) -> usize {
        self.machine.state.lock().calls
    }

    /// Lets durable bytes be written over, as a repair does with damaged ones.
    pub(crate) fn allow_overwriting(&self) {
        self.machine.state.lock().overwriting = true;
    }

    /// Flips bits of a byte, on the medium and in memory.
    pub(crate) fn flip(&self, name: &str, at: usize, mask: u8) {
        let file = Arc::clone(&self.machine.state.lock().names[name]);
        let mut content = file.lock();
        content.now[at] ^= mask;
        content.synced[at] ^= mask;
    }

    /// The disk after the power came back: of what was not synced, each sector and each change of a
    /// name is there or not as the seed has it.
    pub(crate) fn after_power_loss(&self, seed: u64) -> SimDisk {
        let mut random = seed | 1;
        let mut coin = move || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 40) & 1 == 0
        };
        let state = self.machine.state.lock();
        let mut names = state.synced_names.clone();
        for (name, file) in &state.names {
            if !names.contains_key(name) && coin() {
                names.insert(name.clone(), Arc::clone(file));
            }
        }
        for name in state.synced_names.keys() {
            if !state.names.contains_key(name) && coin() {
                names.remove(name);
            }
        }
        let torn: BTreeMap<_, _> = names
            .into_iter()
            .map(|(name, file)| {
                let content = torn(&file.lock(), &mut coin);
                (name, Arc::new(Mutex::new(content)))
            })
            .collect();
        SimDisk {
            machine: Arc::new(Machine {
                state: Mutex::new(State {
                    synced_names: torn.clone(),
                    names: torn,
                    ..State::default()
                }),
                locked: Arc::default(),
            }),
        }
    }

    fn change(&self, call: Call) -> io::Result<()> {
        self.machine.change(call)
    }
}

fn torn(content: &Content, coin: &mut impl FnMut() -> bool) -> Content {
    let len = if coin() {
        content.now.len()
    } else {
        content.synced.len()
    };
    let mut after = vec![0u8; len];
    for start in (0..len).step_by(SECTOR) {
        let end = (start + SECTOR).min(len);
        let from = if coin() {
            &content.now
        } else {
            &content.synced
        };
        let available = end.min(from.len()).max(start);
        if start < from.len() {
            after[start..available].copy_from_slice(&from[start..available]);
        }
    }
    Content {
        synced: after.clone(),
        now: after,
        dirty: BTreeSet::new(),
    }
}

impl Machine {
    fn change(&self, call: Call) -> io::Result<()> {
        let mut state = self.state.lock();
        state.calls += 1;
        if let Some(left) = &mut state.power_left {
            match left.checked_sub(1) {
                Some(less) => *left = less,
                None => return Err(io::Error::from_raw_os_error(EIO)),
            }
        }
        for fault in state.faults.iter_mut().filter(|fault| fault.call == call) {
            if let Some(less) = fault.after.checked_sub(1) {
                fault.after = less;
            } else if let Some(less) = fault.times.checked_sub(1) {
                fault.times = less;
                assert_ne!(fault.errno, PANIC, "as the test asked");
                return Err(io::Error::from_raw_os_error(fault.errno));
            }
        }
        Ok(())
    }
}

struct SimFile {
    machine: Arc<Machine>,
    content: Arc<Mutex<Content>>,
}

struct Lock(Arc<AtomicBool>);

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl Disk for SimDisk {
    fn open(&self, name: &str, _write: bool) -> io::Result<Arc<dyn DiskFile>> {
        let state = self.machine.state.lock();
        let content = state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(SimFile {
            machine: Arc::clone(&self.machine),
            content: Arc::clone(content),
        }))
    }

    fn create(&self, name: &str, _audience: Audience) -> io::Result<Arc<dyn DiskFile>> {
        self.change(Call::Create)?;
        let mut state = self.machine.state.lock();
        if state.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let content = Arc::<Mutex<Content>>::default();
        state.names.insert(name.to_owned(), Arc::clone(&content));
        Ok(Arc::new(SimFile {
            machine: Arc::clone(&self.machine),
            content,
        }))
    }

    fn create_dir(&self, _name: &str, _audience: Audience) -> io::Result<()> {
        Ok(())
    }

    fn restrict(&self, _name: &str, _audience: Audience) -> io::Result<()> {
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.change(Call::Rename)?;
        let mut state = self.machine.state.lock();
        if state.names.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.change(Call::Rename)?;
        let mut state = self.machine.state.lock();
        state.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(())
    }

    fn list(&self, name: &str) -> io::Result<Vec<String>> {
        let state = self.machine.state.lock();
        Ok(state
            .names
            .keys()
            .filter_map(|path| match path.rsplit_once('/') {
                Some((folder, file)) => (folder == name).then(|| file.to_owned()),
                None => name.is_empty().then(|| path.clone()),
            })
            .collect())
    }

    fn sync_dir(&self, name: &str) -> io::Result<()> {
        self.change(Call::SyncDir)?;
        let mut state = self.machine.state.lock();
        let inside = |path: &str| path.rsplit_once('/').map_or("", |(folder, _)| folder) == name;
        let State {
            names,
            synced_names,
            ..
        } = &mut *state;
        synced_names.retain(|path, _| !inside(path));
        for (path, file) in names.iter().filter(|(path, _)| inside(path)) {
            synced_names.insert(path.clone(), Arc::clone(file));
        }
        Ok(())
    }

    fn lock(&self, _name: &str) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        if self.machine.locked.swap(true, Ordering::SeqCst) {
            return Ok(None);
        }
        Ok(Some(Box::new(Lock(Arc::clone(&self.machine.locked)))))
    }
}

impl DiskFile for SimFile {
    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.content.lock().now.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let content = self.content.lock();
        let from = (offset as usize).min(content.now.len());
        let read = buffer.len().min(content.now.len() - from);
        buffer[..read].copy_from_slice(&content.now[from..from + read]);
        Ok(read)
    }

    fn read_at_now(&self, buffer: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        let read = self.read_at(buffer, offset)?;
        Ok((read == buffer.len()).then_some(read))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let failed = self.machine.change(Call::Write);
        let overwriting = self.machine.state.lock().overwriting;
        let mut content = self.content.lock();
        // What is durable is never written over: a sector that tears could take it along.
        let durable = content.synced.get(offset as usize..).unwrap_or_default();
        for (at, (new, durable)) in bytes.iter().zip(durable).enumerate() {
            let kept = new == durable || *durable == 0 || overwriting;
            assert!(kept, "byte {at} at {offset}");
        }
        // A write that fails may have done half of its work.
        let done = if failed.is_ok() {
            bytes.len()
        } else {
            bytes.len() / 2
        };
        content.write(&bytes[..done], offset as usize);
        failed
    }

    fn allocate(&self, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.machine.change(Call::Write)?;
        self.content.lock().now.resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let failed = self.machine.change(Call::Sync);
        let mut content = self.content.lock();
        if failed.is_ok() {
            content.sync();
        } else {
            // As Linux does: the pages count as clean from now on, so a later sync does not write
            // them, although reads still see them.
            content.forget_dirty();
        }
        failed
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync_data()
    }
}
