//! Ctrl-C, SIGTERM and SIGHUP.

use toastrack_proxy::Reload;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::error::CommandError;

/// A token that the first SIGTERM or SIGINT cancels. The second one ends the process
/// at once, for somebody who does not want to wait for sessions to drain.
///
/// # Errors
/// `Failed` when the signals cannot be handled.
pub(crate) fn shutdown_on_signal() -> Result<CancellationToken, CommandError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(CommandError::failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(CommandError::failed)?;
    let shutdown = CancellationToken::new();
    let token = shutdown.clone();
    tokio::spawn(async move {
        for count in 1.. {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if count == 1 {
                tracing::info!("stopping: sessions may finish what they are in the middle of");
                token.cancel();
            } else {
                std::process::exit(1);
            }
        }
    });
    Ok(shutdown)
}

/// SIGHUP, which from now on does not end the process.
///
/// # Errors
/// `Failed` when the signal cannot be handled.
pub(crate) fn hangups() -> Result<Signal, CommandError> {
    signal(SignalKind::hangup()).map_err(CommandError::failed)
}

/// Reads certificates and keys again at each SIGHUP, as Postgres does.
pub(crate) fn reload_on(mut hangups: Signal, reload: Reload) {
    tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            match reload.certificates() {
                Ok(()) => tracing::info!("certificates read again"),
                Err(error) => {
                    tracing::error!(%error, "certificates not read again, those in use stay");
                }
            }
        }
    });
}
