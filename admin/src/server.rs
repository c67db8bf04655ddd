//! The listener and its connections.
//!
//! Owns:       the admin socket and one task for each connection.
//! Promises:   a connection ends by itself: a request head that does not come in time, a reader that
//!             stops reading and a connection that is kept for ever are all cut off.
//! Fails:      an accept error is logged and tried again, never fatal.
//! Proof:      tests/http.rs

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::{Source, Token, routes};

/// Most connections at a time; further ones wait in the listen queue.
const MAX_CONNECTIONS: usize = 64;
/// Longest time a request head may take, and longest idle time between two requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes of a request head.
const MAX_HEAD_LEN: usize = 16 << 10;
/// Most headers of a request.
const MAX_HEADERS: usize = 64;
/// Longest life of a connection; a client that wants more connects again.
const CONNECTION_LIFETIME: Duration = Duration::from_secs(300);
/// Time for the answers under way once the connection or the process is to end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after a failed accept, which mostly means that file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The admin API, bound and not yet serving.
pub struct Admin {
    listener: TcpListener,
    local_addr: SocketAddr,
    router: Router,
}

impl Admin {
    /// Binds to a loopback address.
    ///
    /// # Errors
    /// `InvalidInput` when the address is not loopback, otherwise what the operating system says.
    pub async fn bind(
        address: SocketAddr,
        token: Token,
        source: Arc<dyn Source>,
    ) -> io::Result<Admin> {
        if !address.ip().is_loopback() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("the admin address {address} is not loopback"),
            ));
        }
        Admin::bind_remote(address, token, source).await
    }

    /// Binds to any address, for an operator who asked for it: the token then crosses the network
    /// in clear text, unless something in front adds TLS.
    ///
    /// # Errors
    /// What the operating system says.
    pub async fn bind_remote(
        address: SocketAddr,
        token: Token,
        source: Arc<dyn Source>,
    ) -> io::Result<Admin> {
        let listener = TcpListener::bind(address).await?;
        Ok(Admin {
            local_addr: listener.local_addr()?,
            listener,
            router: routes::router(token, source),
        })
    }

    /// The address that was bound, with the port that port 0 became.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves until `shutdown` is cancelled, then lets answers under way finish for at most five
    /// seconds.
    pub async fn serve(self, shutdown: CancellationToken) {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let connections = TaskTracker::new();
        let accepting = async {
            loop {
                let (stream, permit) = accept(&self.listener, &places).await;
                connections.spawn(connection(
                    stream,
                    self.router.clone(),
                    permit,
                    shutdown.clone(),
                ));
            }
        };
        // Cancel-safe: a connection that was accepted is spawned before the next await.
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = accepting => {}
        }
        drop(self.listener);
        connections.close();
        connections.wait().await;
    }
}

/// The next connection and its place among [`MAX_CONNECTIONS`].
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // `None` only if the semaphore were closed, which nobody does.
    let permit = Arc::clone(places).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, permit),
            Err(error) => {
                tracing::warn!(%error, "admin accept failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one connection until the peer, its lifetime or the process ends it.
async fn connection(
    stream: TcpStream,
    router: Router,
    permit: Option<OwnedSemaphorePermit>,
    shutdown: CancellationToken,
) {
    let _place = permit;
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_LEN)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = pin!(connection);

    let finished = tokio::select! {
        finished = connection.as_mut() => Some(finished),
        () = shutdown.cancelled() => None,
        () = tokio::time::sleep(CONNECTION_LIFETIME) => None,
    };
    let finished = match finished {
        Some(finished) => Ok(finished),
        None => {
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(DRAIN_TIMEOUT, connection).await
        }
    };
    match finished {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "admin connection ended"),
        Err(_) => tracing::debug!("admin connection cut off"),
    }
}
