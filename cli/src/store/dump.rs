//! `toastrack store dump`

use std::io::Write;

use serde_json::{Value, json};
use toastrack_offload::inspect::{Chunk, Depth, Finding, Inspector, Pace};

use super::{Location, segment_number};
use crate::error::CommandError;
use crate::output::say;

/// Arguments of `store dump`.
#[derive(Debug, clap::Args)]
pub(super) struct DumpArgs {
    /// A reference as it stands in a row
    #[arg(value_name = "REFERENCE", required_unless_present_any = ["list", "offset"],
          conflicts_with_all = ["list", "segment", "offset"])]
    reference: Option<String>,
    #[command(flatten)]
    location: Location,
    /// The segment of the value, or the one to list
    #[arg(long, value_name = "N", value_parser = segment_number)]
    segment: Option<u32>,
    /// Bytes from the start of the segment file
    #[arg(
        long,
        value_name = "BYTES",
        requires = "segment",
        conflicts_with = "list"
    )]
    offset: Option<u32>,
    /// Print the decoded header, as JSON, in place of the value
    #[arg(long, conflicts_with = "list")]
    header: bool,
    /// List every record as a JSON line
    #[arg(long)]
    list: bool,
}

/// Prints what was asked for.
pub(super) fn run(args: &DumpArgs) -> Result<(), CommandError> {
    let inspector = args.location.inspector()?;
    if args.list {
        return list(&inspector, args.segment);
    }
    if let Some(problem) = inspector.key_problem() {
        eprintln!("toastrack: identities are not checked: {problem}");
    }
    let (chunk, value) = match (&args.reference, args.segment, args.offset) {
        (Some(text), _, _) => by_reference(&inspector, text)?,
        (None, Some(segment), Some(offset)) => inspector
            .read_at(segment, offset)
            .map_err(CommandError::failed)?,
        _ => {
            let message = "name a reference, or --segment and --offset, or --list";
            return Err(CommandError::Usage(message.to_owned()));
        }
    };
    if args.header {
        say(format_args!("{:#}", described(&inspector, &chunk)));
    } else {
        // A reader that has gone away is no failure of the command.
        let _ = std::io::stdout().lock().write_all(&value);
    }
    Ok(())
}

fn by_reference(inspector: &Inspector, text: &str) -> Result<(Chunk, Vec<u8>), CommandError> {
    if let Some(problem) = inspector.key_problem() {
        let message = format!("without its key the store cannot read references: {problem}");
        return Err(CommandError::Failed(message));
    }
    // In json and jsonb it stands between quotes.
    let reference = inspector
        .parse_any_text(text.trim_matches('"').as_bytes())
        .ok_or_else(|| CommandError::Failed("that is not a reference of this store".to_owned()))?;
    inspector.read(&reference).map_err(CommandError::failed)
}

fn list(inspector: &Inspector, only: Option<u32>) -> Result<(), CommandError> {
    let segments = inspector.list().map_err(CommandError::failed)?.segments;
    let mut pace = Pace::unbounded();
    let mut unsound = 0;
    for segment in segments {
        if only.is_some_and(|only| only != segment) {
            continue;
        }
        let mut visit = |finding: Finding<'_>| match finding {
            Finding::Record(chunk) | Finding::Newer(chunk) => say(described(inspector, chunk)),
            Finding::Damaged(damage) | Finding::Remains(damage) => say(json!({
                "segment": format!("{:08x}", damage.segment),
                "offset": damage.offset,
                "damaged_bytes": damage.len,
                "seen": damage.seen,
            })),
        };
        let report = inspector
            .walk(segment, Depth::Checksums, &mut pace, &mut visit)
            .map_err(CommandError::failed)?;
        unsound += u64::from(!report.is_sound());
    }
    if unsound > 0 {
        let message = format!("{unsound} segments are damaged; `toastrack store verify` says how");
        return Err(CommandError::Failed(message));
    }
    Ok(())
}

/// What the header of a record says.
fn described(inspector: &Inspector, chunk: &Chunk) -> Value {
    let reference = inspector
        .reference(chunk)
        .map(|reference| String::from_utf8_lossy(&reference.to_text()).into_owned());
    let codec = chunk.codec().map(|codec| match codec {
        toastrack_offload::Codec::Raw => "raw",
        toastrack_offload::Codec::Lz4 => "lz4",
        toastrack_offload::Codec::Manifest => "manifest",
    });
    let digest = chunk
        .digest()
        .map(|digest| -> String { digest.iter().map(|byte| format!("{byte:02x}")).collect() });
    json!({
        "segment": format!("{:08x}", chunk.segment()),
        "offset": chunk.offset(),
        "type": chunk.record_type(),
        "kind": chunk.kind().map(|kind| kind.name()),
        "codec": codec,
        "flags": chunk.flags(),
        "stored_len": chunk.stored_len(),
        "logical_len": chunk.logical_len(),
        "char_len": chunk.char_len(),
        "identity": chunk.identity().to_string(),
        "crc": format!("{:08x}", chunk.crc()),
        "digest": digest,
        "reference": reference,
    })
}
