//! `toastrack serve`

use std::path::PathBuf;

use crate::config::{Config, Disk};
use crate::error::CommandError;
use crate::logging;
use crate::sidecar::Sidecar;
use crate::signals::{hangups, reload_on, shutdown_on_signal};

/// Arguments of `serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

/// Runs until SIGTERM or SIGINT; SIGHUP reads certificates again.
pub(crate) async fn serve(args: ServeArgs) -> Result<(), CommandError> {
    let config = Config::load(&args.config, &Disk)?;
    logging::start(&config.log)?;
    // Before anything listens, so that no signal finds the process unprepared.
    let shutdown = shutdown_on_signal()?;
    let hangups = hangups()?;
    let sidecar = Sidecar::start(&config).await?;
    reload_on(hangups, sidecar.reload_handle());
    sidecar.register(&config).await?;
    let addresses = sidecar.addresses();
    let (resolver_host, resolver_port) = &addresses.resolver;
    let servers = config.server.addresses.iter();
    let servers: Vec<String> = servers.map(ToString::to_string).collect();
    tracing::info!(
        proxy = %addresses.proxy,
        unix_socket = addresses.proxy_unix.as_ref().map(|path| path.display().to_string()),
        server = servers.join(", "),
        admin = %addresses.admin,
        resolver = format!("{resolver_host}:{resolver_port}"),
        store = %config.store.directory.display(),
        "toastrack ready on {}",
        addresses.proxy,
    );
    sidecar.run(shutdown).await?;
    tracing::info!("stopped");
    Ok(())
}
