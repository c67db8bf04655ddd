//! `toastrack store stat`

use serde_json::{Value, json};
use toastrack_offload::inspect::{Inspector, Listing, Pace, SegmentReport, SegmentState};

use super::Location;
use crate::error::CommandError;
use crate::output::{readable_size, say};

/// Arguments of `store stat`.
#[derive(Debug, clap::Args)]
pub(super) struct StatArgs {
    #[command(flatten)]
    location: Location,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Sums over all segments.
#[derive(Default)]
struct Totals {
    records: u64,
    used_bytes: u64,
    file_bytes: u64,
}

/// Prints the table, or the document.
pub(super) fn run(args: &StatArgs) -> Result<(), CommandError> {
    let inspector = args.location.inspector()?;
    let listing = inspector.list().map_err(CommandError::failed)?;
    let mut pace = Pace::unbounded();
    let mut reports = Vec::new();
    let mut totals = Totals::default();
    for segment in &listing.segments {
        let report = inspector
            .survey(*segment, &mut pace)
            .map_err(CommandError::failed)?;
        totals.records += report.records;
        totals.used_bytes += report.used_bytes();
        totals.file_bytes += report.file_len;
        reports.push(report);
    }
    if args.json {
        say(document(&inspector, &listing, &reports, &totals));
    } else {
        table(&inspector, &listing, &reports, &totals);
    }
    Ok(())
}

/// One word for a state.
pub(super) fn state_name(state: SegmentState) -> &'static str {
    match state {
        SegmentState::Open => "open",
        SegmentState::Sealed { recovered: false } => "sealed",
        SegmentState::Sealed { recovered: true } => "recovered",
        SegmentState::Damaged => "damaged",
        SegmentState::UnknownVersion(_) => "newer",
    }
}

fn document(
    inspector: &Inspector,
    listing: &Listing,
    reports: &[SegmentReport],
    totals: &Totals,
) -> Value {
    let segments: Vec<Value> = reports
        .iter()
        .map(|report| {
            json!({
                "segment": format!("{:08x}", report.segment),
                "state": state_name(report.state),
                "records": report.records,
                "used_bytes": report.used_bytes(),
                "set_aside_bytes": report.file_len.saturating_sub(report.used_bytes()),
                "file_bytes": report.file_len,
                "faults": report.faults,
            })
        })
        .collect();
    json!({
        "store": inspector.store_id(),
        "format": inspector.format_version(),
        "key": inspector.key_problem().unwrap_or("matches"),
        "segments": segments,
        "records": totals.records,
        "used_bytes": totals.used_bytes,
        "set_aside_bytes": totals.file_bytes.saturating_sub(totals.used_bytes),
        "file_bytes": totals.file_bytes,
        "drafts": listing.drafts,
        "foreign": listing.foreign,
    })
}

fn table(inspector: &Inspector, listing: &Listing, reports: &[SegmentReport], totals: &Totals) {
    say(format!(
        "store {}, format {}, key {}",
        inspector.store_id(),
        inspector.format_version(),
        inspector.key_problem().unwrap_or("matches")
    ));
    say(format!(
        "{:8}  {:9}  {:>12}  {:>12}  {:>12}",
        "segment", "state", "records", "used", "set aside"
    ));
    for report in reports {
        say(format!(
            "{:08x}  {:9}  {:>12}  {:>12}  {:>12}",
            report.segment,
            state_name(report.state),
            report.records,
            readable_size(report.used_bytes()),
            readable_size(report.file_len.saturating_sub(report.used_bytes()))
        ));
        for fault in &report.faults {
            say(format!("          {fault}"));
        }
    }
    say(format!(
        "{} segments, {} records, {} used, {} set aside, {} in files",
        reports.len(),
        totals.records,
        readable_size(totals.used_bytes),
        readable_size(totals.file_bytes.saturating_sub(totals.used_bytes)),
        readable_size(totals.file_bytes)
    ));
    for name in &listing.drafts {
        say(format!("being made: segments/{name}"));
    }
    for name in &listing.foreign {
        say(format!("not of the store: segments/{name}"));
    }
}
