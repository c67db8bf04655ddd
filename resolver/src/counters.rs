//! What the resolver counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one resolver; they outlive it, so that they can be read while it serves.
#[derive(Debug, Default)]
pub struct Counters {
    pub(crate) connections_active: AtomicU64,
    pub(crate) connections_total: AtomicU64,
    pub(crate) connections_refused: AtomicU64,
    pub(crate) logins_refused: AtomicU64,
    pub(crate) values_resolved: AtomicU64,
    pub(crate) bytes_resolved: AtomicU64,
    pub(crate) not_references: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) panics: AtomicU64,
}

/// The counters at one moment; each counts from the start of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResolverStats {
    /// Connections open now.
    pub connections_active: u64,
    /// Connections accepted.
    pub connections_total: u64,
    /// Connections turned away because too many were open.
    pub connections_refused: u64,
    /// Log-ins that failed: another user or a wrong secret.
    pub logins_refused: u64,
    /// References answered with their value.
    pub values_resolved: u64,
    /// Bytes of those values.
    pub bytes_resolved: u64,
    /// Questions about something that is no reference of this store.
    pub not_references: u64,
    /// References that could not be resolved.
    pub errors: u64,
    /// Connections that ended by a panic: each is a bug.
    pub panics: u64,
}

impl Counters {
    /// Reads every counter.
    pub fn snapshot(&self) -> ResolverStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ResolverStats {
            connections_active: read(&self.connections_active),
            connections_total: read(&self.connections_total),
            connections_refused: read(&self.connections_refused),
            logins_refused: read(&self.logins_refused),
            values_resolved: read(&self.values_resolved),
            bytes_resolved: read(&self.bytes_resolved),
            not_references: read(&self.not_references),
            errors: read(&self.errors),
            panics: read(&self.panics),
        }
    }

    pub(crate) fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }
}
