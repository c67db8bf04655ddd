//! Kill, damage what was not acknowledged, start again, compare everything.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use crate::damage::{Damage, Damaged};
use crate::model::{self, Ledger};
use crate::random::Random;
use crate::rig::Rig;
use crate::segments::{self, Address, Segment};
use crate::server::Serving;
use crate::tally::Tally;

/// Unless `TOASTRACK_CRASH_ROUNDS` says otherwise.
const ROUNDS: u64 = 200;
const WRITERS: u64 = 6;

/// Proves: whenever the sidecar is killed under write load, and whatever a power cut would have
/// left of what was not acknowledged, every committed row reads back as exactly what was written
/// (S3, S4), nothing else is there, no read fails, and recovery cuts what is torn and never writes
/// behind it.
///
/// After every kill: the server's own view of the rows says which records are referred to; the
/// bytes behind the last of them are damaged; the sidecar starts with an empty cache, and the whole
/// table is read through it and compared with what the writers had acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn committed_rows_survive_kills() {
    let seed = number("TOASTRACK_CRASH_SEED").unwrap_or_else(|| RandomState::new().hash_one(0));
    let rounds = number("TOASTRACK_CRASH_ROUNDS").unwrap_or(ROUNDS);
    println!("TOASTRACK_CRASH_SEED={seed} TOASTRACK_CRASH_ROUNDS={rounds}");
    let began = Instant::now();
    let mut run = Run::new(Rig::start("").await, seed);
    for round in 0..rounds {
        run.round(round).await;
    }
    run.finish(rounds).await;
    run.tally.elapsed = began.elapsed();
    println!("{}", run.tally);

    // A run in which nothing happened proves nothing.
    let tally = &run.tally;
    assert!(tally.references > tally.inline, "most values stay inline");
    assert!(tally.acknowledged > rounds && tally.dedup_hits > rounds / 4);
    if rounds >= ROUNDS {
        assert!(tally.tails > rounds / 4 && tally.cut > rounds / 8);
        assert!(tally.segments > rounds / 2 && tally.damages.len() >= 5);
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}={text} is not a number")),
    )
}

struct Run {
    rig: Rig,
    random: Random,
    ledgers: Vec<Ledger>,
    tally: Tally,
    /// Where in the run it is, for messages.
    at: String,
    /// Done since the last start.
    damage: Option<Damaged>,
    sealed: BTreeSet<u32>,
    /// Segments that were damaged, as they were after the next start: to stay so for ever.
    frozen: BTreeMap<u32, Segment>,
}

impl Run {
    fn new(rig: Rig, seed: u64) -> Run {
        Run {
            rig,
            random: Random::new(seed, u64::MAX),
            ledgers: (0..WRITERS).map(Ledger::new).collect(),
            tally: Tally {
                seed,
                ..Tally::default()
            },
            at: String::new(),
            damage: None,
            sealed: BTreeSet::new(),
            frozen: BTreeMap::new(),
        }
    }

    fn fail(&self, what: &str) -> ! {
        panic!("{}: {what}", self.at)
    }

    async fn round(&mut self, round: u64) {
        self.at = format!("seed {} round {round}", self.tally.seed);
        self.tally.rounds += 1;
        if round > 0 && self.random.percent(10) {
            self.tally.kills_at_start += 1;
            let after = self.random.below(80);
            self.rig.kill_at_start(Duration::from_millis(after));
        }
        let mut serving = self.start().await;
        let ledgers = std::mem::take(&mut self.ledgers);
        let load = self.rig.load(&serving, ledgers, self.random.next()).await;
        let pause = Duration::from_millis(self.random.within(5, 250));
        tokio::time::sleep(pause).await;

        let metrics = self.rig.metrics(&serving);
        self.tally.values_offloaded += metrics.value("toastrack_store_values_total");
        self.tally.dedup_hits += metrics.value("toastrack_store_dedup_hits_total");
        if let Some(error) = metrics.error() {
            self.fail(&error);
        }
        load.expect_end();
        serving.child.kill().unwrap();
        serving.child.wait().unwrap();
        match load.end().await {
            Ok((ledgers, acknowledged)) => {
                self.ledgers = ledgers;
                self.tally.acknowledged += acknowledged;
            }
            Err(wrong) => self.fail(&wrong),
        }
        self.check_log(&serving);
        self.rig.sessions_ended().await;
        self.damage().await;
    }

    /// Starts the sidecar and compares everything.
    async fn start(&mut self) -> Serving {
        let began = Instant::now();
        let serving = self.rig.serve();
        self.tally.starting += began.elapsed();
        self.check_recovery();
        self.compare(&serving).await;
        serving
    }

    async fn compare(&mut self, serving: &Serving) {
        let client = self.rig.through(serving).await;
        let table = match model::read_table(&client).await {
            Ok(table) => table,
            Err(error) => {
                let row = self.unreadable(&client).await;
                self.fail(&format!(
                    "{row} cannot be read: {error:?}; last damage {:?}",
                    self.damage
                ))
            }
        };
        let settled = model::settle(&mut self.ledgers, &table);
        self.tally.doubts.committed += settled.committed;
        self.tally.doubts.lost += settled.lost;
        self.tally.rows_compared += table.len() as u64;
        if let Some(what) = model::difference(&self.ledgers, &table) {
            self.fail(&format!("{what}; last damage {:?}", self.damage));
        }
        if let Some(error) = self.rig.metrics(serving).error() {
            self.fail(&error);
        }
        self.damage = None;
    }

    /// The first row that cannot be read alone.
    async fn unreadable(&self, client: &Client) -> String {
        for id in self.ledgers.iter().flat_map(|ledger| ledger.rows.keys()) {
            if model::read_row(client, *id).await.is_err() {
                return format!("row {id}");
            }
        }
        "the table".to_owned()
    }

    /// Damages a segment behind everything that a row refers to.
    async fn damage(&mut self) {
        let table = model::read_table(&self.rig.direct).await.unwrap();
        let (references, inline) = segments::references(&table);
        self.tally.references += references.len() as u64;
        self.tally.inline += inline;
        let floors = segments::floors(&references);
        let floor = |segment: &Segment| {
            let floor = floors.get(&segment.number).copied();
            floor.unwrap_or(segments::RECORDS_START)
        };
        let open = self.open_segments();
        for segment in &open {
            self.check_present(segment, &references);
        }
        let tails: Vec<&Segment> = open
            .iter()
            .filter(|segment| segment.used_end() > floor(segment))
            .collect();
        if !tails.is_empty() {
            self.tally.tails += 1;
        }
        let candidates = if tails.is_empty() {
            open.iter().collect()
        } else {
            tails
        };
        if candidates.is_empty() || !self.random.percent(60) {
            return;
        }
        let chosen = candidates[self.random.below(candidates.len() as u64) as usize];
        let damage = Damage::any(&mut self.random);
        self.damage = damage.apply(chosen, floor(chosen), &mut self.random);
        if self.damage.is_some() {
            *self.tally.damages.entry(damage).or_default() += 1;
        }
    }

    /// Segments without a seal that were not damaged before.
    fn open_segments(&mut self) -> Vec<Segment> {
        let mut open = Vec::new();
        for number in segments::numbers(&self.rig.store) {
            if self.sealed.contains(&number) || self.frozen.contains_key(&number) {
                continue;
            }
            let segment = Segment::read(&self.rig.store, number);
            match segment.seal() {
                Some(_) => {
                    self.sealed.insert(number);
                }
                None => open.push(segment),
            }
        }
        open
    }

    /// What a row refers to was in the file when the process died (S3).
    fn check_present(&self, segment: &Segment, references: &[Address]) {
        for address in references.iter().filter(|a| a.segment == segment.number) {
            if !segment.holds(address) {
                self.fail(&format!(
                    "a row refers to {address:?}, which was not written"
                ));
            }
        }
    }

    /// What was torn has been cut, at the right place.
    fn check_recovery(&mut self) {
        let before: BTreeSet<u32> = self.sealed.clone();
        let open: BTreeSet<u32> = self.open_segments().iter().map(|s| s.number).collect();
        self.tally.segments = segments::numbers(&self.rig.store).len() as u64;
        let damaged = self.damage.clone();
        for number in &self.sealed - &before {
            let segment = Segment::read(&self.rig.store, number);
            let seal = segment.seal().unwrap();
            if !seal.recovered {
                continue;
            }
            self.tally.cut += 1;
            let damaged = damaged.as_ref().filter(|damaged| damaged.number == number);
            match damaged {
                Some(damaged) if seal.tail < damaged.floor => {
                    self.fail(&format!("cut at {} after {damaged:?}", seal.tail));
                }
                Some(_) => {}
                None => self.tally.cut_undamaged += 1,
            }
            self.frozen.insert(number, segment);
        }
        let Some(damaged) = damaged else { return };
        if damaged.certain && open.contains(&damaged.number) {
            self.fail(&format!("not cut: {damaged:?}"));
        }
        if damaged.damage == Damage::ShortFile {
            let segment = Segment::read(&self.rig.store, damaged.number);
            self.frozen.insert(damaged.number, segment);
        }
    }

    /// Nothing panicked, and no error was logged but for files that were cut short here.
    fn check_log(&self, serving: &Serving) {
        let log = serving.log();
        let bad = log.iter().find(|line| {
            line.contains("panicked")
                || line.contains("ERROR") && !line.contains("segment header is damaged")
        });
        if let Some(line) = bad {
            self.fail(line);
        }
    }

    /// Compares once more, after a clean stop as well, and looks at what must not have changed.
    async fn finish(&mut self, rounds: u64) {
        self.at = format!("seed {} after round {rounds}", self.tally.seed);
        for _ in 0..2 {
            let serving = self.start().await;
            self.check_log(&serving);
            assert_eq!(serving.stop().code(), Some(0), "{}", self.at);
        }
        for (number, segment) in &self.frozen {
            if Segment::read(&self.rig.store, *number).bytes != segment.bytes {
                self.fail(&format!("segment {number} was written after it was cut"));
            }
        }
        let direct = model::read_table(&self.rig.direct).await.unwrap();
        let expected: usize = self.ledgers.iter().map(|ledger| ledger.rows.len()).sum();
        assert_eq!(direct.len(), expected, "{}", self.at);
    }
}
