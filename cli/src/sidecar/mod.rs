//! Everything `toastrack serve` runs, in one process.
//!
//! Owns:     the proxy, the resolver, the admin API, and the store they share.
//! Promises: when [`Sidecar::start`] returns, every address is listening; when
//!           [`Sidecar::run`] returns, sessions have ended and the store is closed.
//! Order:    the resolver outlives the proxy's sessions, since the server asks it for
//!           values on their behalf; the store outlives both.

mod admin_source;
mod probe;
mod register;
mod start;

pub(crate) use register::server_settings;
pub(crate) use start::check_tls;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use toastrack_admin::Admin;
use toastrack_cache::{CacheStats, DetoastCache};
use toastrack_offload::{Store, StoreStats};
use toastrack_proxy::{Proxy, Reload};
use toastrack_resolver::Resolver;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::error::CommandError;
use admin_source::AdminSource;
use probe::Probe;

/// A running Toastrack.
pub(crate) struct Sidecar {
    proxy: Proxy,
    resolver: Resolver,
    admin: Admin,
    probe: Probe,
    source: Arc<AdminSource>,
    shared: Shared,
    addresses: Addresses,
}

/// What can be looked at while it runs.
#[derive(Clone)]
pub(crate) struct Shared {
    store: Store,
    cache: DetoastCache,
}

/// Where it listens.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    pub(crate) proxy: SocketAddr,
    /// The Unix socket of the proxy, if it has one.
    pub(crate) proxy_unix: Option<PathBuf>,
    pub(crate) admin: SocketAddr,
    /// Host (or directory of the socket) and port, as libpq takes them.
    pub(crate) resolver: (String, u16),
}

impl Sidecar {
    pub(crate) fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    pub(crate) fn shared(&self) -> Shared {
        self.shared.clone()
    }

    /// Tells every database of the server that has the schema where the store and the
    /// resolver are; waits at most some seconds for each. Problems are logged.
    ///
    /// # Errors
    /// `Io` or `Failed` when the resolver's secret cannot be read.
    pub(crate) async fn register(&self, config: &Config) -> Result<(), CommandError> {
        let settings = server_settings(config, Some(&self.addresses.resolver))?;
        register::register(config, &self.proxy.upstream(), &settings).await;
        Ok(())
    }

    /// For reading certificates again while it runs.
    pub(crate) fn reload_handle(&self) -> Reload {
        self.proxy.reload_handle()
    }

    /// Serves until `shutdown`, then drains.
    ///
    /// # Errors
    /// `Failed` when a part ended by a panic.
    pub(crate) async fn run(self, shutdown: CancellationToken) -> Result<(), CommandError> {
        let sessions_ended = CancellationToken::new();
        let probe = tokio::spawn(self.probe.run(shutdown.clone()));
        let resolver = tokio::spawn(self.resolver.serve(sessions_ended.clone()));
        let admin = tokio::spawn(self.admin.serve(sessions_ended.clone()));
        let source = Arc::clone(&self.source);
        let stopping = shutdown.clone();
        tokio::spawn(async move {
            stopping.cancelled().await;
            source.set_draining();
        });
        // In a task of its own, so that a panic still closes the store.
        let proxy = tokio::spawn(self.proxy.run(shutdown.clone())).await;
        shutdown.cancel();
        sessions_ended.cancel();
        let ended = [proxy, resolver.await, admin.await, probe.await];
        let Shared { store, cache } = self.shared;
        drop(cache);
        tokio::task::spawn_blocking(move || store.close())
            .await
            .map_err(CommandError::failed)?;
        for part in ended {
            part.map_err(CommandError::failed)?;
        }
        Ok(())
    }
}

impl Shared {
    pub(crate) fn store_stats(&self) -> StoreStats {
        self.store.stats()
    }

    pub(crate) fn cache_stats(&self) -> CacheStats {
        self.cache.stats()
    }
}
