//! How far a walk over the store is, on a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use toastrack_offload::inspect::{Inspector, Pace};

use crate::error::CommandError;

/// A bar over the bytes of all segments. Shown on a terminal only.
pub(super) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar over `total` bytes.
    pub(super) fn new(total: u64) -> Progress {
        let style = ProgressStyle::with_template(
            "{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta} left",
        )
        .unwrap_or_else(|_| ProgressStyle::default_bar());
        Progress {
            bar: ProgressBar::new(total).with_style(style),
        }
    }

    /// A pace that moves the bar.
    pub(super) fn pace(&self, max_rate: Option<u64>) -> Pace {
        let bar = self.bar.clone();
        Pace::new(max_rate, move |bytes| bar.inc(bytes))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Bytes of all segment files.
pub(super) fn total_bytes(inspector: &Inspector) -> Result<u64, CommandError> {
    inspector.total_bytes().map_err(CommandError::failed)
}
