//! `toastrack install` and `toastrack uninstall`

use std::path::PathBuf;

use toastrack_migrations::{DirectRead, InstallReport, ServerSettings};

use crate::config::{Config, Disk};
use crate::database::DatabaseArgs;
use crate::error::CommandError;
use crate::output::say;
use crate::sidecar::server_settings;

/// Arguments of `install`.
#[derive(Debug, clap::Args)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// The configuration of `serve`, from which the server learns where values are
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Arguments of `uninstall`.
#[derive(Debug, clap::Args)]
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    database: DatabaseArgs,
}

/// Installs what is missing, and says what was done.
pub(crate) async fn install(args: InstallArgs) -> Result<(), CommandError> {
    let settings = match &args.config {
        Some(file) => server_settings(&Config::load(file, &Disk)?, None)?,
        None => ServerSettings::default(),
    };
    let told = args.config.is_some();
    let mut client = args.database.connect().await?;
    let report = toastrack_migrations::install(&mut client, &settings)
        .await
        .map_err(CommandError::failed)?;
    describe(&report);
    if !told {
        say(
            "note: without --config the server learns where values are when `toastrack serve` \
             starts, if its control user may tell it",
        );
    }
    Ok(())
}

fn describe(report: &InstallReport) {
    for migration in &report.applied {
        say(format!("applied {migration}"));
    }
    for part in &report.repaired {
        say(format!("made again: {part}"));
    }
    if let Some(DirectRead::Unreadable { reason }) = &report.direct_read {
        say(format!(
            "note: the server cannot read the store's directory and asks the resolver instead: {reason}"
        ));
    }
    let changed = !report.applied.is_empty() || !report.repaired.is_empty();
    let outcome = if changed {
        "installed"
    } else {
        "already installed"
    };
    say(format!(
        "{outcome}: schema toastrack, version {}",
        report.version
    ));
}

/// Removes the schema, unless a column still needs it.
pub(crate) async fn uninstall(args: UninstallArgs) -> Result<(), CommandError> {
    let mut client = args.database.connect().await?;
    toastrack_migrations::uninstall(&mut client)
        .await
        .map_err(CommandError::failed)?;
    say("uninstalled");
    Ok(())
}
