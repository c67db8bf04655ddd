//! The Prometheus text of `GET /metrics`.
//!
//! Owns:       the list of metrics, [`METRICS`]; names, kinds, units and labels stand only there.
//! Promises:   each metric is announced in every answer, also while it has no sample; the number of
//!             series is bounded, whatever the catalog holds (M1).
//! Format:     Prometheus text exposition format 0.0.4
//! Proof:      tests/documents.rs holds docs/metrics.md to the list, both ways.
//!
//! Written by hand rather than with a metrics registry: the counters live where they are counted,
//! and a snapshot of plain numbers needs no second set of atomics to be copied into.

use std::fmt::Write as _;

use crate::stats::{ColumnStats, StoreStatus};
use crate::{Readiness, Stats};

/// Most columns with series of their own (M1); the busiest are kept, the others counted.
const MAX_COLUMNS: usize = 1_000;

/// One metric family.
pub struct Metric {
    /// Name, with the unit last.
    pub name: &'static str,
    /// Counter or gauge.
    pub kind: MetricKind,
    /// Unit of a sample, for people: `bytes`, `seconds`, `values`, `1` for a flag.
    pub unit: &'static str,
    /// Names of its labels, in the order in which they are written.
    pub labels: &'static [&'static str],
    help: &'static str,
    sample: fn(&Snapshot<'_>, &mut Samples<'_>),
}

/// How a metric moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows, from 0 at the start of the process.
    Counter,
    /// Goes up and down.
    Gauge,
}

impl MetricKind {
    /// The word for it in the exposition format.
    pub fn as_str(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        }
    }
}

/// Writes every metric in the Prometheus text format.
pub fn encode(stats: &Stats, readiness: &Readiness) -> String {
    let snapshot = Snapshot {
        stats,
        readiness,
        columns: busiest(&stats.columns),
    };
    let mut text = String::with_capacity(8 << 10);
    for metric in METRICS {
        push_line(
            &mut text,
            format_args!("# HELP {} {}", metric.name, metric.help),
        );
        push_line(
            &mut text,
            format_args!("# TYPE {} {}", metric.name, metric.kind.as_str()),
        );
        (metric.sample)(
            &snapshot,
            &mut Samples {
                metric,
                text: &mut text,
            },
        );
    }
    text
}

struct Snapshot<'a> {
    stats: &'a Stats,
    readiness: &'a Readiness,
    columns: Vec<&'a ColumnStats>,
}

impl Snapshot<'_> {
    fn each_column(&self, out: &mut Samples<'_>, count: fn(&ColumnStats) -> u64) {
        for column in &self.columns {
            out.labelled(
                &[
                    &column.database,
                    &column.schema,
                    &column.table,
                    &column.column,
                    &column.kind,
                ],
                count(column) as f64,
            );
        }
    }
}

/// Where the samples of one metric go.
struct Samples<'a> {
    metric: &'static Metric,
    text: &'a mut String,
}

impl Samples<'_> {
    fn count(&mut self, value: u64) {
        self.labelled(&[], value as f64);
    }

    fn number(&mut self, value: f64) {
        self.labelled(&[], value);
    }

    fn labelled(&mut self, values: &[&str], value: f64) {
        self.text.push_str(self.metric.name);
        let mut opening = '{';
        for (label, label_value) in self.metric.labels.iter().zip(values) {
            self.text.push(opening);
            self.text.push_str(label);
            self.text.push_str("=\"");
            push_escaped(self.text, label_value);
            self.text.push('"');
            opening = ',';
        }
        if opening == ',' {
            self.text.push('}');
        }
        push_line(self.text, format_args!(" {value}"));
    }
}

fn push_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // A write to a String cannot fail.
    let _ = text.write_fmt(line);
    text.push('\n');
}

/// Label values may hold anything a Postgres identifier may, newlines included.
fn push_escaped(text: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}

/// The columns that keep series of their own: keeps M1.
fn busiest(columns: &[ColumnStats]) -> Vec<&ColumnStats> {
    let mut busiest: Vec<&ColumnStats> = columns.iter().collect();
    if busiest.len() > MAX_COLUMNS {
        busiest.sort_by_key(|column| {
            std::cmp::Reverse((column.bytes_offloaded, column.bytes_resolved))
        });
        busiest.truncate(MAX_COLUMNS);
    }
    busiest
}

const COLUMN_LABELS: &[&str] = &["database", "schema", "table", "column", "kind"];

const fn counter(
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    sample: fn(&Snapshot<'_>, &mut Samples<'_>),
) -> Metric {
    Metric {
        name,
        kind: MetricKind::Counter,
        unit,
        labels: &[],
        help,
        sample,
    }
}

const fn gauge(
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    sample: fn(&Snapshot<'_>, &mut Samples<'_>),
) -> Metric {
    Metric {
        kind: MetricKind::Gauge,
        ..counter(name, unit, help, sample)
    }
}

const fn by(labels: &'static [&'static str], metric: Metric) -> Metric {
    Metric { labels, ..metric }
}

/// Every metric, in the order of the answer.
pub static METRICS: &[Metric] = &[
    by(
        &["version"],
        gauge(
            "toastrack_build_info",
            "1",
            "Always 1; the label is the running version.",
            |s, out| out.labelled(&[&s.stats.version], 1.0),
        ),
    ),
    gauge(
        "toastrack_uptime_seconds",
        "seconds",
        "Time since the process started serving.",
        |s, out| out.count(s.stats.uptime_seconds),
    ),
    gauge(
        "toastrack_ready",
        "1",
        "1 when a new session would be served.",
        |s, out| out.count(u64::from(s.readiness.ready)),
    ),
    by(
        &["check"],
        gauge(
            "toastrack_check_ok",
            "1",
            "1 when this readiness check found nothing wrong.",
            |s, out| {
                for check in &s.readiness.checks {
                    out.labelled(&[&check.name], f64::from(u8::from(check.ok)));
                }
            },
        ),
    ),
    gauge(
        "toastrack_sessions_active",
        "sessions",
        "Client sessions open now.",
        |s, out| out.count(s.stats.sessions.active),
    ),
    gauge(
        "toastrack_sessions_limit",
        "sessions",
        "Most client sessions served at a time.",
        |s, out| out.count(s.stats.sessions.limit),
    ),
    counter(
        "toastrack_sessions_total",
        "sessions",
        "Client sessions opened.",
        |s, out| out.count(s.stats.sessions.total),
    ),
    counter(
        "toastrack_sessions_refused_total",
        "connections",
        "Connections turned away over the limit or too slow to start.",
        |s, out| out.count(s.stats.sessions.refused),
    ),
    gauge(
        "toastrack_store_healthy",
        "1",
        "1 while the store takes new values, 0 while it is read-only.",
        |s, out| out.count(u64::from(s.stats.store.state == StoreStatus::Healthy)),
    ),
    gauge(
        "toastrack_store_segments",
        "files",
        "Segment files.",
        |s, out| out.count(s.stats.store.segments),
    ),
    gauge(
        "toastrack_store_disk_bytes",
        "bytes",
        "Space the segment files take on the disk.",
        |s, out| out.count(s.stats.store.bytes_on_disk),
    ),
    counter(
        "toastrack_store_values_total",
        "values",
        "Values handed to the store, deduplicated ones included.",
        |s, out| out.count(s.stats.store.values_offloaded),
    ),
    counter(
        "toastrack_store_logical_bytes_total",
        "bytes",
        "Bytes of those values before deduplication and compression.",
        |s, out| out.count(s.stats.store.logical_bytes),
    ),
    counter(
        "toastrack_store_stored_bytes_total",
        "bytes",
        "Bytes of the chunks written for them.",
        |s, out| out.count(s.stats.store.stored_bytes),
    ),
    counter(
        "toastrack_store_dedup_hits_total",
        "values",
        "Values that were already there and were shared.",
        |s, out| out.count(s.stats.store.dedup_hits),
    ),
    counter(
        "toastrack_store_dedup_saved_bytes_total",
        "bytes",
        "Logical bytes that sharing did not write again.",
        |s, out| out.count(s.stats.store.dedup_bytes_saved),
    ),
    counter(
        "toastrack_store_syncs_total",
        "commits",
        "Group commits, one fdatasync each.",
        |s, out| out.count(s.stats.store.syncs),
    ),
    counter(
        "toastrack_store_sync_seconds_total",
        "seconds",
        "Time spent in group commits.",
        |s, out| out.number(s.stats.store.sync_seconds),
    ),
    counter(
        "toastrack_store_reads_total",
        "chunks",
        "Chunks read from segment files.",
        |s, out| out.count(s.stats.store.reads),
    ),
    counter(
        "toastrack_store_read_errors_total",
        "chunks",
        "Reads that ended in an error, corruption included.",
        |s, out| out.count(s.stats.store.read_errors),
    ),
    counter(
        "toastrack_cache_hits_total",
        "look-ups",
        "Cache look-ups that found the value.",
        |s, out| out.count(s.stats.cache.hits),
    ),
    counter(
        "toastrack_cache_misses_total",
        "look-ups",
        "Cache look-ups that did not find the value.",
        |s, out| out.count(s.stats.cache.misses),
    ),
    gauge(
        "toastrack_cache_entries",
        "values",
        "Values in the cache.",
        |s, out| out.count(s.stats.cache.entries),
    ),
    gauge(
        "toastrack_cache_bytes",
        "bytes",
        "Bytes the cache holds, the overhead of entries included.",
        |s, out| out.count(s.stats.cache.bytes),
    ),
    gauge(
        "toastrack_cache_capacity_bytes",
        "bytes",
        "Most bytes the cache holds.",
        |s, out| out.count(s.stats.cache.capacity_bytes),
    ),
    counter(
        "toastrack_cache_evictions_total",
        "values",
        "Values dropped from the cache to make room.",
        |s, out| out.count(s.stats.cache.evictions),
    ),
    by(
        &["peer", "direction"],
        counter(
            "toastrack_proxy_bytes_total",
            "bytes",
            "Bytes between the proxy and each peer, in: received from it, out: sent to it.",
            |s, out| {
                let proxy = &s.stats.proxy;
                out.labelled(&["client", "in"], proxy.client_bytes_in as f64);
                out.labelled(&["client", "out"], proxy.client_bytes_out as f64);
                out.labelled(&["server", "in"], proxy.server_bytes_in as f64);
                out.labelled(&["server", "out"], proxy.server_bytes_out as f64);
            },
        ),
    ),
    counter(
        "toastrack_proxy_statements_rewritten_total",
        "statements",
        "Statements in which a parameter was declared or a literal replaced.",
        |s, out| out.count(s.stats.proxy.statements_rewritten),
    ),
    by(
        &["reason"],
        counter(
            "toastrack_proxy_values_left_inline_total",
            "values",
            "Values of offloaded columns that stayed in the row.",
            |s, out| {
                for (reason, values) in &s.stats.proxy.values_left_inline {
                    out.labelled(&[reason], *values as f64);
                }
            },
        ),
    ),
    counter(
        "toastrack_proxy_values_resolved_total",
        "values",
        "References in results replaced by their value.",
        |s, out| out.count(s.stats.proxy.values_resolved),
    ),
    counter(
        "toastrack_proxy_resolve_errors_total",
        "values",
        "References in results that could not be resolved.",
        |s, out| out.count(s.stats.proxy.resolve_errors),
    ),
    gauge(
        "toastrack_resolver_connections_active",
        "connections",
        "Connections of the server to the resolver open now.",
        |s, out| out.count(s.stats.resolver.connections_active),
    ),
    counter(
        "toastrack_resolver_connections_total",
        "connections",
        "Connections the resolver accepted.",
        |s, out| out.count(s.stats.resolver.connections_total),
    ),
    counter(
        "toastrack_resolver_logins_refused_total",
        "log-ins",
        "Log-ins to the resolver that failed.",
        |s, out| out.count(s.stats.resolver.logins_refused),
    ),
    counter(
        "toastrack_resolver_values_total",
        "values",
        "References the resolver answered with their value.",
        |s, out| out.count(s.stats.resolver.values_resolved),
    ),
    counter(
        "toastrack_resolver_value_bytes_total",
        "bytes",
        "Bytes of those values.",
        |s, out| out.count(s.stats.resolver.bytes_resolved),
    ),
    counter(
        "toastrack_resolver_not_references_total",
        "questions",
        "Questions about something that is no reference of this store.",
        |s, out| out.count(s.stats.resolver.not_references),
    ),
    counter(
        "toastrack_resolver_errors_total",
        "values",
        "References the resolver could not answer.",
        |s, out| out.count(s.stats.resolver.errors),
    ),
    by(
        COLUMN_LABELS,
        counter(
            "toastrack_column_values_offloaded_total",
            "values",
            "Values of the column replaced by a reference.",
            |s, out| s.each_column(out, |column| column.values_offloaded),
        ),
    ),
    by(
        COLUMN_LABELS,
        counter(
            "toastrack_column_offloaded_bytes_total",
            "bytes",
            "Bytes of those values.",
            |s, out| s.each_column(out, |column| column.bytes_offloaded),
        ),
    ),
    by(
        COLUMN_LABELS,
        counter(
            "toastrack_column_values_resolved_total",
            "values",
            "References of the column replaced by their value.",
            |s, out| s.each_column(out, |column| column.values_resolved),
        ),
    ),
    by(
        COLUMN_LABELS,
        counter(
            "toastrack_column_resolved_bytes_total",
            "bytes",
            "Bytes of those values.",
            |s, out| s.each_column(out, |column| column.bytes_resolved),
        ),
    ),
    by(
        COLUMN_LABELS,
        counter(
            "toastrack_column_left_inline_total",
            "values",
            "Values of the column that stayed in the row.",
            |s, out| s.each_column(out, |column| column.left_inline),
        ),
    ),
    gauge(
        "toastrack_columns_unlisted",
        "columns",
        "Columns without series of their own, because there are more than 1000.",
        |s, out| out.count((s.stats.columns.len() - s.columns.len()) as u64),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves the exact text: label escapes, flags, and metrics without a sample.
    #[test]
    fn text_is_what_the_format_asks_for() {
        let stats = Stats {
            version: "1.0 \"x\"\\\n".into(),
            columns: vec![ColumnStats {
                database: "db".into(),
                schema: "public".into(),
                table: "docs".into(),
                column: "body".into(),
                kind: "text".into(),
                values_offloaded: 7,
                ..ColumnStats::default()
            }],
            ..Stats::default()
        };
        let readiness = Readiness::from_checks(vec![]);
        let text = encode(&stats, &readiness);
        assert!(text.starts_with(
            "# HELP toastrack_build_info Always 1; the label is the running version.\n\
             # TYPE toastrack_build_info gauge\n\
             toastrack_build_info{version=\"1.0 \\\"x\\\"\\\\\\n\"} 1\n"
        ));
        assert!(text.contains(
            "toastrack_column_values_offloaded_total{database=\"db\",schema=\"public\",\
             table=\"docs\",column=\"body\",kind=\"text\"} 7\n"
        ));
        assert!(text.contains("# TYPE toastrack_check_ok gauge\n# HELP"));
        assert!(text.contains("\ntoastrack_store_sync_seconds_total 0\n"));
        assert!(text.ends_with("\ntoastrack_columns_unlisted 0\n"));
    }

    /// Proves M1: with many columns the busiest keep their series and the rest are counted.
    #[test]
    fn series_are_bounded() {
        let columns = (0..MAX_COLUMNS as u64 + 5)
            .map(|n| ColumnStats {
                column: format!("c{n}"),
                bytes_offloaded: n,
                ..ColumnStats::default()
            })
            .collect();
        let stats = Stats {
            columns,
            ..Stats::default()
        };
        let text = encode(&stats, &Readiness::from_checks(vec![]));
        let series = text
            .lines()
            .filter(|line| line.starts_with("toastrack_column_left_inline_total"))
            .count();
        assert_eq!(series, MAX_COLUMNS);
        assert!(text.contains("column=\"c1004\""));
        assert!(!text.contains("column=\"c4\""));
        assert!(text.contains("\ntoastrack_columns_unlisted 5\n"));
    }

    /// Proves that names carry their unit and that each stands once.
    #[test]
    fn names_follow_the_convention() {
        let mut names = std::collections::BTreeSet::new();
        for metric in METRICS {
            assert!(names.insert(metric.name), "{} twice", metric.name);
            assert!(metric.name.starts_with("toastrack_"), "{}", metric.name);
            let counts = metric.kind == MetricKind::Counter;
            assert_eq!(counts, metric.name.ends_with("_total"), "{}", metric.name);
            if metric.unit == "bytes" || metric.unit == "seconds" {
                let unit = format!("_{}", metric.unit);
                let bare = metric.name.trim_end_matches("_total");
                assert!(bare.ends_with(&unit), "{}", metric.name);
            }
        }
    }
}
