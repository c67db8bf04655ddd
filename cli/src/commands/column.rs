//! `toastrack offload` and `toastrack restore`

use toastrack_migrations::{ColumnPlan, RunOptions, Target};

use crate::database::DatabaseArgs;
use crate::error::CommandError;
use crate::output::{confirm, say};
use crate::units::{ByteSize, Span};

/// The values that a threshold may have: those of the configuration.
const THRESHOLDS: std::ops::RangeInclusive<u64> = 64..=1 << 20;

/// Arguments of `offload`.
#[derive(Debug, clap::Args)]
pub(crate) struct OffloadArgs {
    #[command(flatten)]
    column: ColumnArgs,
    /// Values above this leave the row [default: that of the configuration of `serve`]
    #[arg(long, value_name = "SIZE", value_parser = threshold)]
    threshold: Option<u32>,
    /// Go on although some uses of the column will see a reference instead of its value
    #[arg(long)]
    accept_differences: bool,
}

/// Arguments of `restore`.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    column: ColumnArgs,
}

/// What both need.
#[derive(Debug, clap::Args)]
struct ColumnArgs {
    /// The column: TABLE.COLUMN or SCHEMA.TABLE.COLUMN
    #[arg(value_name = "TABLE.COLUMN", value_parser = target)]
    column: Target,
    #[command(flatten)]
    database: DatabaseArgs,
    /// Give up when the table's lock is not to be had within this time
    #[arg(long, value_name = "TIME", default_value = "5s")]
    lock_timeout: Span,
    /// Only print what would be done
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Do not ask before doing it; without a terminal to ask at, nobody is asked anyway
    #[arg(long, short)]
    yes: bool,
}

impl ColumnArgs {
    /// Prints the plan, and says whether to go on: never in a dry run; on a terminal
    /// only after a yes.
    ///
    /// # Errors
    /// `Failed` when something stands in the way; what it is was printed.
    fn confirmed(&self, plan: &ColumnPlan, options: RunOptions) -> Result<bool, CommandError> {
        say(plan.to_string().trim_end());
        if !plan.refusals.is_empty() {
            return Err(CommandError::Failed(
                "refused, nothing was changed".to_owned(),
            ));
        }
        if !plan.differences.is_empty() && !options.accept_differences {
            let message = "refused, nothing was changed: --accept-differences goes on all the same";
            return Err(CommandError::Failed(message.to_owned()));
        }
        if self.dry_run {
            return Ok(false);
        }
        Ok(self.yes || confirm()?)
    }
}

fn threshold(text: &str) -> Result<u32, String> {
    let size: ByteSize = text.parse()?;
    if !THRESHOLDS.contains(&size.0) {
        let (least, most) = (ByteSize(*THRESHOLDS.start()), ByteSize(*THRESHOLDS.end()));
        return Err(format!("{size} is outside of {least} to {most}"));
    }
    u32::try_from(size.0).map_err(|error| error.to_string())
}

fn target(text: &str) -> Result<Target, String> {
    Target::parse(text).map_err(|error| error.to_string())
}

/// Changes the column's type, after it has said what that means.
pub(crate) async fn offload(args: OffloadArgs) -> Result<(), CommandError> {
    let mut client = args.column.database.connect().await?;
    let plan = toastrack_migrations::plan_offload(&client, &args.column.column, args.threshold)
        .await
        .map_err(CommandError::failed)?;
    let options = RunOptions {
        lock_timeout: args.column.lock_timeout.0,
        accept_differences: args.accept_differences,
    };
    if args.column.confirmed(&plan, options)? {
        toastrack_migrations::run_offload(&mut client, &plan, args.threshold, options)
            .await
            .map_err(CommandError::failed)?;
        say("done");
    }
    Ok(())
}

/// Gives the column its plain type back, after it has said what that means.
pub(crate) async fn restore(args: RestoreArgs) -> Result<(), CommandError> {
    let mut client = args.column.database.connect().await?;
    let plan = toastrack_migrations::plan_restore(&client, &args.column.column)
        .await
        .map_err(CommandError::failed)?;
    let options = RunOptions {
        lock_timeout: args.column.lock_timeout.0,
        // On the way back there are none.
        accept_differences: false,
    };
    if args.column.confirmed(&plan, options)? {
        toastrack_migrations::run_restore(&mut client, &plan, options)
            .await
            .map_err(CommandError::failed)?;
        say("done");
    }
    Ok(())
}
