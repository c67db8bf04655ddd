//! From runs to medians, ratios, a table and JSON lines.

use std::fmt::Write as _;

use serde::Serialize;

use crate::cpu::CpuSeconds;
use crate::phase::{Phase, Tally};
use crate::side::Side;

/// One timed round of one phase on one side.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Run {
    /// Always `run`, to tell the JSON lines apart.
    pub(crate) kind: &'static str,
    /// Name of the phase.
    pub(crate) phase: &'static str,
    /// Name of the side.
    pub(crate) side: &'static str,
    /// From 1; the warm-up round is not reported.
    pub(crate) round: u8,
    /// Wall-clock time.
    pub(crate) seconds: f64,
    /// Rows written or received.
    pub(crate) rows: u64,
    /// Bytes of values written or received.
    pub(crate) value_bytes: u64,
    /// Rows in a second.
    pub(crate) rows_per_second: f64,
    /// Megabytes (10^6) of values in a second.
    pub(crate) megabytes_per_second: f64,
    /// Median time of a statement in microseconds; absent for full reads.
    pub(crate) p50_us: Option<u32>,
    /// 99th percentile of the same.
    pub(crate) p99_us: Option<u32>,
    /// Processor microseconds of this process for each row.
    pub(crate) client_cpu_us_per_row: f64,
    /// Processor microseconds of Toastrack for each row.
    pub(crate) sidecar_cpu_us_per_row: f64,
    /// Processor microseconds of Postgres for each row.
    pub(crate) postgres_cpu_us_per_row: f64,
    /// Bytes of write-ahead log for each row.
    pub(crate) wal_bytes_per_row: f64,
    #[serde(skip)]
    pub(crate) place: (Phase, Side),
}

impl Run {
    /// Puts one measurement together.
    pub(crate) fn new(
        (phase, side): (Phase, Side),
        round: u8,
        seconds: f64,
        tally: Tally,
        cpu: CpuSeconds,
        wal_bytes: u64,
    ) -> Run {
        let mut latencies = tally.latencies_us;
        latencies.sort_unstable();
        let rows = tally.rows.max(1) as f64;
        let cpu_us = |seconds: f64| seconds * 1e6 / rows;
        Run {
            kind: "run",
            phase: phase.name(),
            side: side.name(),
            round,
            seconds,
            rows: tally.rows,
            value_bytes: tally.bytes,
            rows_per_second: tally.rows as f64 / seconds,
            megabytes_per_second: tally.bytes as f64 / 1e6 / seconds,
            p50_us: percentile(&latencies, 50),
            p99_us: percentile(&latencies, 99),
            client_cpu_us_per_row: cpu_us(cpu.client),
            sidecar_cpu_us_per_row: cpu_us(cpu.sidecar),
            postgres_cpu_us_per_row: cpu_us(cpu.postgres),
            wal_bytes_per_row: wal_bytes as f64 / rows,
            place: (phase, side),
        }
    }
}

/// The medians of one phase on one side.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Summary {
    /// Always `summary`.
    pub(crate) kind: &'static str,
    /// Name of the phase.
    pub(crate) phase: &'static str,
    /// Name of the side.
    pub(crate) side: &'static str,
    /// Timed rounds.
    pub(crate) rounds: usize,
    /// Median of `rows_per_second`.
    pub(crate) rows_per_second: f64,
    /// The slowest round.
    pub(crate) rows_per_second_min: f64,
    /// The fastest round.
    pub(crate) rows_per_second_max: f64,
    /// Median of `megabytes_per_second`.
    pub(crate) megabytes_per_second: f64,
    /// This median divided by that of direct; absent when direct did not run.
    pub(crate) times_direct: Option<f64>,
    /// This median divided by that of the bound; absent when the bound did not run.
    pub(crate) of_bound: Option<f64>,
    /// Median of `p50_us`.
    pub(crate) p50_us: Option<u32>,
    /// Median of `p99_us`.
    pub(crate) p99_us: Option<u32>,
    /// Medians of the processor time for each row.
    pub(crate) client_cpu_us_per_row: f64,
    /// See `client_cpu_us_per_row`.
    pub(crate) sidecar_cpu_us_per_row: f64,
    /// See `client_cpu_us_per_row`.
    pub(crate) postgres_cpu_us_per_row: f64,
    /// Median of `wal_bytes_per_row`.
    pub(crate) wal_bytes_per_row: f64,
    #[serde(skip)]
    place: (Phase, Side),
}

/// What the tables and the store occupy at the end.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Space {
    /// Always `space`.
    pub(crate) kind: &'static str,
    /// Name of the side.
    pub(crate) side: &'static str,
    /// `pg_total_relation_size` of the side's table, after a vacuum.
    pub(crate) postgres_bytes: u64,
    /// Files of the chunk store, with what all rounds left there and what is set aside ahead of
    /// writes; 0 on the other sides.
    pub(crate) store_bytes: u64,
}

/// Summaries of everything that ran, phases and sides in order.
pub(crate) fn summarize(runs: &[Run]) -> Vec<Summary> {
    let mut summaries = Vec::new();
    for phase in Phase::ALL {
        let rate = |side| {
            let rates = pick(runs, (phase, side), |run| run.rows_per_second);
            (!rates.is_empty()).then(|| median(rates))
        };
        let direct = rate(Side::Direct);
        let bound = rate(Side::Bound);
        for side in Side::ALL {
            let Some(rows_per_second) = rate(side) else {
                continue;
            };
            let of = |field: fn(&Run) -> f64| median(pick(runs, (phase, side), field));
            let latency = |field: fn(&Run) -> Option<u32>| {
                let mut all: Vec<u32> = of_place(runs, (phase, side)).filter_map(field).collect();
                all.sort_unstable();
                percentile(&all, 50)
            };
            let rates = pick(runs, (phase, side), |run| run.rows_per_second);
            summaries.push(Summary {
                kind: "summary",
                phase: phase.name(),
                side: side.name(),
                rounds: rates.len(),
                rows_per_second,
                rows_per_second_min: rates.iter().copied().fold(f64::INFINITY, f64::min),
                rows_per_second_max: rates.iter().copied().fold(0.0, f64::max),
                megabytes_per_second: of(|run| run.megabytes_per_second),
                times_direct: direct.map(|direct| rows_per_second / direct),
                of_bound: bound.map(|bound| rows_per_second / bound),
                p50_us: latency(|run| run.p50_us),
                p99_us: latency(|run| run.p99_us),
                client_cpu_us_per_row: of(|run| run.client_cpu_us_per_row),
                sidecar_cpu_us_per_row: of(|run| run.sidecar_cpu_us_per_row),
                postgres_cpu_us_per_row: of(|run| run.postgres_cpu_us_per_row),
                wal_bytes_per_row: of(|run| run.wal_bytes_per_row),
                place: (phase, side),
            });
        }
    }
    summaries
}

fn of_place(runs: &[Run], place: (Phase, Side)) -> impl Iterator<Item = &Run> {
    runs.iter().filter(move |run| run.place == place)
}

fn pick(runs: &[Run], place: (Phase, Side), field: fn(&Run) -> f64) -> Vec<f64> {
    of_place(runs, place).map(field).collect()
}

/// The middle value, or the mean of the two middle ones; 0 of nothing.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

/// Nearest-rank percentile of sorted values.
pub(crate) fn percentile(sorted: &[u32], percent: usize) -> Option<u32> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

/// The table for people: one line for each phase and side.
pub(crate) fn table(summaries: &[Summary]) -> String {
    let mut text = format!(
        "{:<11}{:<11}{:>9}{:>19}{:>8}{:>9}{:>9}{:>8}{:>9}  {}\n",
        "phase",
        "side",
        "rows/s",
        "min..max",
        "MB/s",
        "x direct",
        "of bound",
        "p50 us",
        "WAL/row",
        "cpu us/row: client + toastrack + postgres"
    );
    let mut last = None;
    for summary in summaries {
        let (phase, side) = summary.place;
        let phase_name = if last == Some(phase) {
            ""
        } else {
            phase.name()
        };
        last = Some(phase);
        // Bytes of the bound's strings say nothing about bytes of values.
        let megabytes = match side {
            Side::Bound | Side::Pgbouncer => "-".to_owned(),
            Side::Direct | Side::Toastrack => format!("{:.0}", summary.megabytes_per_second),
        };
        let range = format!(
            "{}..{}",
            thousands(summary.rows_per_second_min),
            thousands(summary.rows_per_second_max)
        );
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{phase_name:<11}{:<11}{:>9}{range:>19}{megabytes:>8}{:>9}{:>9}{:>8}{:>9}  {:.0} + {:.0} + {:.0}",
            side.name(),
            thousands(summary.rows_per_second),
            optional(summary.times_direct, |times| format!("{times:.2}")),
            optional(summary.of_bound, |share| format!("{:.0} %", share * 100.0)),
            optional(summary.p50_us, |us| thousands(f64::from(us))),
            thousands(summary.wal_bytes_per_row),
            summary.client_cpu_us_per_row,
            summary.sidecar_cpu_us_per_row,
            summary.postgres_cpu_us_per_row,
        );
    }
    text
}

fn optional<T>(value: Option<T>, render: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), render)
}

/// A rounded number with commas: `12,345`.
fn thousands(number: f64) -> String {
    let digits = format!("{:.0}", number.max(0.0));
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(side: Side, round: u8, seconds: f64) -> Run {
        let tally = Tally {
            rows: 1000,
            bytes: 8_000_000,
            latencies_us: vec![30, 10, 20],
        };
        let place = (Phase::Insert, side);
        Run::new(place, round, seconds, tally, CpuSeconds::default(), 500_000)
    }

    #[test]
    fn medians_ignore_an_outlier_and_ratios_compare_medians() {
        let mut runs = Vec::new();
        for (round, (direct, toastrack, bound)) in
            [(1.0, 0.5, 0.25), (9.0, 0.5, 0.25), (1.0, 0.4, 0.2)]
                .into_iter()
                .enumerate()
        {
            let round = round as u8 + 1;
            runs.push(run(Side::Direct, round, direct));
            runs.push(run(Side::Toastrack, round, toastrack));
            runs.push(run(Side::Bound, round, bound));
        }
        let summaries = summarize(&runs);
        assert_eq!(summaries.len(), 3);
        let toastrack = &summaries[1];
        assert_eq!(toastrack.rows_per_second, 2000.0);
        assert_eq!(toastrack.rows_per_second_max, 2500.0);
        assert_eq!(toastrack.times_direct, Some(2.0));
        assert_eq!(toastrack.of_bound, Some(0.5));
        assert_eq!(toastrack.p50_us, Some(20));
        assert_eq!(toastrack.megabytes_per_second, 16.0);
        assert_eq!(toastrack.wal_bytes_per_row, 500.0);
        assert_eq!(summaries[0].rows_per_second_min, 1000.0 / 9.0);
    }

    #[test]
    fn a_side_that_did_not_run_has_no_line_and_gives_no_ratio() {
        let summaries = summarize(&[run(Side::Bound, 1, 1.0)]);
        assert_eq!(summaries.len(), 1);
        assert_eq!(summaries[0].times_direct, None);
        let text = table(&summaries);
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains("insert"));
        assert!(text.contains("1,000"));
    }

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_the_middle() {
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!(median(Vec::new()), 0.0);
        assert_eq!(percentile(&[1, 2, 3, 4], 50), Some(2));
        assert_eq!(percentile(&[1, 2, 3, 4], 99), Some(4));
        assert_eq!(percentile(&[], 50), None);
    }

    #[test]
    fn numbers_have_commas() {
        assert_eq!(thousands(1234567.4), "1,234,567");
        assert_eq!(thousands(999.6), "1,000");
        assert_eq!(thousands(7.0), "7");
    }
}
