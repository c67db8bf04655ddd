//! Log lines on standard error.

use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};
use crate::error::CommandError;

/// Starts logging, once for the process.
///
/// # Errors
/// `Failed` when it was started before, or the level is none.
pub(crate) fn start(log: &Log) -> Result<(), CommandError> {
    let filter = EnvFilter::try_new(&log.level).map_err(CommandError::failed)?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
    let started = match log.format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
    started.map_err(CommandError::failed)
}
