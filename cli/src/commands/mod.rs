//! One file for each command.

mod column;
mod completions;
mod config;
mod demo;
mod install;
mod load;
mod serve;

pub(crate) use column::{OffloadArgs, RestoreArgs};
pub(crate) use completions::CompletionsArgs;
pub(crate) use config::ConfigArgs;
pub(crate) use demo::DemoArgs;
pub(crate) use install::{InstallArgs, UninstallArgs};
pub(crate) use load::LoadArgs;
pub(crate) use serve::ServeArgs;

use std::future::Future;

use crate::args::Command;
use crate::error::CommandError;

/// Runs a command to its end.
///
/// # Errors
/// Whatever made it fail.
pub(crate) fn run(command: Command) -> Result<(), CommandError> {
    match command {
        Command::Serve(args) => {
            use_small_pages();
            block_on(serve::serve(args))
        }
        Command::Demo(args) => {
            use_small_pages();
            block_on(demo::demo(args))
        }
        Command::CheckConfig(args) => config::check(&args),
        Command::PrintConfig(args) => config::print(&args),
        Command::Install(args) => block_on(install::install(args)),
        Command::Uninstall(args) => block_on(install::uninstall(args)),
        Command::Offload(args) => block_on(column::offload(args)),
        Command::Restore(args) => block_on(column::restore(args)),
        Command::Load(args) => block_on(load::load(args)),
        Command::Store(args) => block_on(crate::store::run(args)),
        Command::Completions(args) => completions::completions(&args),
    }
}

/// Values of a few kilobytes come and go all over the heap. With huge pages the kernel zeroes 2 MiB
/// for each of them that the allocator takes anew: a quarter of the time of an insert.
fn use_small_pages() {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "huge pages stay on");
    }
}

fn block_on(command: impl Future<Output = Result<(), CommandError>>) -> Result<(), CommandError> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::Failed(format!("cannot start: {error}")))?
        .block_on(command)
}
