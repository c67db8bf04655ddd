//! `toastrack store verify`

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};
use toastrack_offload::inspect::{Chunk, Damage, Depth, Finding, Inspector, SegmentReport};
use toastrack_offload::{Codec, Reference};

use super::progress::{Progress, total_bytes};
use super::rows::{self, RowCounts};
use super::stat::state_name;
use super::{Location, rate};
use crate::error::CommandError;
use crate::output::{readable_size, say};

/// Arguments of `store verify`.
#[derive(Debug, clap::Args)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    location: Location,
    /// Read at most so many bytes a second, as in 100MB/s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    max_rate: Option<u64>,
    /// Follow the references of this database as well; may be given several times
    #[arg(long, short, value_name = "URL")]
    database: Vec<String>,
    /// Count what recovery had to leave as damage too
    #[arg(long)]
    strict: bool,
    /// Print JSON lines: damage as it is found, then the counts
    #[arg(long)]
    json: bool,
}

/// Entries that are kept for the list at the end; JSON lines have all.
const MAX_LISTED: usize = 10_000;

/// What was found so far.
pub(super) struct Tally {
    pub(super) json: bool,
    /// For the end.
    listed: Vec<String>,
    unlisted: u64,
    pub(super) seen: Seen,
    raw: u64,
    lz4: u64,
    manifests: u64,
    damaged_segments: u64,
    totals: Totals,
}

#[derive(Default)]
struct Totals {
    segments: u64,
    bytes: u64,
    records: u64,
    newer: u64,
    logical_bytes: u64,
    stored_bytes: u64,
    damaged: u64,
    remains: u64,
    /// Values in pieces not all of which are there.
    incomplete: u64,
}

/// The records that verified, 8 bytes each, so that references to them need no second look. Empty
/// without the key.
#[derive(Default)]
pub(super) struct Seen {
    /// By segment: offset and a fingerprint of what the header says, ascending.
    segments: BTreeMap<u32, Vec<(u32, u32)>>,
    /// Those of values in pieces.
    manifests: Vec<Reference>,
    /// Those whose pieces do not all verify.
    incomplete: HashSet<Reference>,
}

impl Seen {
    fn add(&mut self, inspector: &Inspector, chunk: &Chunk) {
        if let Some(reference) = inspector.reference(chunk) {
            if reference.codec() == Codec::Manifest {
                self.manifests.push(reference);
            }
            let records = self.segments.entry(chunk.segment()).or_default();
            records.push((chunk.offset(), fingerprint(&reference)));
        }
    }

    /// A record found while looking again comes after those behind it.
    fn sort(&mut self) {
        for records in self.segments.values_mut() {
            records.sort_unstable();
        }
    }

    /// It verified, and so did its pieces where there are any.
    pub(super) fn holds(&self, reference: &Reference) -> bool {
        self.verified(reference) && !self.incomplete.contains(reference)
    }

    fn verified(&self, reference: &Reference) -> bool {
        self.segments
            .get(&reference.segment())
            .is_some_and(|records| {
                records
                    .binary_search(&(reference.offset(), fingerprint(reference)))
                    .is_ok()
            })
    }
}

fn fingerprint(reference: &Reference) -> u32 {
    let mut hasher = DefaultHasher::new();
    reference.hash(&mut hasher);
    hasher.finish() as u32
}

impl Tally {
    fn new(json: bool) -> Tally {
        Tally {
            json,
            listed: Vec::new(),
            unlisted: 0,
            seen: Seen::default(),
            raw: 0,
            lz4: 0,
            manifests: 0,
            damaged_segments: 0,
            totals: Totals::default(),
        }
    }

    /// Takes note of something damaged: prints the JSON line, or keeps the text for the end.
    pub(super) fn list(&mut self, line: &Value, text: impl FnOnce() -> String) {
        if self.json {
            say(line);
        } else if self.listed.len() < MAX_LISTED {
            self.listed.push(text());
        } else {
            self.unlisted += 1;
        }
    }

    fn take(&mut self, inspector: &Inspector, finding: &Finding<'_>) {
        match finding {
            Finding::Record(chunk) => {
                match chunk.codec() {
                    Some(Codec::Lz4) => self.lz4 += 1,
                    Some(Codec::Manifest) => self.manifests += 1,
                    Some(Codec::Raw) | None => self.raw += 1,
                }
                self.seen.add(inspector, chunk);
            }
            Finding::Newer(chunk) => {
                let seen = "a newer program wrote it, and only its checksum could be checked";
                let place = (chunk.segment(), u64::from(chunk.offset()));
                self.stretch("newer", place, chunk.footprint(), seen);
            }
            Finding::Damaged(damage) => self.damage("damaged", damage),
            Finding::Remains(damage) => self.damage("remains", damage),
        }
    }

    fn damage(&mut self, event: &str, damage: &Damage) {
        let place = (damage.segment, damage.offset);
        self.stretch(event, place, damage.len, &damage.seen);
    }

    fn stretch(&mut self, event: &str, (segment, offset): (u32, u64), len: u64, seen: &str) {
        let segment = format!("{segment:08x}");
        let line = json!({
            "event": event, "segment": segment, "offset": offset, "bytes": len, "seen": seen,
        });
        self.list(&line, || {
            format!("{event}: segment {segment} at offset {offset}, {len} bytes: {seen}")
        });
    }

    fn unreadable(&mut self, segment: u32, seen: &str) {
        self.totals.segments += 1;
        self.damaged_segments += 1;
        let segment = format!("{segment:08x}");
        let line = json!({"event": "damaged", "segment": segment, "seen": seen});
        self.list(&line, || format!("damaged: segment {segment}: {seen}"));
    }

    fn segment(&mut self, report: &SegmentReport) {
        let totals = &mut self.totals;
        totals.segments += 1;
        totals.bytes += report.file_len;
        totals.records += report.records;
        totals.newer += report.newer;
        totals.logical_bytes += report.logical_bytes;
        totals.stored_bytes += report.stored_bytes;
        totals.damaged += report.damaged;
        totals.remains += report.remains;
        self.damaged_segments += u64::from(!report.is_sound());
        let segment = format!("{:08x}", report.segment);
        for fault in &report.faults {
            let line = json!({"event": "damaged", "segment": segment, "seen": fault});
            self.list(&line, || format!("damaged: segment {segment}: {fault}"));
        }
        if self.json {
            say(json!({
                "event": "segment",
                "segment": segment,
                "state": state_name(report.state),
                "records": report.records,
                "file_bytes": report.file_len,
                "used_bytes": report.used_bytes(),
                "damaged": report.damaged,
                "remains": report.remains,
                "faults": report.faults.len(),
            }));
        }
    }
}

/// Reads the store, then follows the references of the databases.
pub(super) async fn run(args: VerifyArgs) -> Result<(), CommandError> {
    let inspector = args.location.inspector()?;
    if let (Some(problem), false) = (inspector.key_problem(), args.database.is_empty()) {
        return Err(CommandError::Failed(format!(
            "references can only be told from data with the store's key: {problem}"
        )));
    }
    // Before the store is read, which takes a while.
    let mut databases = Vec::new();
    for url in &args.database {
        databases.push(rows::connect(url).await?);
    }
    let mut tally = Tally::new(args.json);
    tokio::task::block_in_place(|| read_all(&inspector, args.max_rate, &mut tally))?;
    tokio::task::block_in_place(|| check_pieces(&inspector, &mut tally));
    // What a committed row refers to was durable before: nothing needs to be waited for.
    let rows_inspector = inspector.clone().settle_within(std::time::Duration::ZERO);
    let mut counts = RowCounts::default();
    for database in &mut databases {
        counts += rows::follow(database, &rows_inspector, &mut tally).await?;
    }
    let followed = (!databases.is_empty()).then_some(&counts);
    finish(&inspector, &args, &tally, followed)
}

fn read_all(
    inspector: &Inspector,
    max_rate: Option<u64>,
    tally: &mut Tally,
) -> Result<(), CommandError> {
    let listing = inspector.list().map_err(CommandError::failed)?;
    let progress = Progress::new(total_bytes(inspector)?);
    let mut pace = progress.pace(max_rate);
    for segment in listing.segments {
        let mut visit = |finding: Finding<'_>| tally.take(inspector, &finding);
        match inspector.walk(segment, Depth::Values, &mut pace, &mut visit) {
            Ok(report) => tally.segment(&report),
            // The others may be whole.
            Err(error) => tally.unreadable(segment, &error.to_string()),
        }
    }
    for name in listing.foreign {
        let line = json!({"event": "foreign", "name": name});
        tally.list(&line, || format!("not of the store: segments/{name}"));
    }
    Ok(())
}

/// Looks up the pieces of every value that has any.
fn check_pieces(inspector: &Inspector, tally: &mut Tally) {
    tally.seen.sort();
    for reference in std::mem::take(&mut tally.seen.manifests) {
        let whole = inspector.pieces(&reference).and_then(|pieces| {
            // One that the walk did not meet may have been written behind it.
            let unmet = pieces.iter().filter(|piece| !tally.seen.holds(piece));
            unmet
                .map(|piece| inspector.read(piece))
                .find_map(Result::err)
                .map_or(Ok(()), Err)
        });
        if let Err(error) = whole {
            tally.totals.incomplete += 1;
            tally.seen.incomplete.insert(reference);
            let place = (reference.segment(), u64::from(reference.offset()));
            let len = u64::from(reference.stored_len());
            let seen = format!(
                "a value of {} bytes in pieces: {error}",
                reference.logical_len()
            );
            tally.stretch("incomplete", place, len, &seen);
        }
    }
}

/// Prints the counts and the list; fails when something is damaged.
fn finish(
    inspector: &Inspector,
    args: &VerifyArgs,
    tally: &Tally,
    rows: Option<&RowCounts>,
) -> Result<(), CommandError> {
    let totals = &tally.totals;
    let none = RowCounts::default();
    let counted = rows.unwrap_or(&none);
    if args.json {
        say(json!({
            "event": "summary",
            "store": inspector.store_id(),
            "identities": inspector.key_problem().unwrap_or("checked"),
            "segments": totals.segments,
            "file_bytes": totals.bytes,
            "records": totals.records,
            "logical_bytes": totals.logical_bytes,
            "stored_bytes": totals.stored_bytes,
            "raw": tally.raw,
            "lz4": tally.lz4,
            "incomplete": totals.incomplete,
            "manifests": tally.manifests,
            "newer": totals.newer,
            "damaged": totals.damaged,
            "damaged_segments": tally.damaged_segments,
            "remains": totals.remains,
            "rows": rows.map(|_| counted.to_json()),
        }));
    } else {
        say(format!(
            "{} segments, {}: {} records ({} raw, {} lz4, {} manifests), {} of values in {}",
            totals.segments,
            readable_size(totals.bytes),
            totals.records,
            tally.raw,
            tally.lz4,
            tally.manifests,
            readable_size(totals.logical_bytes),
            readable_size(totals.stored_bytes)
        ));
        if let Some(problem) = inspector.key_problem() {
            say(format!("not checked: identities, since {problem}"));
        }
        if rows.is_some() {
            say(counted);
        }
        tally.listed.iter().for_each(say);
        if tally.unlisted > 0 {
            say(format!("and {} more, which --json lists", tally.unlisted));
        }
        if totals.remains > 0 {
            say(format!(
                "{} stretches were no records when recovery last looked: what a crash cut off, or \
                 damage from before; --database tells whether a row refers to them",
                totals.remains
            ));
        }
    }
    verdict(args, tally, counted)
}

fn verdict(args: &VerifyArgs, tally: &Tally, rows: &RowCounts) -> Result<(), CommandError> {
    let mut found = Vec::new();
    let mut count = |number: u64, what: &str| {
        if number > 0 {
            found.push(format!("{number} {what}"));
        }
    };
    count(tally.damaged_segments, "damaged segments");
    count(tally.totals.damaged, "damaged stretches");
    count(tally.totals.incomplete, "values with damaged pieces");
    count(tally.totals.newer, "records of a newer program");
    count(rows.damaged, "values in rows that cannot be read");
    if args.strict {
        count(tally.totals.remains, "stretches that recovery left");
    }
    if !found.is_empty() {
        return Err(CommandError::Failed(found.join(", ")));
    }
    if !args.json {
        say("nothing is damaged");
    }
    Ok(())
}
