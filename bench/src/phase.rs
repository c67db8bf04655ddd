//! The four workloads: what runs between two readings of the clock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use futures::TryStreamExt;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use tokio_postgres::{Client, Row, Statement};

use crate::data::{Param, Pool, Received, ValueId};

/// One kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Phase {
    /// Each row by a statement and a transaction of its own, into an empty table.
    Insert,
    /// All value columns of each row, by id, in random order.
    Update,
    /// Random rows by id.
    Point,
    /// The whole table, streamed.
    Full,
}

impl Phase {
    /// All phases, in the order they run.
    pub(crate) const ALL: [Phase; 4] = [Phase::Insert, Phase::Update, Phase::Point, Phase::Full];

    /// The name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Phase::Insert => "insert",
            Phase::Update => "update",
            Phase::Point => "point read",
            Phase::Full => "full read",
        }
    }
}

/// What the workload tasks need, beside their connection.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    /// The values of the side.
    pub(crate) pool: Arc<Pool>,
    /// Counts writing runs; makes their values different.
    pub(crate) generation: u16,
    /// Value columns.
    pub(crate) columns: u8,
    /// Rows of the table, with ids from 0.
    pub(crate) rows: u32,
    /// Single-row reads.
    pub(crate) reads: u32,
    /// Seed of orders and choices.
    pub(crate) seed: u64,
}

/// What the clients counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Rows written or received.
    pub(crate) rows: u64,
    /// Bytes of values written or received.
    pub(crate) bytes: u64,
    /// Time of each statement in microseconds; unsorted, empty for full reads.
    pub(crate) latencies_us: Vec<u32>,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.latencies_us.extend(other.latencies_us);
    }
}

/// Why a workload ended early.
#[derive(Debug)]
pub(crate) enum WorkError {
    /// The server or the driver.
    Postgres(tokio_postgres::Error),
    /// The task itself.
    Task(tokio::task::JoinError),
}

impl From<tokio_postgres::Error> for WorkError {
    fn from(error: tokio_postgres::Error) -> WorkError {
        WorkError::Postgres(error)
    }
}

impl From<tokio::task::JoinError> for WorkError {
    fn from(error: tokio::task::JoinError) -> WorkError {
        WorkError::Task(error)
    }
}

/// Runs one phase on the given connections, one task for each.
///
/// # Errors
/// The first error of any task; the others are waited for.
pub(crate) async fn run(
    phase: Phase,
    work: &Work,
    clients: &[Arc<Client>],
    statement: &str,
) -> Result<(Tally, Duration), WorkError> {
    let mut prepared = Vec::with_capacity(clients.len());
    for client in clients {
        prepared.push(client.prepare(statement).await?);
    }
    let plans: Vec<Vec<u32>> = plans(phase, work, clients.len());
    let started = Instant::now();
    let tasks: Vec<_> = clients
        .iter()
        .zip(prepared)
        .zip(plans)
        .map(|((client, statement), ids)| {
            let (client, work) = (Arc::clone(client), work.clone());
            tokio::spawn(async move {
                match phase {
                    Phase::Insert | Phase::Update => write(&client, &statement, &work, &ids).await,
                    Phase::Point => point(&client, &statement, &ids).await,
                    Phase::Full => full(&client, &statement).await,
                }
            })
        })
        .collect();
    let mut tally = Tally::default();
    let mut failure = None;
    for task in tasks {
        match task.await {
            Ok(Ok(part)) => tally.add(part),
            Ok(Err(error)) => failure = failure.or(Some(WorkError::from(error))),
            Err(error) => failure = failure.or(Some(WorkError::from(error))),
        }
    }
    let elapsed = started.elapsed();
    failure.map_or(Ok((tally, elapsed)), Err)
}

/// The ids each connection works through, made before the clock starts.
fn plans(phase: Phase, work: &Work, connections: usize) -> Vec<Vec<u32>> {
    let mut rng = SmallRng::seed_from_u64(work.seed ^ u64::from(work.generation));
    let ids: Vec<u32> = match phase {
        Phase::Insert => (0..work.rows).collect(),
        Phase::Update => {
            let mut ids: Vec<u32> = (0..work.rows).collect();
            ids.shuffle(&mut rng);
            ids
        }
        Phase::Point => (0..work.reads)
            .map(|_| rng.random_range(0..work.rows))
            .collect(),
        Phase::Full => Vec::new(),
    };
    let share = |connection| ids.iter().copied().skip(connection).step_by(connections);
    (0..connections).map(|c| share(c).collect()).collect()
}

async fn write(
    client: &Client,
    statement: &Statement,
    work: &Work,
    ids: &[u32],
) -> Result<Tally, tokio_postgres::Error> {
    let mut tally = Tally {
        latencies_us: Vec::with_capacity(ids.len()),
        ..Tally::default()
    };
    let row_bytes = u64::from(work.columns) * work.pool.value_bytes() as u64;
    for &row in ids {
        let started = Instant::now();
        let mut params = Vec::with_capacity(1 + usize::from(work.columns));
        params.push(Param::Id(i64::from(row)));
        params.extend((0..work.columns).map(|column| {
            Param::Value(work.pool.value(ValueId {
                generation: work.generation,
                row,
                column,
            }))
        }));
        tally.rows += client.execute_raw(statement, params).await?;
        tally.bytes += row_bytes;
        tally.latencies_us.push(micros(started));
    }
    Ok(tally)
}

async fn point(
    client: &Client,
    statement: &Statement,
    ids: &[u32],
) -> Result<Tally, tokio_postgres::Error> {
    let mut tally = Tally {
        latencies_us: Vec::with_capacity(ids.len()),
        ..Tally::default()
    };
    for &row in ids {
        let started = Instant::now();
        let row = client.query_one(statement, &[&i64::from(row)]).await?;
        tally.rows += 1;
        tally.bytes += row_bytes(&row)?;
        tally.latencies_us.push(micros(started));
    }
    Ok(tally)
}

async fn full(client: &Client, statement: &Statement) -> Result<Tally, tokio_postgres::Error> {
    let mut tally = Tally::default();
    let no_params: [Param<'_>; 0] = [];
    let mut rows = std::pin::pin!(client.query_raw(statement, no_params).await?);
    while let Some(row) = rows.try_next().await? {
        tally.rows += 1;
        tally.bytes += row_bytes(&row)?;
    }
    Ok(tally)
}

/// Bytes of the value columns of a row, that is of all but the first.
fn row_bytes(row: &Row) -> Result<u64, tokio_postgres::Error> {
    let mut bytes = 0;
    for column in 1..row.len() {
        bytes += row.try_get::<_, Received<'_>>(column)?.0.len() as u64;
    }
    Ok(bytes)
}

fn micros(started: Instant) -> u32 {
    u32::try_from(started.elapsed().as_micros()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{DataKind, ValueType};

    fn work() -> Work {
        Work {
            pool: Arc::new(Pool::values(ValueType::Text, DataKind::Json, 64, 1)),
            generation: 1,
            columns: 1,
            rows: 103,
            reads: 57,
            seed: 9,
        }
    }

    #[test]
    fn writes_reach_each_row_once_whatever_the_number_of_connections() {
        for phase in [Phase::Insert, Phase::Update] {
            let mut ids = plans(phase, &work(), 8).concat();
            ids.sort_unstable();
            assert_eq!(ids, (0..103).collect::<Vec<u32>>());
        }
        assert_ne!(
            plans(Phase::Update, &work(), 1),
            plans(Phase::Insert, &work(), 1)
        );
    }

    #[test]
    fn point_reads_are_as_many_as_asked_and_within_the_table() {
        let ids = plans(Phase::Point, &work(), 4).concat();
        assert_eq!(ids.len(), 57);
        assert!(ids.iter().all(|id| *id < 103));
    }
}
