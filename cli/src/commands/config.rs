//! `toastrack check-config` and `toastrack print-config`

use std::path::PathBuf;

use crate::config::{Config, Disk};
use crate::error::CommandError;
use crate::output::say;
use crate::sidecar::check_tls;

/// Arguments of `check-config` and `print-config`.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    /// The configuration file; without one, the defaults
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The same, named as `serve` names it
    #[arg(long = "config", value_name = "FILE", conflicts_with = "file")]
    option: Option<PathBuf>,
}

impl ConfigArgs {
    fn load(&self) -> Result<Config, CommandError> {
        match self.file.as_ref().or(self.option.as_ref()) {
            Some(file) => Ok(Config::load(file, &Disk)?),
            None => Ok(Config::defaults()?),
        }
    }
}

/// Says `ok`, or fails with every problem.
pub(crate) fn check(args: &ConfigArgs) -> Result<(), CommandError> {
    check_tls(&args.load()?)?;
    say("ok");
    Ok(())
}

/// Prints the effective configuration.
pub(crate) fn print(args: &ConfigArgs) -> Result<(), CommandError> {
    say(args.load()?.to_string().trim_end());
    Ok(())
}
