//! The resolver: bind, then serve.

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use toastrack_cache::DetoastCache;
use toastrack_offload::Store;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection::{self, Admission, Shared};
use crate::counters::Counters;
use crate::credentials::{Credentials, Secret};
use crate::listener::{Accepted, Listener, ResolverListen};
use crate::login::Login;
use crate::lookup::{CachedStore, Lookup};
use crate::query::Queries;

/// Connections over the limit that are told so at a time; further ones are dropped unheard.
const MAX_REFUSALS_IN_FLIGHT: usize = 32;
/// Pause after a failed accept, which mostly means that file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What the resolver allows itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most connections at a time. Each session of the server that detoasts holds one for its
    /// life, so this should not be below the server's `max_connections`. 1000 by default.
    pub max_connections: usize,
    /// Time from the first byte to the end of the log-in; 10 seconds by default.
    pub login_timeout: Duration,
    /// Longest time for one answer, the client's reading of it included; 60 seconds by default.
    pub answer_timeout: Duration,
    /// Time for the answers under way at shutdown; 5 seconds by default.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_connections: 1_000,
            login_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(5),
        }
    }
}

/// A Postgres-protocol endpoint that turns references into values, for `toastrack.detoast`.
///
/// It takes one user, [`crate::USER`], with the secret as password (SCRAM-SHA-256), any database
/// name, and one statement in the simple protocol: `select toastrack.resolve('<reference>')`, the
/// reference in its text spelling whatever the kind of the value. The answer is one row with one
/// bytea column in text format. Everything else is an error:
///
/// | SQLSTATE | when | the connection |
/// |---|---|---|
/// | `TR001` | the argument is no reference of this store: ordinary data | stays |
/// | `XX001` | the chunk is not what the reference says, or is gone; names segment and offset | stays |
/// | `58030` | the disk fails to read it | stays |
/// | `0A000` | another statement | stays |
/// | `0A000` | a message of the extended protocol | ends |
/// | `28P01` | another user or a wrong secret | ends |
/// | `53300` | too many connections | ends |
/// | `08P01` | bytes that are no such message | ends |
/// | `57P01` | the resolver is shutting down | ends |
pub struct Resolver {
    listener: Listener,
    local_address: ResolverListen,
    login: Login,
    lookup: Arc<dyn Lookup>,
    counters: Arc<Counters>,
    limits: Limits,
}

impl Resolver {
    /// Binds the socket; nothing is served yet.
    ///
    /// # Errors
    /// `InvalidInput` for an address that is not loopback, `AddrInUse` when somebody listens there
    /// already, otherwise what the operating system says.
    pub async fn bind(
        address: ResolverListen,
        secret: Secret,
        store: Store,
        cache: DetoastCache,
        limits: Limits,
    ) -> io::Result<Resolver> {
        let lookup = Arc::new(CachedStore { store, cache });
        Resolver::bind_over(address, secret, lookup, limits).await
    }

    pub(crate) async fn bind_over(
        address: ResolverListen,
        secret: Secret,
        lookup: Arc<dyn Lookup>,
        limits: Limits,
    ) -> io::Result<Resolver> {
        let counters = Arc::new(Counters::default());
        let login = Login::new(Credentials::new(&secret)?, Arc::clone(&counters));
        let (listener, local_address) = Listener::bind(address).await?;
        Ok(Resolver {
            listener,
            local_address,
            login,
            lookup,
            counters,
            limits,
        })
    }

    /// Where it listens, with the port that port 0 became.
    pub fn local_address(&self) -> &ResolverListen {
        &self.local_address
    }

    /// The counters, to be read while it serves.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// Serves until `shutdown` is cancelled: then idle connections end at once and answers under
    /// way have [`Limits::drain_timeout`].
    pub async fn serve(self, shutdown: CancellationToken) {
        let queries = Queries::new(self.lookup, Arc::clone(&self.counters));
        let shared = Arc::new(Shared {
            login: Arc::new(self.login),
            queries: Arc::new(queries),
            counters: Arc::clone(&self.counters),
            login_timeout: self.limits.login_timeout,
            answer_timeout: self.limits.answer_timeout,
            shutdown: shutdown.clone(),
        });
        let connections = TaskTracker::new();
        // Ends what is left after the drain; it is not the shutdown itself.
        let cut_off = CancellationToken::new();
        let accepting = accept_all(
            &self.listener,
            self.limits.max_connections,
            &shared,
            &connections,
            &cut_off,
        );
        // Cancel-safe: a connection that was accepted is spawned before the next await.
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = accepting => {}
        }
        drop(self.listener);
        connections.close();
        let drained = tokio::time::timeout(self.limits.drain_timeout, connections.wait()).await;
        if drained.is_err() {
            tracing::warn!(left = connections.len(), "resolver connections cut off");
            cut_off.cancel();
            connections.wait().await;
        }
    }
}

async fn accept_all(
    listener: &Listener,
    max_connections: usize,
    shared: &Arc<Shared>,
    connections: &TaskTracker,
    cut_off: &CancellationToken,
) {
    let places = Arc::new(Semaphore::new(max_connections));
    let refusals = Arc::new(Semaphore::new(MAX_REFUSALS_IN_FLIGHT));
    loop {
        let accepted = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "resolver accept failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (permit, admission) = match Arc::clone(&places).try_acquire_owned() {
            Ok(permit) => (permit, Admission::Admitted),
            Err(_) => {
                Counters::add(&shared.counters.connections_refused, 1);
                match Arc::clone(&refusals).try_acquire_owned() {
                    Ok(permit) => (permit, Admission::TooMany),
                    Err(_) => continue,
                }
            }
        };
        let serving = contained(accepted, admission, permit, Arc::clone(shared));
        let cut_off = cut_off.clone();
        connections.spawn(async move {
            // Nothing is left half done by dropping a connection: it only reads from the store.
            cut_off.run_until_cancelled_owned(serving).await
        });
    }
}

/// One connection whose panic, should there be one, ends it alone (Q2).
async fn contained(
    accepted: Accepted,
    admission: Admission,
    permit: OwnedSemaphorePermit,
    shared: Arc<Shared>,
) {
    let _place = permit;
    let _counted = Counted::new(Arc::clone(&shared.counters));
    let serving = async {
        match accepted {
            Accepted::Tcp(stream, peer) => {
                connection::serve(stream, Some(peer), admission, &shared).await
            }
            Accepted::Unix(stream) => connection::serve(stream, None, admission, &shared).await,
        }
    };
    match AssertUnwindSafe(serving).catch_unwind().await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "resolver connection ended"),
        Err(_) => {
            Counters::add(&shared.counters.panics, 1);
            tracing::error!("resolver connection panicked");
        }
    }
}

/// Counts a connection as active while it lives, however it ends.
struct Counted(Arc<Counters>);

impl Counted {
    fn new(counters: Arc<Counters>) -> Counted {
        Counters::add(&counters.connections_total, 1);
        Counters::add(&counters.connections_active, 1);
        Counted(counters)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let active = &self.0.connections_active;
        active.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
    }
}
