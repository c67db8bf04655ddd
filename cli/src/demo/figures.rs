//! What the demo measured, and the table that shows it.

use std::fmt;
use std::time::Duration;

use super::compare::Comparison;
use crate::output::readable_size;

/// What was measured in all.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) rows: u64,
    pub(crate) logical_bytes: u64,
    pub(crate) direct: SideFigures,
    pub(crate) through: SideFigures,
    /// Bytes of records in the store's segments.
    pub(crate) store_bytes: u64,
    pub(crate) values_in_store: u64,
    /// Of the timed reads.
    pub(crate) cache_hits: u64,
    pub(crate) cache_misses: u64,
    /// How the plain table's large values are compressed: `lz4` or `pglz`.
    pub(crate) compression: String,
    pub(crate) binary: Comparison,
    pub(crate) text: Comparison,
    /// Compared by SQL in the server, without the proxy.
    pub(crate) sql: Comparison,
}

/// What was measured on one side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SideFigures {
    /// Bytes of the table with its TOAST table and indexes.
    pub(crate) server_bytes: u64,
    /// Bytes of write-ahead log that the writing made.
    pub(crate) wal_bytes: u64,
    pub(crate) write: Duration,
    /// The median of several reads of the whole table.
    pub(crate) read: Duration,
}

impl Figures {
    /// Rows that are not the same on both sides.
    pub(crate) fn different(&self) -> u64 {
        self.binary.different + self.text.different + self.sql.different
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (direct, through) = (&self.direct, &self.through);
        let none = || "-".to_owned();
        let lookups = self.cache_hits + self.cache_misses;
        let hit_rate = match lookups {
            0 => none(),
            _ => format!("{:.1} %", self.cache_hits as f64 * 100.0 / lookups as f64),
        };
        let both = |value: String| (value.clone(), value);
        let lines = [
            (
                "",
                (
                    format!("direct ({})", self.compression),
                    "through Toastrack".to_owned(),
                ),
            ),
            ("rows", both(self.rows.to_string())),
            ("logical bytes", both(readable_size(self.logical_bytes))),
            (
                "bytes in Postgres",
                (
                    readable_size(direct.server_bytes),
                    readable_size(through.server_bytes),
                ),
            ),
            (
                "bytes in the store",
                (none(), readable_size(self.store_bytes)),
            ),
            (
                "values in the store",
                (none(), self.values_in_store.to_string()),
            ),
            (
                "WAL written",
                (
                    readable_size(direct.wal_bytes),
                    readable_size(through.wal_bytes),
                ),
            ),
            ("write", (seconds(direct.write), seconds(through.write))),
            ("read, warm", (seconds(direct.read), seconds(through.read))),
            ("cache hit rate", (none(), hit_rate)),
        ];
        for (name, (direct, through)) in lines {
            writeln!(f, "  {name:<20}{direct:>14}{through:>20}")?;
        }
        writeln!(f)?;
        match self.different() {
            0 => write!(
                f,
                "  {} rows compared in binary format, {} in text format, {} by SQL in the server:\n  \
                 identical, byte for byte",
                self.binary.rows, self.text.rows, self.sql.rows
            ),
            different => write!(f, "  {different} rows DIFFER"),
        }
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.3} s", duration.as_secs_f64())
}
