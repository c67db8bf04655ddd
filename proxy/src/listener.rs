//! Accepts sessions, bounds their number, drains them at the end.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::catalog::Catalogs;
use crate::detoast::Detoaster;
use crate::metrics::{Metrics, add};
use crate::options::{ProxyOptions, Services};
use crate::server::{Detached, Socket};
use crate::session::{self, Context};
use crate::startup::{self, Opening};
use crate::tls::{Acceptor, TlsError};
use crate::unix_listener::UnixSocketListener;
use crate::upstream::Upstream;
use crate::workers::Workers;

/// A proxy that listens.
pub struct Proxy {
    listener: TcpListener,
    unix: Option<UnixSocketListener>,
    context: Arc<Context>,
    permits: Arc<Semaphore>,
    workers: Workers,
}

/// Why a proxy could not start.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Address or path.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// A certificate or key cannot be used.
    #[error("cannot use TLS: {0}")]
    Tls(#[from] TlsError),
    /// The threads that serve sessions could not be started.
    #[error("cannot start the threads of sessions: {0}")]
    Workers(#[source] io::Error),
}

impl Proxy {
    /// Listens. Nothing is accepted before [`Proxy::run`].
    ///
    /// # Errors
    /// When an address is taken or not allowed.
    pub async fn bind(options: ProxyOptions, services: Services) -> Result<Proxy, ProxyError> {
        let acceptor = options
            .listen_tls
            .as_ref()
            .map(Acceptor::load)
            .transpose()?;
        let upstream = Arc::new(Upstream::new(
            &options.server,
            &options.server_tls,
            &options.control,
        )?);
        let failed = |address: String| move |source| ProxyError::Listen { address, source };
        let listener = TcpListener::bind(options.listen)
            .await
            .map_err(failed(options.listen.to_string()))?;
        let unix = match &options.listen_unix {
            Some(unix) => {
                let address = listener.local_addr();
                let port = address.map_err(failed(options.listen.to_string()))?.port();
                let file = unix.file(port);
                let name = file.display().to_string();
                let bound = UnixSocketListener::bind(file, unix.mode).await;
                Some(bound.map_err(failed(name))?)
            }
            None => None,
        };
        let detoaster = Detoaster::new(services.store.clone(), services.cache.clone());
        let catalogs = Catalogs::new(
            Arc::clone(&upstream),
            options.control.clone(),
            options.threshold,
            Arc::clone(&services.metrics),
        );
        Ok(Proxy {
            listener,
            unix,
            permits: Arc::new(Semaphore::new(options.max_sessions)),
            workers: Workers::start().map_err(ProxyError::Workers)?,
            context: Arc::new(Context {
                options,
                acceptor,
                upstream,
                metrics: services.metrics,
                store: services.store,
                cache: services.cache,
                detoaster,
                catalogs,
                analyzer: toastrack_sql::Analyzer::new(ANALYZER_ENTRIES),
                draining: CancellationToken::new(),
            }),
        })
    }

    /// The address that was bound.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The Unix socket that was bound.
    pub fn unix_path(&self) -> Option<&Path> {
        self.unix.as_ref().map(UnixSocketListener::path)
    }

    /// For reading certificates again while the proxy runs.
    pub fn reload_handle(&self) -> Reload {
        Reload(Arc::clone(&self.context))
    }

    /// The way to the server.
    pub fn upstream(&self) -> Arc<Upstream> {
        Arc::clone(&self.context.upstream)
    }

    /// Serves until `shutdown`, then lets sessions finish what they are in the middle of, at most
    /// for the drain timeout. Nothing listens from `shutdown` on.
    pub async fn run(self, shutdown: CancellationToken) {
        let sessions = TaskTracker::new();
        let cut = CancellationToken::new();
        loop {
            let accepted = tokio::select! {
                () = shutdown.cancelled() => break,
                accepted = self.listener.accept() =>
                    accepted.and_then(|(stream, _)| Detached::tcp(stream)),
                accepted = accept_unix(self.unix.as_ref()) => accepted,
            };
            match accepted {
                Ok(client) => self.spawn(client, &sessions, &cut),
                Err(error) => {
                    // Out of descriptors, usually: waiting lets sessions give some back.
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        // At once: a client that is taken by the system and answered by nobody would wait for as
        // long as the drain, and a successor needs the addresses.
        drop(self.listener);
        drop(self.unix);
        self.context.draining.cancel();
        sessions.close();
        if timeout(self.context.options.drain_timeout, sessions.wait())
            .await
            .is_err()
        {
            tracing::warn!(
                sessions = sessions.len(),
                "drain deadline passed, sessions cut"
            );
            cut.cancel();
            sessions.wait().await;
        }
        self.workers.stop().await;
    }

    fn spawn(&self, client: Detached, sessions: &TaskTracker, cut: &CancellationToken) {
        let context = Arc::clone(&self.context);
        let cut = cut.clone();
        let permits = Arc::clone(&self.permits);
        let session = async move {
            let run = async { serve(client.register()?, &context, &permits).await };
            tokio::select! {
                () = cut.cancelled() => {}
                ended = run => if let Err(error) = ended {
                    tracing::debug!(%error, "session ended");
                }
            }
        };
        sessions.spawn_on(session, self.workers.next());
    }
}

/// Texts of statements whose analysis is kept.
const ANALYZER_ENTRIES: usize = 4096;
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// Reads the files of certificates and keys again.
#[derive(Clone)]
pub struct Reload(Arc<Context>);

impl Reload {
    /// Reads them, for connections from now on. Sessions that run are not touched.
    ///
    /// # Errors
    /// When a file cannot be used; what was read before then stays in use on that side.
    pub fn certificates(&self) -> Result<(), TlsError> {
        let listen = self.0.acceptor.as_ref().map_or(Ok(()), Acceptor::reload);
        self.0.upstream.reload().and(listen)
    }
}

async fn serve(client: Socket, context: &Arc<Context>, permits: &Semaphore) -> io::Result<()> {
    let opening = startup::open(client, context);
    // A cancel request waits for the server; it is as short as a start-up.
    let Ok(opening) = timeout(context.options.startup_timeout, opening).await else {
        return Ok(());
    };
    let Opening::Session(mut client, start) = opening? else {
        return Ok(());
    };
    let Ok(_permit) = permits.try_acquire() else {
        add(&context.metrics.sessions_refused, 1);
        let message = "sorry, too many clients already".to_owned();
        startup::refuse(&mut client, "53300", message).await?;
        return Ok(());
    };
    add(&context.metrics.sessions_total, 1);
    let _active = Active::begin(&context.metrics);
    let ended = session::run(&mut client, start, context).await;
    client.say_goodbye().await;
    ended
}

/// Counts a session for as long as it lives, however it ends.
struct Active<'m>(&'m Metrics);

impl Active<'_> {
    fn begin(metrics: &Metrics) -> Active<'_> {
        add(&metrics.sessions_active, 1);
        Active(metrics)
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.sessions_active.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn accept_unix(unix: Option<&UnixSocketListener>) -> io::Result<Detached> {
    match unix {
        Some(listener) => listener.accept().await.and_then(Detached::unix),
        None => std::future::pending().await,
    }
}
