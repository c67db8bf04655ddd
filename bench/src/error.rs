//! Why a benchmark stops.

use std::path::PathBuf;

use toastrack_testkit::TestkitError;

use crate::phase::Phase;
use crate::side::Side;

/// Everything that ends a run early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    /// The private Postgres did not start or stop.
    #[error("postgres: {0}")]
    Cluster(#[from] TestkitError),
    /// A file or process could not be used.
    #[error("{what}: {source}")]
    Io {
        /// What was tried, with its path.
        what: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A connection could not be made.
    #[error("connection for {side:?}: {}", server_message(source))]
    Connect {
        /// The side.
        side: Side,
        /// The driver's reason.
        source: tokio_postgres::Error,
    },
    /// A statement failed.
    #[error("{what} on {side:?}: {}", server_message(source))]
    Statement {
        /// The side.
        side: Side,
        /// What was being done.
        what: &'static str,
        /// The driver's reason.
        source: tokio_postgres::Error,
    },
    /// A workload task ended without a result.
    #[error("a client task ended: {0}")]
    Task(#[from] tokio::task::JoinError),
    /// A value read back is not the value written.
    #[error("{side:?} returned a wrong value after {phase:?}: row {row}, column c{column}")]
    WrongValue {
        /// The side.
        side: Side,
        /// The last phase that wrote.
        phase: Phase,
        /// The row's id.
        row: u32,
        /// Column, from 1.
        column: u8,
    },
    /// A read returned another number of rows or bytes than the table holds.
    #[error(
        "{side:?} returned {rows} rows and {bytes} bytes, expected {expected_rows} and {expected_bytes}"
    )]
    WrongAmount {
        /// The side.
        side: Side,
        /// Rows received.
        rows: u64,
        /// Bytes of values received.
        bytes: u64,
        /// Rows asked for.
        expected_rows: u64,
        /// Bytes they hold.
        expected_bytes: u64,
    },
    /// The values over the threshold did not leave the row, so the run would measure nothing.
    #[error("{inline} of {sampled} sampled values through toastrack are not references in the row")]
    NotOffloaded {
        /// Values found inline.
        inline: u64,
        /// Values looked at.
        sampled: u64,
    },
    /// pgbouncer did not start.
    #[error("pgbouncer: {0}")]
    Pooler(String),
    /// pgbench failed, or printed something else.
    #[error("pgbench: {0}")]
    Pgbench(String),
    /// Toastrack was not found, or did not start.
    #[error("toastrack ({}): {reason}", binary.display())]
    Sidecar {
        /// The binary.
        binary: PathBuf,
        /// What happened, with the end of its log.
        reason: String,
    },
}

impl BenchError {
    /// For `map_err` on file and process calls.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> BenchError {
        let what = what.into();
        move |source| BenchError::Io { what, source }
    }
}

/// The driver's `Display` leaves the server's message out.
fn server_message(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(server) => format!("{} ({})", server.message(), server.code().code()),
        None => error.to_string(),
    }
}
