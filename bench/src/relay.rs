//! What passing queries on costs: `pgbench -S` direct, through pgbouncer and through Toastrack.
//!
//! Nothing is offloaded here. The sides take turns in every round, in rotating order.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde::Serialize;
use toastrack_testkit::Cluster;

use crate::args::{Args, Transport};
use crate::cpu::CpuClock;
use crate::endpoint::Endpoint;
use crate::error::BenchError;
use crate::pooler::Pooler;
use crate::report::{median, percentile};
use crate::servers::{self, DATABASE};
use crate::sidecar::Sidecar;

const MODES: [&str; 3] = ["simple", "extended", "prepared"];
const CLIENTS: [u32; 3] = [1, 8, 64];
/// pgbench's scale: 100,000 rows each, all in memory.
const SCALE: u32 = 10;
const SECONDS: u32 = 2;

/// One run of pgbench.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RelayRun {
    /// Always `relay`.
    kind: &'static str,
    /// `unix` or `tcp`.
    transport: &'static str,
    /// pgbench's query mode.
    mode: &'static str,
    /// Connections.
    clients: u32,
    /// `direct`, `pgbouncer` or `toastrack`.
    side: &'static str,
    /// From 1.
    round: u8,
    /// Queries a second.
    queries_per_second: f64,
    /// 99th percentile of the time of a query, in microseconds.
    p99_us: u32,
    /// Processor time of the proxy for each query, in microseconds; 0 for direct.
    proxy_cpu_us: f64,
}

/// What one run does.
#[derive(Clone, Copy)]
struct Work {
    transport: Transport,
    clients: u32,
    mode: &'static str,
}

/// A server that pgbench can be pointed at.
type Place = (&'static str, Endpoint);

/// Runs everything; each run is given to `report`.
///
/// # Errors
/// When a server does not start, or pgbench fails.
pub(crate) fn run(
    args: &Args,
    directory: &Path,
    mut report: impl FnMut(&RelayRun) -> Result<(), BenchError>,
) -> Result<Vec<RelayRun>, BenchError> {
    let cluster = servers::start_postgres(args, directory)?;
    let sidecar = Sidecar::start(args, &cluster, directory, DATABASE)?;
    let pooler = Pooler::start(&cluster, directory)?;
    let clock = CpuClock {
        proxies: [Some(sidecar.pid()), Some(pooler.pid())],
        postmaster: None,
    };
    let mut places: [Place; 3] = [
        ("direct", Endpoint::of(&cluster)),
        ("pgbouncer", pooler.endpoint().clone()),
        ("toastrack", sidecar.endpoint().clone()),
    ];
    let scale = SCALE.to_string();
    let initialize = ["-i", "-q", "-s", &scale];
    pgbench(&cluster, &places[0], Transport::Unix, &initialize)?;
    let mut runs = Vec::new();
    for work in all_work() {
        for round in 1..=args.rounds {
            for place in &places {
                let run = one(&cluster, place, work, round, clock)?;
                report(&run)?;
                runs.push(run);
            }
            places.rotate_left(1);
        }
    }
    Ok(runs)
}

fn all_work() -> impl Iterator<Item = Work> {
    let transports = [Transport::Unix, Transport::Tcp].into_iter();
    let with_clients = transports.flat_map(|transport| CLIENTS.map(|clients| (transport, clients)));
    with_clients.flat_map(|(transport, clients)| {
        MODES.map(|mode| Work {
            transport,
            clients,
            mode,
        })
    })
}

fn one(
    cluster: &Cluster,
    place: &Place,
    work: Work,
    round: u8,
    clock: CpuClock,
) -> Result<RelayRun, BenchError> {
    let log = tempfile::tempdir().map_err(BenchError::io("make a directory for pgbench's log"))?;
    let prefix = log.path().join("log").display().to_string();
    let (clients, seconds) = (work.clients.to_string(), SECONDS.to_string());
    let what = ["-n", "-S", "-M", work.mode, "-c", &clients, "-T", &seconds];
    let logging = ["--log", "--log-prefix", &prefix];
    let before = clock.read();
    let output = pgbench(
        cluster,
        place,
        work.transport,
        &[&what[..], &logging].concat(),
    )?;
    let cpu = clock.read().since(before).sidecar;
    let mut latencies = latencies(log.path())?;
    latencies.sort_unstable();
    Ok(RelayRun {
        kind: "relay",
        transport: work.transport.name(),
        mode: work.mode,
        clients: work.clients,
        side: place.0,
        round,
        queries_per_second: rate(&output)?,
        p99_us: percentile(&latencies, 99).unwrap_or(0),
        proxy_cpu_us: cpu * 1e6 / latencies.len().max(1) as f64,
    })
}

fn pgbench(
    cluster: &Cluster,
    (side, endpoint): &Place,
    transport: Transport,
    arguments: &[&str],
) -> Result<String, BenchError> {
    let (port, host) = endpoint.port_and_host(transport);
    // Some servers come without it.
    let own = cluster.binaries().directory().join("pgbench");
    let program = if own.is_file() { own } else { "pgbench".into() };
    let output = Command::new(program)
        .args(arguments)
        .args(["-h", &host, "-p", &port.to_string()])
        .args(["-U", cluster.superuser(), DATABASE])
        .output()
        .map_err(BenchError::io("run pgbench"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(BenchError::Pgbench(format!("{side}: {said}")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `tps` in what pgbench prints.
fn rate(output: &str) -> Result<f64, BenchError> {
    output
        .lines()
        .find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok())
        .ok_or_else(|| BenchError::Pgbench(format!("no rate in its output: {output}")))
}

/// Microseconds of each query, the third column of pgbench's logs.
fn latencies(directory: &Path) -> Result<Vec<u32>, BenchError> {
    let reading = || BenchError::io("read pgbench's log");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(reading())? {
        let text = std::fs::read_to_string(entry.map_err(reading())?.path()).map_err(reading())?;
        let column = |line: &str| line.split(' ').nth(2)?.parse::<u32>().ok();
        all.extend(text.lines().filter_map(column));
    }
    Ok(all)
}

/// The table for people: one line for each transport, number of clients and mode.
pub(crate) fn table(runs: &[RelayRun]) -> String {
    let mut text = format!(
        "{:<6}{:<10}{:>8}{:>10}{:>27}{:>27}{:>14}\n",
        "",
        "mode",
        "clients",
        "direct",
        "pgbouncer (cpu, p99)",
        "toastrack (cpu, p99)",
        "x pgbouncer"
    );
    let mut seen = Vec::new();
    for run in runs {
        let key = (run.transport, run.clients, run.mode);
        if seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let of = |side: &str, field: fn(&RelayRun) -> f64| {
            let rounds = runs
                .iter()
                .filter(|run| (run.transport, run.clients, run.mode) == key && run.side == side);
            median(rounds.map(field).collect())
        };
        let rate = |side| of(side, |run| run.queries_per_second);
        let proxy = |side| {
            let cpu = of(side, |run| run.proxy_cpu_us);
            let p99 = of(side, |run| f64::from(run.p99_us));
            format!("{:.0} ({cpu:.0} us, {p99:.0} us)", rate(side))
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:<6}{:<10}{:>8}{:>10.0}{:>27}{:>27}{:>14.2}",
            run.transport,
            run.mode,
            run.clients,
            rate("direct"),
            proxy("pgbouncer"),
            proxy("toastrack"),
            rate("toastrack") / rate("pgbouncer")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_found() {
        let output =
            "latency average = 0.1 ms\ntps = 12345.678901 (without initial connection time)\n";
        assert!((rate(output).unwrap() - 12345.678901).abs() < 1e-6);
        assert!(rate("nothing").is_err());
    }

    #[test]
    fn a_line_holds_the_medians_of_its_rounds() {
        let run = |side, round, queries_per_second| RelayRun {
            kind: "relay",
            transport: "unix",
            mode: "simple",
            clients: 8,
            side,
            round,
            queries_per_second,
            p99_us: 100,
            proxy_cpu_us: 20.0,
        };
        let mut runs = Vec::new();
        for (round, rate) in [(1, 100.0), (2, 500.0), (3, 300.0)] {
            runs.push(run("direct", round, 2.0 * rate));
            runs.push(run("pgbouncer", round, rate));
            runs.push(run("toastrack", round, rate / 2.0));
        }
        let table = table(&runs);
        let line = table.lines().nth(1).unwrap();
        for part in ["600", "300 (20 us, 100 us)", "150 (20 us, 100 us)", "0.50"] {
            assert!(line.contains(part), "{line}");
        }
        assert_eq!(table.lines().count(), 2);
    }
}
