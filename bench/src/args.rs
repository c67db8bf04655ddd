//! What the command line says, parsed into validated types.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::data::{DataKind, MIN_VALUE_BYTES, ValueType};
use crate::phase::Phase;
use crate::side::Side;

/// Runs insert, update, point read and full read side by side: direct (plain Postgres), through
/// Toastrack, and the bound (plain Postgres with random strings of a reference's size in place of
/// the values).
///
/// Starts its own durable Postgres and its own Toastrack in a temporary directory and removes
/// them afterwards. The method is described in docs/benchmarks.md.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "toastrack-bench",
    version,
    after_help = "Examples:\n  \
        toastrack-bench\n  \
        toastrack-bench --type jsonb --rounds 3 --json jsonb.jsonl\n  \
        toastrack-bench --columns 20 --size 500\n  \
        toastrack-bench --columns 1 --size 1MB --rows 1000\n  \
        toastrack-bench --sides direct,bound,pgbouncer --phases insert\n  \
        toastrack-bench --relay --rounds 3"
)]
pub(crate) struct Args {
    /// In place of all else, what passing queries on costs: `pgbench -S` in its three modes, with 1, 8
    /// and 64 clients, direct, through pgbouncer and through Toastrack.
    #[arg(long)]
    pub(crate) relay: bool,
    /// What to compare, in the order of the first round.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Side::DEFAULT)]
    pub(crate) sides: Vec<Side>,
    /// What to measure; a phase uses the rows that the phases before it left.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Phase::ALL)]
    pub(crate) phases: Vec<Phase>,
    /// Value columns of the table.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) columns: u8,
    /// Bytes of each value; kB and MB are 1024 and 1024 squared, as in Postgres' settings.
    #[arg(long, default_value = "8kB", value_parser = value_size)]
    pub(crate) size: usize,
    /// Rows of the table.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub(crate) rows: u32,
    /// Connections that insert and update, each row in its own transaction.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=80))]
    pub(crate) connections: u16,
    /// Connections that read single rows.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=80))]
    pub(crate) read_connections: u16,
    /// Connections that each read the whole table.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=80))]
    pub(crate) scan_connections: u16,
    /// Single-row reads of a round; as many as there are rows unless given.
    #[arg(long)]
    pub(crate) reads: Option<u32>,
    /// Timed rounds of each phase, after one warm-up round.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) rounds: u8,
    /// Type of the value columns.
    #[arg(long = "type", value_enum, default_value_t = ValueType::Text)]
    pub(crate) value_type: ValueType,
    /// Content: JSON documents that compress about 2.7 times with lz4, or noise that does not.
    #[arg(long, value_enum, default_value_t = DataKind::Json)]
    pub(crate) data: DataKind,
    /// Seed of the data and of the order in which rows are updated and read.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// How clients connect, on every side.
    #[arg(long, value_enum, default_value_t = Transport::Unix)]
    pub(crate) transport: Transport,
    /// Compression of the plain table.
    #[arg(long, value_enum, default_value_t = Compression::Lz4)]
    pub(crate) compression: Compression,
    /// `shared_buffers` of Postgres.
    #[arg(long, default_value = "1GB", value_parser = size)]
    pub(crate) shared_buffers: usize,
    /// Size of Toastrack's detoast cache.
    #[arg(long, default_value = "1GB", value_parser = size)]
    pub(crate) cache: usize,
    /// Toastrack's threshold in bytes; 2 kB, or half a value where values are smaller than 4 kB.
    #[arg(long, value_parser = size)]
    pub(crate) threshold: Option<usize>,
    /// Rows compared with what was written, for each side, after each writing phase.
    #[arg(long, default_value_t = 64)]
    pub(crate) verify_rows: u32,
    /// Directory for the data of Postgres and Toastrack, on the disk to measure; a temporary
    /// directory unless given.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) directory: Option<PathBuf>,
    /// The toastrack binary; the one next to this binary unless given, built when there is none.
    #[arg(long, value_name = "FILE")]
    pub(crate) toastrack: Option<PathBuf>,
    /// Also write each run and each summary to this file, as JSON lines.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// How clients reach all sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// A Unix socket, as on the machine of the server or of the sidecar.
    Unix,
    /// TCP on loopback.
    Tcp,
}

impl Transport {
    /// The name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Transport::Unix => "unix",
            Transport::Tcp => "tcp",
        }
    }
}

/// `default_toast_compression` of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compression {
    /// Fast; needs a server built with lz4.
    Lz4,
    /// Postgres' own, its default.
    Pglz,
}

impl Compression {
    /// The value of the setting.
    pub(crate) fn setting(self) -> &'static str {
        match self {
            Compression::Lz4 => "lz4",
            Compression::Pglz => "pglz",
        }
    }
}

impl Args {
    /// Single-row reads of a round.
    pub(crate) fn reads(&self) -> u32 {
        self.reads.unwrap_or(self.rows).max(1)
    }

    /// Toastrack's threshold in bytes.
    pub(crate) fn threshold_bytes(&self) -> usize {
        self.threshold
            .unwrap_or_else(|| (2 * KIB).min(self.size / 2))
    }
}

const KIB: usize = 1024;

/// Bytes from a number with an optional unit, as Postgres reads its settings.
fn size(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
    let factor = match text[digits.len()..].trim() {
        "" | "B" => 1,
        "kB" | "KiB" => KIB,
        "MB" | "MiB" => KIB * KIB,
        "GB" | "GiB" => KIB * KIB * KIB,
        unit => return Err(format!("unknown unit {unit:?}, use B, kB, MB or GB")),
    };
    let number: usize = digits
        .parse()
        .map_err(|_| format!("not a number of bytes: {text:?}"))?;
    number
        .checked_mul(factor)
        .ok_or_else(|| format!("too large: {text:?}"))
}

fn value_size(text: &str) -> Result<usize, String> {
    let bytes = size(text)?;
    if (MIN_VALUE_BYTES..=64 * KIB * KIB).contains(&bytes) {
        Ok(bytes)
    } else {
        Err(format!(
            "a value has {MIN_VALUE_BYTES} bytes to 64 MB, not {bytes}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn sizes_are_read_as_postgres_reads_them() {
        assert_eq!(size("8kB"), Ok(8192));
        assert_eq!(size("1 MB"), Ok(1 << 20));
        assert_eq!(size("500"), Ok(500));
        assert!(size("8k").is_err());
        assert!(size("-1").is_err());
        assert!(size("99999999999GB").is_err());
        assert!(value_size("8").is_err());
    }

    #[test]
    fn the_threshold_follows_small_values() {
        let args = Args::parse_from(["toastrack-bench", "--size", "500"]);
        assert_eq!(args.threshold_bytes(), 250);
        let args = Args::parse_from(["toastrack-bench"]);
        assert_eq!(args.threshold_bytes(), 2048);
    }
}
