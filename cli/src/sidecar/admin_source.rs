//! What the admin API is told: counters of every part, and readiness.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use toastrack_admin::{
    CacheSection, Check, ColumnStats, ProxySection, Readiness, ResolverSection, SessionStats,
    Source, Stats, StoreSection, StoreStatus, hit_rate, ratio,
};
use toastrack_cache::DetoastCache;
use toastrack_offload::{Store, StoreState};
use toastrack_proxy::{InlineReason, Metrics};
use toastrack_resolver::Counters;
use tokio::sync::watch;

use super::probe::Outcome;

/// Reads the counters of the parts when it is asked.
pub(super) struct AdminSource {
    started: Instant,
    draining: AtomicBool,
    store: Store,
    cache: DetoastCache,
    proxy: Arc<Metrics>,
    resolver: Arc<Counters>,
    server: watch::Receiver<Outcome>,
    max_sessions: usize,
}

impl AdminSource {
    pub(super) fn new(
        store: Store,
        cache: DetoastCache,
        proxy: Arc<Metrics>,
        resolver: Arc<Counters>,
        server: watch::Receiver<Outcome>,
        max_sessions: usize,
    ) -> AdminSource {
        AdminSource {
            started: Instant::now(),
            draining: AtomicBool::new(false),
            store,
            cache,
            proxy,
            resolver,
            server,
            max_sessions,
        }
    }

    /// From now on no new session is served.
    pub(super) fn set_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    fn store_section(&self) -> StoreSection {
        let stats = self.store.stats();
        let (state, state_reason) = match self.store.state() {
            StoreState::Healthy => (StoreStatus::Healthy, None),
            StoreState::ReadOnly { reason } => (StoreStatus::ReadOnly, Some(reason)),
        };
        let written = stats.logical_bytes.saturating_sub(stats.dedup_bytes);
        StoreSection {
            state,
            state_reason,
            segments: stats.segments,
            bytes_on_disk: stats.segment_bytes,
            values_offloaded: stats.values_put,
            logical_bytes: stats.logical_bytes,
            stored_bytes: stats.stored_bytes,
            dedup_hits: stats.dedup_hits,
            dedup_bytes_saved: stats.dedup_bytes,
            compression_ratio: ratio(written, stats.stored_bytes),
            dedup_ratio: ratio(stats.logical_bytes, written),
            syncs: stats.syncs,
            sync_seconds: stats.sync_micros as f64 / 1e6,
            reads: stats.values_read,
            read_errors: stats.corrupt_reads + stats.read_failures,
        }
    }

    fn cache_section(&self) -> CacheSection {
        let stats = self.cache.stats();
        CacheSection {
            hits: stats.hits,
            misses: stats.misses,
            hit_rate: hit_rate(stats.hits, stats.misses),
            entries: stats.entries,
            bytes: stats.bytes,
            capacity_bytes: stats.capacity,
            evictions: stats.evictions,
        }
    }

    fn proxy_section(&self) -> ProxySection {
        let metrics = &self.proxy;
        ProxySection {
            client_bytes_in: read(&metrics.client_bytes_in),
            client_bytes_out: read(&metrics.client_bytes_out),
            server_bytes_in: read(&metrics.server_bytes_in),
            server_bytes_out: read(&metrics.server_bytes_out),
            statements_rewritten: read(&metrics.statements_rewritten),
            values_left_inline: InlineReason::ALL
                .iter()
                .map(|reason| (reason.label().to_owned(), metrics.left_inline(*reason)))
                .collect(),
            values_resolved: read(&metrics.values_resolved),
            resolve_errors: read(&metrics.resolve_errors),
        }
    }

    fn resolver_section(&self) -> ResolverSection {
        let stats = self.resolver.snapshot();
        ResolverSection {
            connections_active: stats.connections_active,
            connections_total: stats.connections_total,
            logins_refused: stats.logins_refused,
            values_resolved: stats.values_resolved,
            bytes_resolved: stats.bytes_resolved,
            not_references: stats.not_references,
            errors: stats.errors,
        }
    }

    fn columns(&self) -> Vec<ColumnStats> {
        let columns = self.proxy.columns().into_iter();
        columns
            .map(|(key, counters)| ColumnStats {
                database: key.database,
                schema: key.schema,
                table: key.table,
                column: key.column,
                kind: key.kind.to_owned(),
                values_offloaded: read(&counters.values_offloaded),
                bytes_offloaded: read(&counters.bytes_offloaded),
                values_resolved: read(&counters.values_resolved),
                bytes_resolved: read(&counters.bytes_resolved),
                left_inline: read(&counters.left_inline),
            })
            .collect()
    }
}

impl Source for AdminSource {
    fn readiness(&self) -> Readiness {
        let sessions = !self.draining.load(Ordering::Relaxed);
        let (server, server_detail) = match &*self.server.borrow() {
            None => (false, "not looked at yet".to_owned()),
            Some(Ok(())) => (true, "takes connections".to_owned()),
            Some(Err(problem)) => (false, problem.clone()),
        };
        // A read-only store is no reason to turn sessions away: values stay inline (S2).
        let store_detail = match self.store.state() {
            StoreState::Healthy => "reads and writes".to_owned(),
            StoreState::ReadOnly { reason } => format!("new values stay in their rows: {reason}"),
        };
        let sessions_detail = if sessions { "accepted" } else { "draining" };
        Readiness::from_checks(vec![
            check("sessions", sessions, sessions_detail.to_owned()),
            check("server", server, server_detail),
            check("store", true, store_detail),
        ])
    }

    fn stats(&self) -> Stats {
        let metrics = &self.proxy;
        Stats {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_seconds: self.started.elapsed().as_secs(),
            sessions: SessionStats {
                active: read(&metrics.sessions_active),
                limit: self.max_sessions as u64,
                total: read(&metrics.sessions_total),
                refused: read(&metrics.sessions_refused),
            },
            store: self.store_section(),
            cache: self.cache_section(),
            proxy: self.proxy_section(),
            resolver: self.resolver_section(),
            columns: self.columns(),
        }
    }
}

fn check(name: &str, ok: bool, detail: String) -> Check {
    Check {
        name: name.to_owned(),
        ok,
        detail,
    }
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
