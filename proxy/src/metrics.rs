//! What the proxy counts.
//!
//! Counters are relaxed atomics: each is right on its own, a set of them is not a snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Counters of one proxy, since it started.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Sessions open now.
    pub sessions_active: AtomicU64,
    /// Sessions accepted.
    pub sessions_total: AtomicU64,
    /// Connections refused: too many sessions, or no server.
    pub sessions_refused: AtomicU64,
    /// Bytes read from frontends.
    pub client_bytes_in: AtomicU64,
    /// Bytes written to frontends.
    pub client_bytes_out: AtomicU64,
    /// Bytes read from the server.
    pub server_bytes_in: AtomicU64,
    /// Bytes written to the server.
    pub server_bytes_out: AtomicU64,
    /// Parse and Query messages forwarded with a changed text or changed parameter types.
    pub statements_rewritten: AtomicU64,
    /// References swapped for their values.
    pub values_resolved: AtomicU64,
    /// References that could not be swapped; each ended its statement with an error.
    pub resolve_errors: AtomicU64,
    inline: [AtomicU64; InlineReason::ALL.len()],
    columns: Mutex<BTreeMap<ColumnKey, Arc<ColumnCounters>>>,
}

/// Names a column across databases.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ColumnKey {
    /// Database.
    pub database: String,
    /// Schema of the table.
    pub schema: String,
    /// Table.
    pub table: String,
    /// Column.
    pub column: String,
    /// The plain type: `text`, `varchar`, `json`, `jsonb` or `bytea`.
    pub kind: &'static str,
}

/// Counters of one column.
#[derive(Debug, Default)]
pub struct ColumnCounters {
    /// Values put into the store.
    pub values_offloaded: AtomicU64,
    /// Their logical bytes.
    pub bytes_offloaded: AtomicU64,
    /// References swapped for values.
    pub values_resolved: AtomicU64,
    /// The bytes of these values.
    pub bytes_resolved: AtomicU64,
    /// Values over the threshold that stayed in the row.
    pub left_inline: AtomicU64,
}

/// Why a value over its threshold stayed in the row (S2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InlineReason {
    /// Larger than the store takes in one piece.
    TooLarge,
    /// Not certainly what Postgres accepts for the type; Postgres judges it.
    Doubtful,
    /// The client's encoding is not UTF-8.
    Encoding,
    /// The store is full, read-only or failed.
    Store,
    /// More characters than `varchar(n)` allows; Postgres judges it.
    TypeModifier,
}

impl InlineReason {
    /// Every reason, in the order of their counters.
    pub const ALL: [InlineReason; 5] = [
        InlineReason::TooLarge,
        InlineReason::Doubtful,
        InlineReason::Encoding,
        InlineReason::Store,
        InlineReason::TypeModifier,
    ];

    /// The label in metrics.
    pub fn label(self) -> &'static str {
        match self {
            InlineReason::TooLarge => "too_large",
            InlineReason::Doubtful => "doubtful",
            InlineReason::Encoding => "encoding",
            InlineReason::Store => "store",
            InlineReason::TypeModifier => "type_modifier",
        }
    }
}

impl Metrics {
    /// Values left inline for one reason.
    pub fn left_inline(&self, reason: InlineReason) -> u64 {
        self.inline[reason as usize].load(Ordering::Relaxed)
    }

    /// Every column seen so far with its counters, by name.
    pub fn columns(&self) -> Vec<(ColumnKey, Arc<ColumnCounters>)> {
        let columns = self.columns.lock();
        columns
            .iter()
            .map(|(key, counters)| (key.clone(), Arc::clone(counters)))
            .collect()
    }

    /// The counters of a column, made at its first use.
    pub(crate) fn column(&self, key: ColumnKey) -> Arc<ColumnCounters> {
        Arc::clone(self.columns.lock().entry(key).or_default())
    }

    pub(crate) fn count_inline(&self, reason: InlineReason) {
        add(&self.inline[reason as usize], 1);
    }
}

pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
