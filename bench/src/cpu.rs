//! Processor time of the three parties, since they share the machine's cores.

use std::fs;

/// Processor seconds since each process began.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CpuSeconds {
    /// This process: the driver and the workload.
    pub(crate) client: f64,
    /// The proxies, of which one at most is busy at a time; 0 when there is none.
    pub(crate) sidecar: f64,
    /// The postmaster and its children that still run.
    pub(crate) postgres: f64,
}

impl CpuSeconds {
    /// What was used between two readings.
    pub(crate) fn since(self, earlier: CpuSeconds) -> CpuSeconds {
        // A background worker that ended in between takes its time with it: never below zero.
        let used = |now: f64, then: f64| (now - then).max(0.0);
        CpuSeconds {
            client: used(self.client, earlier.client),
            sidecar: used(self.sidecar, earlier.sidecar),
            postgres: used(self.postgres, earlier.postgres),
        }
    }
}

/// The processes to watch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuClock {
    /// The process ids of the sidecar and of pgbouncer.
    pub(crate) proxies: [Option<u32>; 2],
    /// The postmaster's process id.
    pub(crate) postmaster: Option<u32>,
}

impl CpuClock {
    /// Reads `/proc`; what cannot be read counts as 0.
    pub(crate) fn read(self) -> CpuSeconds {
        let of = |pid: u32| process(pid).map_or(0.0, |process| process.cpu_seconds);
        CpuSeconds {
            client: of(std::process::id()),
            sidecar: self.proxies.into_iter().flatten().map(of).sum(),
            postgres: self.postmaster.map_or(0.0, family_seconds),
        }
    }
}

struct Process {
    parent: u32,
    cpu_seconds: f64,
}

/// `USER_HZ`, which Linux fixes at 100 for what `/proc` shows.
const TICKS_PER_SECOND: f64 = 100.0;

fn process(pid: u32) -> Option<Process> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(stat: &str) -> Option<Process> {
    // The name in parentheses may hold blanks and parentheses of its own.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Process {
        parent: u32::try_from(number(1)?).ok()?,
        cpu_seconds: (number(11)? + number(12)?) as f64 / TICKS_PER_SECOND,
    })
}

fn family_seconds(postmaster: u32) -> f64 {
    let Ok(entries) = fs::read_dir("/proc") else {
        return 0.0;
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|pid| Some((pid, process(pid)?)))
        .filter(|(pid, process)| *pid == postmaster || process.parent == postmaster)
        .map(|(_, process)| process.cpu_seconds)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let process =
            parse_stat("7 (a) b (c)) S 42 7 7 0 -1 4194560 10 0 0 0 250 150 0 0 20 0 1 0 5")
                .unwrap();
        assert_eq!(process.parent, 42);
        assert!((process.cpu_seconds - 4.0).abs() < 1e-9);
        assert!(parse_stat("garbage").is_none());
    }

    #[test]
    fn this_process_is_found() {
        let clock = CpuClock {
            proxies: [None, None],
            postmaster: process(std::process::id()).map(|process| process.parent),
        };
        let read = clock.read();
        assert!(read.client >= 0.0 && read.postgres >= read.client);
    }
}
