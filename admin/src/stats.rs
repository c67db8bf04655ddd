//! The statistics document: every field of `GET /api/v1/stats`.
//!
//! Counters count since the process started and only grow. Sizes are bytes, times are seconds.
//! Fields may be added in later versions; none changes its meaning within `/api/v1`.
//! Proof: tests/documents.rs holds `openapi.json` to these fields, both ways.

use std::collections::BTreeMap;

use serde::Serialize;

/// Everything the process counts, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Version of the running program.
    pub version: String,
    /// Seconds since the process started serving.
    pub uptime_seconds: u64,
    /// Client sessions of the proxy.
    pub sessions: SessionStats,
    /// The chunk store.
    pub store: StoreSection,
    /// The detoast cache.
    pub cache: CacheSection,
    /// Traffic through the proxy.
    pub proxy: ProxySection,
    /// The endpoint that answers `toastrack.detoast` for the server.
    pub resolver: ResolverSection,
    /// One entry for each offloaded column that saw traffic since the start.
    pub columns: Vec<ColumnStats>,
}

/// Client sessions of the proxy.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SessionStats {
    /// Sessions open now.
    pub active: u64,
    /// Most sessions that are served at a time.
    pub limit: u64,
    /// Sessions opened since the start.
    pub total: u64,
    /// Connections turned away: over the limit, or too slow to start.
    pub refused: u64,
}

/// Whether the store takes new values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreStatus {
    /// Reads and writes.
    #[default]
    Healthy,
    /// Reads only: new values stay inline in the row.
    ReadOnly,
}

/// The chunk store.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StoreSection {
    /// Whether the store takes new values.
    pub state: StoreStatus,
    /// Why the store is read-only; absent while it is healthy.
    pub state_reason: Option<String>,
    /// Segment files.
    pub segments: u64,
    /// Bytes the segment files take on the disk.
    pub bytes_on_disk: u64,
    /// Values handed to the store, deduplicated ones included.
    pub values_offloaded: u64,
    /// Bytes of those values before deduplication and compression.
    pub logical_bytes: u64,
    /// Bytes of the chunks written for them, record headers excluded.
    pub stored_bytes: u64,
    /// Values that were already there and were shared.
    pub dedup_hits: u64,
    /// Logical bytes that sharing did not write again.
    pub dedup_bytes_saved: u64,
    /// Logical bytes that were written, divided by the bytes they took; 1 when nothing was written.
    pub compression_ratio: f64,
    /// Logical bytes divided by the logical bytes that were written; 1 when nothing was written.
    pub dedup_ratio: f64,
    /// Group commits: one `fdatasync` each.
    pub syncs: u64,
    /// Seconds spent in group commits.
    pub sync_seconds: f64,
    /// Chunks read from segment files.
    pub reads: u64,
    /// Reads that ended in an error, corruption included.
    pub read_errors: u64,
}

/// The detoast cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CacheSection {
    /// Look-ups that found the value.
    pub hits: u64,
    /// Look-ups that did not.
    pub misses: u64,
    /// Hits divided by look-ups; 0 before the first look-up.
    pub hit_rate: f64,
    /// Values held now.
    pub entries: u64,
    /// Bytes held now, the overhead of entries included.
    pub bytes: u64,
    /// Most bytes that are held.
    pub capacity_bytes: u64,
    /// Values dropped to make room.
    pub evictions: u64,
}

/// Traffic through the proxy.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ProxySection {
    /// Bytes received from clients.
    pub client_bytes_in: u64,
    /// Bytes sent to clients.
    pub client_bytes_out: u64,
    /// Bytes received from the server.
    pub server_bytes_in: u64,
    /// Bytes sent to the server.
    pub server_bytes_out: u64,
    /// Statements in which a parameter was declared or a literal replaced.
    pub statements_rewritten: u64,
    /// Values of offloaded columns that stayed in the row, by reason.
    pub values_left_inline: BTreeMap<String, u64>,
    /// References in results that were replaced by their value.
    pub values_resolved: u64,
    /// References in results that could not be resolved; the client got an error.
    pub resolve_errors: u64,
}

/// The endpoint that answers `toastrack.detoast` for the server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ResolverSection {
    /// Connections open now.
    pub connections_active: u64,
    /// Connections accepted since the start.
    pub connections_total: u64,
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
}

/// One offloaded column.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ColumnStats {
    /// Database the column is in.
    pub database: String,
    /// Schema of the table.
    pub schema: String,
    /// Name of the table.
    pub table: String,
    /// Name of the column.
    pub column: String,
    /// Plain type of the column: `text`, `varchar`, `json`, `jsonb` or `bytea`.
    pub kind: String,
    /// Values replaced by a reference on the way in.
    pub values_offloaded: u64,
    /// Bytes of those values.
    pub bytes_offloaded: u64,
    /// References replaced by their value on the way out.
    pub values_resolved: u64,
    /// Bytes of those values.
    pub bytes_resolved: u64,
    /// Values that stayed in the row, for whatever reason.
    pub left_inline: u64,
}

/// `whole / part`, the form in which compression and deduplication are told.
///
/// 1 when either is 0, since then nothing was saved.
pub fn ratio(whole: u64, part: u64) -> f64 {
    if whole == 0 || part == 0 {
        return 1.0;
    }
    whole as f64 / part as f64
}

/// The share of look-ups that were hits, 0 to 1; 0 before the first look-up.
pub fn hit_rate(hits: u64, misses: u64) -> f64 {
    let lookups = hits.saturating_add(misses);
    if lookups == 0 {
        return 0.0;
    }
    hits as f64 / lookups as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that ratios are numbers JSON can carry, whatever the counts are.
    #[test]
    fn ratios_are_always_finite() {
        assert_eq!(ratio(0, 0), 1.0);
        assert_eq!(ratio(10, 0), 1.0);
        assert_eq!(ratio(0, 10), 1.0);
        assert_eq!(ratio(10, 4), 2.5);
        assert_eq!(hit_rate(0, 0), 0.0);
        assert_eq!(hit_rate(3, 1), 0.75);
        assert!(hit_rate(u64::MAX, u64::MAX) <= 1.0);
    }
}
