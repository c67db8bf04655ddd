//! `toastrack store repair`

use std::path::PathBuf;

use toastrack_offload::inspect::repair::Repair;

use super::Location;
use super::progress::{Progress, total_bytes};
use crate::error::CommandError;
use crate::output::{confirm, say};

/// Arguments of `store repair`.
#[derive(Debug, clap::Args)]
pub(super) struct RepairArgs {
    #[command(flatten)]
    location: Location,
    /// A snapshot or backup of the same store, to take records from
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// Only print what would be done
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Do not ask before doing it; without a terminal to ask at, nobody is asked anyway
    #[arg(long, short)]
    yes: bool,
}

/// Prints the plan, and does it unless told otherwise.
pub(super) fn run(args: &RepairArgs) -> Result<(), CommandError> {
    let directory = args.location.directory()?;
    let repair = Repair::begin(&directory, args.from.as_deref()).map_err(CommandError::failed)?;
    // Its superblock may be what is to be repaired: then nobody knows how much there is.
    let total = args
        .location
        .inspector()
        .and_then(|store| total_bytes(&store));
    let progress = Progress::new(total.unwrap_or_default());
    let plan = repair.plan(&mut progress.pace(None));
    drop(progress);
    let plan = plan.map_err(CommandError::failed)?;
    for step in &plan.steps {
        say(step);
    }
    for left in &plan.left {
        say(format!("left as it is: {left}"));
    }
    if plan.is_empty() {
        say("nothing to repair");
        return Ok(());
    }
    if args.dry_run || !(args.yes || confirm()?) {
        return Ok(());
    }
    repair.run(&plan).map_err(CommandError::failed)?;
    say("repaired; `toastrack store verify` says what is left");
    Ok(())
}
