//! What is ready for the server, once the values behind it are durable.
//!
//! Promises: bytes leave only after the tickets of their references are durable (S3). When the store
//!           fails, the messages go as the client sent them (S2).

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use toastrack_offload::{Store, Ticket};

use super::inbox::START_CAPACITY;
use crate::metrics::{InlineReason, Metrics, add};
use crate::server::Writer;

/// See the module.
#[derive(Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    offloads: Vec<Offload>,
    ticket: Option<Ticket>,
    /// Bytes of the originals.
    original_len: usize,
}

/// A message in the outbox that holds references.
struct Offload {
    range: Range<usize>,
    original: Bytes,
    /// Set when the original was sent.
    restored: Arc<AtomicBool>,
}

/// From here on the outbox is sent even while more input is waiting.
const FULL: usize = 256 * 1024;
/// Originals are kept until their references leave; beyond this the outbox is sent.
const MOST_ORIGINAL: usize = 4 * 1024 * 1024;
/// An emptied outbox keeps at most this much room.
const KEPT_CAPACITY: usize = 512 * 1024;

impl Outbox {
    /// Where whole messages are appended.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub(super) fn push(&mut self, frame: &[u8]) {
        self.bytes.extend_from_slice(frame);
    }

    /// Whether it has more room than a session needs that waits.
    pub(super) fn is_roomy(&self) -> bool {
        self.bytes.is_empty() && self.bytes.capacity() > START_CAPACITY
    }

    /// Gives room back.
    pub(super) fn shrink(&mut self) {
        if self.is_roomy() {
            self.bytes = Vec::new();
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= FULL || self.original_len >= MOST_ORIGINAL
    }

    /// Whether sending has to wait for values to be durable.
    pub(super) fn has_references(&self) -> bool {
        !self.offloads.is_empty()
    }

    /// The bytes since `start` are a message with references; `original` is what the client sent.
    /// `restored` is set if the original goes after all.
    pub(super) fn offloaded(
        &mut self,
        start: usize,
        original: Bytes,
        ticket: Ticket,
        restored: Arc<AtomicBool>,
    ) {
        self.original_len += original.len();
        self.offloads.push(Offload {
            range: start..self.bytes.len(),
            original,
            restored,
        });
        self.ticket = self.ticket.max(Some(ticket));
    }

    /// Sends everything. Not cancel-safe: bytes may be lost, the session must end.
    pub(super) async fn flush(
        &mut self,
        writer: &mut Writer<'_>,
        store: &Store,
        metrics: &Metrics,
    ) -> io::Result<()> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        if let Some(ticket) = self.ticket.take()
            && !store.is_durable(ticket)
            && let Err(error) = store.durable(ticket).await
        {
            tracing::error!(%error, values = self.offloads.len(), "values stay inline");
            self.restore_originals(metrics);
        }
        self.offloads.clear();
        self.original_len = 0;
        writer.write_all(&self.bytes).await?;
        add(&metrics.server_bytes_out, self.bytes.len() as u64);
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_CAPACITY);
        Ok(())
    }

    fn restore_originals(&mut self, metrics: &Metrics) {
        for offload in self.offloads.drain(..).rev() {
            metrics.count_inline(InlineReason::Store);
            offload.restored.store(true, Ordering::Relaxed);
            self.bytes
                .splice(offload.range, offload.original.iter().copied());
        }
    }
}
