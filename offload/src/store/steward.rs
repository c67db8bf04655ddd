//! The thread that makes the next segment before it is needed and seals the ones that are full.

use std::sync::atomic::Ordering;

use super::pipeline::Chore;
use super::segments::{self, OpenSegment};
use super::{Shared, batch::SealJob};
use crate::error::{Kind, StoreError};
use crate::format::segment::RECORDS_START;
use crate::stats::add;

pub(super) fn run(shared: &Shared) {
    let _on_panic = OnPanic(shared);
    loop {
        match shared.pipeline.next_chore() {
            Chore::Seal(job) => seal(shared, &job),
            Chore::MakeSegment => match shared.make_segment() {
                Ok(made) => shared.pipeline.supply(made),
                Err(error) => {
                    let is_news = shared.pipeline.supply_failed(error.clone());
                    // An interruption is the store closing.
                    if is_news && !shared.stop.load(Ordering::Relaxed) {
                        tracing::error!(%error, "no new segment");
                    }
                }
            },
            Chore::End => return,
        }
    }
}

fn seal(shared: &Shared, job: &SealJob) {
    add(
        &shared.sizes.ended_bytes,
        job.tail - u64::from(RECORDS_START),
    );
    let sealed = segments::seal(
        &shared.store_id,
        job.segment,
        &*job.file,
        job.tail,
        job.records,
        job.end,
    );
    if let Err(error) = sealed {
        // Its records are durable; the next open scans it and seals it then.
        tracing::warn!(
            segment = format_args!("{:08x}", job.segment),
            %error,
            "segment stays without a seal"
        );
    }
}

impl Shared {
    /// Makes a segment under a new number.
    pub(super) fn make_segment(&self) -> Result<OpenSegment, StoreError> {
        loop {
            let segment = self.take_segment_number()?;
            let len = self.options.segment_len_bytes;
            match segments::make(&*self.disk, &self.store_id, segment, len, &self.stop) {
                Ok(made) => {
                    add(&self.sizes.segments, 1);
                    add(&self.sizes.segment_bytes, len);
                    return Ok(made);
                }
                // Somebody else's: every writer makes its own.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    let what = format_args!("making segment {segment:08x}");
                    return Err(StoreError::io(what, &error));
                }
            }
        }
    }
}

/// Without this thread there is no next segment.
struct OnPanic<'a>(&'a Shared);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let error = StoreError::new(Kind::Bug, "the steward thread panicked");
            self.0.pipeline.supply_failed(error);
        }
    }
}
