//! What a run saw.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::damage::Damage;
use crate::model::Settled;

/// Counts over all rounds.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) seed: u64,
    pub(crate) rounds: u64,
    pub(crate) elapsed: Duration,
    pub(crate) starting: Duration,
    pub(crate) kills_at_start: u64,
    pub(crate) acknowledged: u64,
    pub(crate) doubts: Settled,
    pub(crate) rows_compared: u64,
    pub(crate) references: u64,
    pub(crate) inline: u64,
    pub(crate) values_offloaded: u64,
    pub(crate) dedup_hits: u64,
    pub(crate) segments: u64,
    /// Kills that left bytes behind the last record that a row refers to.
    pub(crate) tails: u64,
    pub(crate) damages: BTreeMap<Damage, u64>,
    pub(crate) cut: u64,
    /// Segments that were cut without having been damaged here.
    pub(crate) cut_undamaged: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64();
        writeln!(
            f,
            "seed {}: {} kills in {seconds:.0} s, {} of them followed by one during the start; \
             ready again after {:.0} ms on average",
            self.seed,
            self.rounds,
            self.kills_at_start,
            self.starting.as_secs_f64() * 1000.0 / self.rounds.max(1) as f64,
        )?;
        writeln!(
            f,
            "{} transactions acknowledged, {} in doubt (of which {} were committed); \
             {} rows compared",
            self.acknowledged,
            self.doubts.committed + self.doubts.lost,
            self.doubts.committed,
            self.rows_compared,
        )?;
        writeln!(
            f,
            "at least {} values offloaded, {} of them shared; {} references and {} inline values \
             seen in rows; {} segments",
            self.values_offloaded, self.dedup_hits, self.references, self.inline, self.segments,
        )?;
        write!(
            f,
            "{} kills with a tail that no row refers to; damage {:?}; {} tails cut, {} of them \
             torn by the kill itself",
            self.tails, self.damages, self.cut, self.cut_undamaged,
        )
    }
}
