//! One file for each command.

mod completions;
mod config;
mod load;

pub(crate) use completions::CompletionsArgs;
pub(crate) use config::ConfigArgs;
pub(crate) use load::LoadArgs;

use std::future::Future;

use crate::args::Command;
use crate::error::CommandError;

/// Runs a command to its end.
///
/// # Errors
/// Whatever made it fail.
pub(crate) fn run(command: Command) -> Result<(), CommandError> {
    match command {
        Command::CheckConfig(args) => config::check(&args),
        Command::PrintConfig(args) => config::print(&args),
        Command::Load(args) => block_on(load::load(args)),
        Command::Completions(args) => completions::completions(&args),
    }
}

fn block_on(command: impl Future<Output = Result<(), CommandError>>) -> Result<(), CommandError> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::Failed(format!("cannot start: {error}")))?
        .block_on(command)
}
