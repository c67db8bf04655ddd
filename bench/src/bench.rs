//! One benchmark from the empty server to the last round.
//!
//! Owns:     the private Postgres, the sidecar, the connections and the tables.
//! Promises: within a phase the sides take turns, round by round, in rotating order; each phase
//!           begins with a round that is not reported; what is read is checked.

use std::path::Path;
use std::sync::Arc;

use toastrack_testkit::Cluster;
use tokio_postgres::{Client, Config, NoTls};

use crate::args::Args;
use crate::cpu::CpuClock;
use crate::data::{Pool, Received, ValueId};
use crate::endpoint::Endpoint;
use crate::error::BenchError;
use crate::phase::{self, Phase, Tally, Work, WorkError};
use crate::pooler::Pooler;
use crate::report::{Run, Space};
use crate::servers::{self, DATABASE};
use crate::side::{Side, Statements, order};
use crate::sidecar::Sidecar;

/// A benchmark whose servers run and whose tables are empty.
pub(crate) struct Bench {
    args: Args,
    // Dropped in this order: a sidecar drains its sessions, and needs Postgres to end them.
    lanes: Vec<Lane>,
    /// Untimed statements, straight to Postgres.
    control: Client,
    sidecar: Option<Sidecar>,
    pooler: Option<Pooler>,
    cluster: Cluster,
    clock: CpuClock,
    generation: u16,
}

/// What belongs to one side.
struct Lane {
    side: Side,
    statements: Statements,
    pool: Arc<Pool>,
    clients: Vec<Arc<Client>>,
    /// The writing run that the rows in the table come from, and its phase.
    written: Option<(u16, Phase)>,
}

impl Bench {
    /// Starts the servers beneath `directory`, makes the tables and opens all connections.
    ///
    /// # Errors
    /// Whatever keeps a server from starting or a statement from working.
    pub(crate) async fn start(args: Args, directory: &Path) -> Result<Bench, BenchError> {
        let cluster = servers::start_postgres(&args, directory)?;
        let direct = Endpoint::of(&cluster).config(cluster.superuser(), args.transport);
        let control = connect(Side::Direct, &direct).await?;
        let sidecar = if args.sides.contains(&Side::Toastrack) {
            Some(Sidecar::start(&args, &cluster, directory, DATABASE)?)
        } else {
            None
        };
        let pooler = if args.sides.contains(&Side::Pgbouncer) {
            Some(Pooler::start(&cluster, directory)?)
        } else {
            None
        };
        let clock = CpuClock {
            proxies: [
                sidecar.as_ref().map(Sidecar::pid),
                pooler.as_ref().map(Pooler::pid),
            ],
            postmaster: cluster.server_pid(),
        };
        let mut bench = Bench {
            sidecar,
            pooler,
            cluster,
            control,
            lanes: Vec::new(),
            clock,
            generation: 0,
            args,
        };
        for side in Side::ALL {
            if bench.args.sides.contains(&side) {
                let lane = bench.lane(side).await?;
                bench.lanes.push(lane);
            }
        }
        Ok(bench)
    }

    async fn lane(&self, side: Side) -> Result<Lane, BenchError> {
        let args = &self.args;
        let statements = Statements::new(side, args);
        self.control(side, "create the table", &statements.create)
            .await?;
        let seed = args.seed;
        let pool = match side {
            Side::Bound | Side::Pgbouncer => Pool::references(args.value_type, seed),
            Side::Direct | Side::Toastrack => {
                Pool::values(args.value_type, args.data, args.size, seed)
            }
        };
        let endpoint = match (side, &self.sidecar, &self.pooler) {
            (Side::Toastrack, Some(sidecar), _) => sidecar.endpoint().clone(),
            (Side::Pgbouncer, _, Some(pooler)) => pooler.endpoint().clone(),
            _ => Endpoint::of(&self.cluster),
        };
        let config = endpoint.config(self.cluster.superuser(), args.transport);
        let count = [
            args.connections,
            args.read_connections,
            args.scan_connections,
        ];
        let mut clients = Vec::new();
        for _ in 0..count.into_iter().max().unwrap_or(1) {
            clients.push(Arc::new(connect(side, &config).await?));
        }
        Ok(Lane {
            side,
            statements,
            pool: Arc::new(pool),
            clients,
            written: None,
        })
    }

    /// `select version()`.
    pub(crate) async fn postgres_version(&self) -> Result<String, BenchError> {
        let row = self.control.query_one("select version()", &[]).await;
        row.and_then(|row| row.try_get(0))
            .map_err(statement_error(Side::Direct, "ask the version"))
    }

    /// Runs a phase: the warm-up round, then the timed ones, each run given to `report`.
    ///
    /// # Errors
    /// The first failed statement, wrong value or wrong amount.
    pub(crate) async fn phase(
        &mut self,
        phase: Phase,
        mut report: impl FnMut(Run) -> Result<(), BenchError>,
    ) -> Result<(), BenchError> {
        if phase != Phase::Insert {
            self.fill_empty_tables().await?;
        }
        if phase == Phase::Point {
            // Random reads of one round would leave some rows cold.
            for lane in 0..self.lanes.len() {
                self.timed(Phase::Full, lane).await?;
            }
        }
        self.control(Side::Direct, "checkpoint", "checkpoint")
            .await?;
        let sides: Vec<Side> = self.lanes.iter().map(|lane| lane.side).collect();
        for round in 0..=self.args.rounds {
            for side in order(&sides, round) {
                let lane = self.lane_of(side);
                let run = self.round(phase, lane, round).await?;
                if round > 0 {
                    report(run)?;
                }
            }
        }
        Ok(())
    }

    fn lane_of(&self, side: Side) -> usize {
        let found = self.lanes.iter().position(|lane| lane.side == side);
        found.expect("rounds run on the sides that have a lane")
    }

    /// One run of a phase with what belongs before and after it, outside the clock.
    async fn round(&mut self, phase: Phase, lane: usize, round: u8) -> Result<Run, BenchError> {
        let side = self.lanes[lane].side;
        if phase == Phase::Insert {
            let truncate = format!("truncate {}", side.name());
            self.control(side, "truncate", &truncate).await?;
            self.control(side, "checkpoint", "checkpoint").await?;
        }
        let wal_before = self.wal_position(side).await?;
        let cpu_before = self.clock.read();
        let (tally, seconds) = self.timed(phase, lane).await?;
        let cpu = self.clock.read().since(cpu_before);
        let wal = self.wal_position(side).await? - wal_before;
        if matches!(phase, Phase::Insert | Phase::Update) {
            let vacuum = format!("vacuum (analyze) {}", side.name());
            self.control(side, "vacuum", &vacuum).await?;
            self.verify(lane).await?;
        }
        Ok(Run::new((phase, side), round, seconds, tally, cpu, wal))
    }

    async fn timed(&mut self, phase: Phase, lane: usize) -> Result<(Tally, f64), BenchError> {
        self.generation += 1;
        let args = &self.args;
        let lane = &mut self.lanes[lane];
        let work = Work {
            pool: Arc::clone(&lane.pool),
            generation: self.generation,
            columns: args.columns,
            rows: args.rows,
            reads: args.reads(),
            seed: args.seed,
        };
        let (connections, statement) = match phase {
            Phase::Insert => (args.connections, &lane.statements.insert),
            Phase::Update => (args.connections, &lane.statements.update),
            Phase::Point => (args.read_connections, &lane.statements.point),
            Phase::Full => (args.scan_connections, &lane.statements.full),
        };
        let clients = &lane.clients[..usize::from(connections)];
        let (tally, elapsed) =
            phase::run(phase, &work, clients, statement)
                .await
                .map_err(|error| match error {
                    WorkError::Postgres(source) => BenchError::Statement {
                        side: lane.side,
                        what: phase.name(),
                        source,
                    },
                    WorkError::Task(error) => BenchError::Task(error),
                })?;
        if matches!(phase, Phase::Insert | Phase::Update) {
            lane.written = Some((self.generation, phase));
        }
        let expected_rows = match phase {
            Phase::Insert | Phase::Update => u64::from(args.rows),
            Phase::Point => u64::from(args.reads()),
            Phase::Full => u64::from(args.rows) * u64::from(args.scan_connections),
        };
        let expected_bytes =
            expected_rows * u64::from(args.columns) * lane.pool.value_bytes() as u64;
        if (tally.rows, tally.bytes) != (expected_rows, expected_bytes) {
            return Err(BenchError::WrongAmount {
                side: lane.side,
                rows: tally.rows,
                bytes: tally.bytes,
                expected_rows,
                expected_bytes,
            });
        }
        Ok((tally, elapsed.as_secs_f64()))
    }

    /// Lets a run that leaves the insert phase out have rows.
    async fn fill_empty_tables(&mut self) -> Result<(), BenchError> {
        for lane in 0..self.lanes.len() {
            if self.lanes[lane].written.is_none() {
                self.timed(Phase::Insert, lane).await?;
            }
        }
        Ok(())
    }

    /// Compares a sample of rows with what was written, and checks that values left the row.
    async fn verify(&self, lane: usize) -> Result<(), BenchError> {
        let lane = &self.lanes[lane];
        let Some((generation, phase)) = lane.written else {
            return Ok(());
        };
        let sampled = self.args.verify_rows.min(self.args.rows);
        let mut inline = 0;
        for sample in 0..sampled {
            // Evenly over the table, both ends included.
            let span = u64::from(self.args.rows - 1) * u64::from(sample);
            let row = (span / u64::from(sampled.saturating_sub(1).max(1))) as u32;
            let id = i64::from(row);
            let read = lane.clients[0]
                .query_one(&lane.statements.point, &[&id])
                .await
                .map_err(statement_error(lane.side, "verify"))?;
            for column in 0..self.args.columns {
                let value = lane.pool.value(ValueId {
                    generation,
                    row,
                    column,
                });
                let received = read
                    .try_get::<_, Received<'_>>(usize::from(column) + 1)
                    .map_err(statement_error(lane.side, "verify"))?;
                if !value.equals(received.0) {
                    return Err(BenchError::WrongValue {
                        side: lane.side,
                        phase,
                        row,
                        column: column + 1,
                    });
                }
            }
            if lane.side == Side::Toastrack {
                inline += self.inline_values(&lane.statements.point, id).await?;
            }
        }
        if inline > 0 && self.args.size > self.args.threshold_bytes() {
            return Err(BenchError::NotOffloaded {
                inline,
                sampled: u64::from(sampled) * u64::from(self.args.columns),
            });
        }
        Ok(())
    }

    /// Values of a row that hold more than a reference, seen without Toastrack.
    async fn inline_values(&self, statement: &str, id: i64) -> Result<u64, BenchError> {
        const LONGEST_REFERENCE: usize = 64;
        let error = statement_error(Side::Toastrack, "look at the references");
        let read = self.control.query_one(statement, &[&id]).await;
        let row = read.map_err(error)?;
        let mut inline = 0;
        for column in 1..row.len() {
            let received = row
                .try_get::<_, Received<'_>>(column)
                .map_err(statement_error(Side::Toastrack, "look at the references"))?;
            // The binary form of jsonb has a version byte in front, and the type here is not
            // jsonb's own, so it is not taken off.
            inline += u64::from(received.0.len() > LONGEST_REFERENCE + 1);
        }
        Ok(inline)
    }

    /// What each side occupies now.
    pub(crate) async fn space(&self) -> Result<Vec<Space>, BenchError> {
        let mut all = Vec::new();
        for lane in &self.lanes {
            let name = lane.side.name();
            let size = self
                .control
                .query_one(
                    "select pg_total_relation_size($1::text::regclass)",
                    &[&name],
                )
                .await
                .and_then(|row| row.try_get::<_, i64>(0))
                .map_err(statement_error(lane.side, "ask the size"))?;
            let store = match &self.sidecar {
                Some(sidecar) if lane.side == Side::Toastrack => sidecar.store_bytes(),
                _ => 0,
            };
            all.push(Space {
                kind: "space",
                side: name,
                postgres_bytes: size.unsigned_abs(),
                store_bytes: store,
            });
        }
        Ok(all)
    }

    async fn wal_position(&self, side: Side) -> Result<u64, BenchError> {
        let row = self
            .control
            .query_one("select (pg_current_wal_insert_lsn() - '0/0')::int8", &[])
            .await;
        row.and_then(|row| row.try_get::<_, i64>(0))
            .map(i64::unsigned_abs)
            .map_err(statement_error(side, "ask the WAL position"))
    }

    async fn control(&self, side: Side, what: &'static str, sql: &str) -> Result<(), BenchError> {
        let done = self.control.batch_execute(sql).await;
        done.map_err(statement_error(side, what))
    }
}

fn statement_error(
    side: Side,
    what: &'static str,
) -> impl FnOnce(tokio_postgres::Error) -> BenchError {
    move |source| BenchError::Statement { side, what, source }
}

/// Opens a connection whose driver task ends with the client.
async fn connect(side: Side, config: &Config) -> Result<Client, BenchError> {
    let (client, connection) = config
        .connect(NoTls)
        .await
        .map_err(|source| BenchError::Connect { side, source })?;
    // A failure of the connection reaches the client's next call as an error.
    tokio::spawn(connection);
    Ok(client)
}
