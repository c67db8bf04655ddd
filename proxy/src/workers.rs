//! Threads that serve sessions, each with a runtime of its own.
//!
//! A session stays on its thread: both of its sockets and both of its loops wake up there, where a
//! pool that shares its tasks would send them, and their data, from core to core at every message.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

/// See the module.
pub(crate) struct Workers {
    handles: Vec<Handle>,
    threads: Vec<JoinHandle<()>>,
    next: AtomicUsize,
    stop: CancellationToken,
}

impl Workers {
    /// Starts one thread for every two cores: the others are the server's and the clients', which a
    /// sidecar shares its machine with. A thread that serves many sessions finds several of them
    /// ready whenever it wakes up, and waking up is what a message costs most.
    ///
    /// # Errors
    /// When the system has no thread or descriptor to give.
    pub(crate) fn start() -> io::Result<Workers> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let count = cores.div_ceil(2);
        let stop = CancellationToken::new();
        let mut workers = Workers {
            handles: Vec::new(),
            threads: Vec::new(),
            next: AtomicUsize::new(0),
            stop,
        };
        for number in 0..count {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            workers.handles.push(runtime.handle().clone());
            let stop = workers.stop.clone();
            let name = format!("session-{number}");
            let run = move || runtime.block_on(stop.cancelled());
            workers
                .threads
                .push(thread::Builder::new().name(name).spawn(run)?);
        }
        Ok(workers)
    }

    /// The thread for the next session.
    pub(crate) fn next(&self) -> &Handle {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        &self.handles[number % self.handles.len()]
    }

    /// Ends the threads; tasks that are left are dropped.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        let threads = std::mem::take(&mut self.threads);
        let joined = tokio::task::spawn_blocking(move || {
            threads
                .into_iter()
                .filter_map(|thread| thread.join().err())
                .count()
        });
        match joined.await {
            Ok(0) => {}
            Ok(panicked) => tracing::error!(panicked, "session threads panicked"),
            Err(error) => tracing::error!(%error, "session threads not joined"),
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
