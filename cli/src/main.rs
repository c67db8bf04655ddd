//! The `toastrack` command.
//!
//! Exit codes: 0 done, 1 failed, 2 used wrongly.

mod args;
mod commands;
mod config;
mod database;
mod demo;
mod error;
mod load;
mod logging;
mod output;
mod secret;
mod sidecar;
mod signals;
mod store;
mod table;
mod units;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;

/// Values of some kilobytes come and go on every thread; the system's allocator gives their pages
/// back each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match commands::run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("toastrack: {error}");
            error.exit_code()
        }
    }
}
