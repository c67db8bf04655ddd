//! Holds a walk back to so many bytes a second, and tells how far it is.

use std::time::{Duration, Instant};

/// The speed of a walk over segments.
pub struct Pace {
    max_rate: Option<u64>,
    began: Instant,
    bytes: u64,
    on_read: Box<dyn FnMut(u64) + Send>,
}

impl Pace {
    /// Reads at most `max_rate` bytes a second, over the whole walk, and calls `on_read` with the
    /// number of bytes after each read.
    pub fn new(max_rate: Option<u64>, on_read: impl FnMut(u64) + Send + 'static) -> Pace {
        Pace {
            max_rate,
            began: Instant::now(),
            bytes: 0,
            on_read: Box::new(on_read),
        }
    }

    /// As fast as it goes, without a word.
    pub fn unbounded() -> Pace {
        Pace::new(None, |_| {})
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Accounts for `more` bytes; waits until they are due.
    pub(super) fn add(&mut self, more: u64) {
        if more == 0 {
            return;
        }
        self.bytes += more;
        (self.on_read)(more);
        let Some(rate) = self.max_rate.filter(|rate| *rate > 0) else {
            return;
        };
        let due = Duration::from_secs_f64(self.bytes as f64 / rate as f64);
        if let Some(early) = due.checked_sub(self.began.elapsed()) {
            std::thread::sleep(early);
        }
    }
}

impl std::fmt::Debug for Pace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pace")
            .field("max_rate", &self.max_rate)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
