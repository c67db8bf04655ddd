//! `toastrack store`: tools for the chunk store, beside a running `toastrack serve` or without one.

mod dump;
mod progress;
mod repair;
mod rows;
mod snapshot;
mod stat;
mod verify;

use std::path::PathBuf;

use clap::Subcommand;
use toastrack_offload::inspect::Inspector;

use crate::config::{Config, Disk};
use crate::error::CommandError;
use crate::units::ByteSize;

/// Arguments of `store`.
#[derive(Debug, clap::Args)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

/// What to do with the store.
#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Segments, records and sizes
    #[command(after_help = "\
Examples:
  toastrack store stat --config /etc/toastrack.toml
  toastrack store stat --store /var/lib/toastrack/store --json

Works while `toastrack serve` runs, without its lock. Of a sealed segment the seal
says what is in it; an open one is read.")]
    Stat(stat::StatArgs),
    /// Read everything, and say what is damaged
    #[command(after_help = "\
Examples:
  toastrack store verify --config /etc/toastrack.toml
  toastrack store verify --store ./store --max-rate 100MB/s --json
  toastrack store verify --config /etc/toastrack.toml --database postgres://localhost/app

Works while `toastrack serve` runs, without its lock. With --database, which may be
given several times, every reference in the offloaded columns is followed, and rows
whose value is damaged or missing are listed by primary key.

Exit codes: 0 nothing is damaged, 1 something is, or it could not be read.")]
    Verify(verify::VerifyArgs),
    /// Print one value, its header, or a list of all
    #[command(after_help = "\
Examples:
  toastrack store dump toast:AQEAAAAAEAAA --store ./store
  toastrack store dump --segment 00000001 --offset 4096 --store ./store > value
  toastrack store dump --segment 00000001 --offset 4096 --header --store ./store
  toastrack store dump --list --store ./store

Numbers of segments are those of the files' names. The list is in JSON lines, each
with the reference that a row would hold.")]
    Dump(dump::DumpArgs),
    /// Repair a store that is not in use
    #[command(after_help = "\
Examples:
  toastrack store repair --store ./store --dry-run
  toastrack store repair --store ./store --from /backup/store --yes

What verifies stays where it is, and nothing is deleted: what is no segment, and
bytes that are overwritten, go to the folder `quarantine` of the store. Records come
back only from a copy, which is a snapshot or a backup of the same store.")]
    Repair(repair::RepairArgs),
    /// Copy the store by hard links, while it is in use
    #[command(after_help = "\
Examples:
  toastrack store snapshot /var/lib/toastrack/snapshot --config /etc/toastrack.toml
  toastrack store snapshot /backup/store --store ./store --copy --max-rate 200MB/s

For a backup take the base backup of PostgreSQL first and the snapshot when that has
ended: then every value that the base backup refers to is in the snapshot. The
snapshot holds the store's key: keep it as private as the store.")]
    Snapshot(snapshot::SnapshotArgs),
}

/// Which store.
#[derive(Debug, clap::Args)]
struct Location {
    /// The store's directory
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    store: Option<PathBuf>,
    /// The configuration of `serve`, which names the directory [default: the default directory]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Location {
    fn directory(&self) -> Result<PathBuf, CommandError> {
        if let Some(directory) = &self.store {
            return Ok(directory.clone());
        }
        let config = match &self.config {
            Some(file) => Config::load(file, &Disk)?,
            None => Config::defaults()?,
        };
        Ok(config.store.directory)
    }

    fn inspector(&self) -> Result<Inspector, CommandError> {
        Inspector::open(&self.directory()?).map_err(CommandError::failed)
    }
}

/// Bytes a second, as in `100MB/s`.
fn rate(text: &str) -> Result<u64, String> {
    let size = text.trim().strip_suffix("/s").unwrap_or(text);
    match size.parse::<ByteSize>() {
        Ok(ByteSize(0)) | Err(_) => Err(format!("`{text}` is not a rate such as \"100MB/s\"")),
        Ok(ByteSize(bytes)) => Ok(bytes),
    }
}

/// The number of a segment, as in its file's name.
fn segment_number(text: &str) -> Result<u32, String> {
    let digits = text.strip_suffix(".seg").unwrap_or(text);
    match u32::from_str_radix(digits, 16) {
        Ok(number) if number > 0 && !digits.starts_with('+') => Ok(number),
        _ => Err(format!("`{text}` is not a segment such as 0000001a")),
    }
}

/// Runs a subcommand to its end.
///
/// # Errors
/// Whatever made it fail; for `verify` and `dump --list` also damage.
pub(crate) async fn run(args: StoreArgs) -> Result<(), CommandError> {
    // Files are read on this task: there is no other to hold up.
    match args.command {
        StoreCommand::Stat(args) => tokio::task::block_in_place(|| stat::run(&args)),
        StoreCommand::Verify(args) => verify::run(args).await,
        StoreCommand::Dump(args) => tokio::task::block_in_place(|| dump::run(&args)),
        StoreCommand::Repair(args) => tokio::task::block_in_place(|| repair::run(&args)),
        StoreCommand::Snapshot(args) => tokio::task::block_in_place(|| snapshot::run(&args)),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::args::Cli;

    /// Every subcommand has a description and examples that clap accepts.
    #[test]
    fn every_subcommand_has_examples() {
        let cli = Cli::command();
        let store = cli.find_subcommand("store").unwrap();
        let mut seen = 0;
        for command in store.get_subcommands().filter(|c| c.get_name() != "help") {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name}");
            let help = command.get_after_help().unwrap().to_string();
            let call = format!("\n  toastrack store {name}");
            assert!(help.contains("Examples:") && help.contains(&call), "{name}");
            for line in help.lines().filter(|line| line.starts_with("  toastrack ")) {
                let line = line.split(" > ").next().unwrap();
                if let Err(error) = Cli::try_parse_from(line.split_whitespace()) {
                    panic!("{line}: {error}");
                }
                seen += 1;
            }
        }
        assert!(seen >= 10, "{seen}");
    }

    #[test]
    fn rates_and_segments() {
        assert_eq!(rate("100MB/s"), Ok(100_000_000));
        assert_eq!(rate("64 KiB"), Ok(65_536));
        for text in ["", "/s", "0", "fast", "-1MB/s"] {
            assert!(rate(text).is_err(), "{text}");
        }
        assert_eq!(segment_number("0000001a"), Ok(26));
        assert_eq!(segment_number("0000001a.seg"), Ok(26));
        for text in ["", "0", "+1", "x", "123456789"] {
            assert!(segment_number(text).is_err(), "{text}");
        }
    }
}
