//! `toastrack store snapshot`

use std::path::PathBuf;

use toastrack_offload::inspect::snapshot::{Method, take};

use super::progress::{Progress, total_bytes};
use super::{Location, rate};
use crate::error::CommandError;
use crate::output::{readable_size, say};

/// Arguments of `store snapshot`.
#[derive(Debug, clap::Args)]
pub(super) struct SnapshotArgs {
    /// Where to put it; made if missing, else empty
    #[arg(value_name = "DIR")]
    to: PathBuf,
    #[command(flatten)]
    location: Location,
    /// Copy sealed segments too, for another file system or another disk
    #[arg(long)]
    copy: bool,
    /// Copy at most so many bytes a second, as in 100MB/s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    max_rate: Option<u64>,
}

/// Takes it, and says what it consists of.
pub(super) fn run(args: &SnapshotArgs) -> Result<(), CommandError> {
    let directory = args.location.directory()?;
    let method = if args.copy {
        Method::Copy
    } else {
        Method::Link
    };
    let total = match method {
        Method::Copy => total_bytes(&args.location.inspector()?)?,
        Method::Link => 0,
    };
    let progress = Progress::new(total);
    let taken = take(
        &directory,
        &args.to,
        method,
        &mut progress.pace(args.max_rate),
    );
    drop(progress);
    let report = taken.map_err(CommandError::failed)?;
    for name in &report.foreign {
        say(format!(
            "left out, since it is none of the store's: segments/{name}"
        ));
    }
    for (segment, seen) in &report.unsound {
        say(format!(
            "segment {segment:08x} is damaged and copied as it is: {seen}"
        ));
    }
    say(format!(
        "snapshot {}: {} segments linked, {} copied ({})",
        args.to.display(),
        report.linked,
        report.copied,
        readable_size(report.copied_bytes)
    ));
    Ok(())
}
