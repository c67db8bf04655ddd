//! The thread that writes batches: one `pwrite` and one `fdatasync` each.

use std::time::Instant;

use super::Shared;
use super::batch::Batch;
use crate::error::StoreError;
use crate::stats::add;

pub(super) fn run(shared: &Shared) {
    let _on_panic = OnPanic(shared);
    while let Some(batch) = shared.pipeline.next_batch() {
        match write(shared, &batch) {
            Ok(()) => shared.pipeline.settle(batch),
            Err(error) => {
                tracing::error!(
                    segment = format_args!("{:08x}", batch.segment),
                    offset = batch.start,
                    bytes = batch.buffer.len(),
                    %error,
                    "segment poisoned, nothing more is written to it"
                );
                add(&shared.counters.write_failures, 1);
                shared.pipeline.fail(&batch, error);
            }
        }
    }
}

fn write(shared: &Shared, batch: &Batch) -> Result<(), StoreError> {
    // An empty batch only carries a seal behind batches that are durable already.
    if batch.buffer.is_empty() {
        return Ok(());
    }
    let failed = |what: &str, error: std::io::Error| {
        StoreError::io(
            format_args!(
                "{what} segment {:08x} at offset {}",
                batch.segment, batch.start
            ),
            &error,
        )
    };
    batch
        .file
        .write_at(batch.buffer.as_slice(), batch.start)
        .map_err(|error| failed("writing", error))?;
    let began = Instant::now();
    batch
        .file
        .sync_data()
        .map_err(|error| failed("syncing", error))?;
    let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    let counters = &shared.counters;
    add(&counters.batches, 1);
    add(&counters.syncs, 1);
    add(&counters.sync_micros, took);
    add(&counters.written_bytes, batch.buffer.len() as u64);
    Ok(())
}

/// Waiters must not wait for a thread that is gone.
struct OnPanic<'a>(&'a Shared);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.pipeline.abandon();
        }
    }
}
