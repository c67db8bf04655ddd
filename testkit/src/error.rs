//! What can go wrong while a private cluster is made, started or stopped.

use std::io;
use std::path::PathBuf;

/// Why a private cluster could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum TestkitError {
    /// No server binaries were found in any of the places searched.
    #[error(
        "no PostgreSQL server binaries (version 14 or newer) found in {searched}: \
         run `apt-get install postgresql` (on systems that package contrib apart, \
         `postgresql-contrib` as well, for dblink), or set TOASTRACK_PG_BIN to the \
         directory that holds `initdb` and `postgres`"
    )]
    NoServerBinaries {
        /// The places, joined with commas.
        searched: String,
    },
    /// `postgres --version` printed something that holds no version.
    #[error("{path} reports no version: {output:?}", path = .path.display())]
    UnknownVersion {
        /// The binary that was asked.
        path: PathBuf,
        /// What it printed.
        output: String,
    },
    /// The process is root, and the system has no user to run the server as.
    #[error(
        "PostgreSQL refuses to run as root, and this system has neither a user `postgres` nor a user `nobody`"
    )]
    NoServerUser,
    /// A file or process operation failed.
    #[error("{action} {path}: {source}", path = .path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// `initdb` ended with an error.
    #[error("initdb failed ({status}): {output}")]
    InitdbFailed {
        /// Its exit status.
        status: String,
        /// The end of what it printed.
        output: String,
    },
    /// The server process ended before it was ready.
    #[error("the server ended while starting ({status}); its log ends: {log}")]
    ServerEnded {
        /// Its exit status.
        status: String,
        /// The end of its log.
        log: String,
    },
    /// The server was not ready within the time allowed.
    #[error("the server was not ready after {seconds} s; its log ends: {log}")]
    NotReady {
        /// The time allowed, in seconds.
        seconds: u64,
        /// The end of its log.
        log: String,
    },
    /// No port was free after several tries.
    #[error("no free TCP port found on 127.0.0.1 after {tries} tries")]
    NoFreePort {
        /// How many ports were tried.
        tries: u32,
    },
    /// A statement run through [`crate::Cluster::execute`] failed.
    #[error("statement failed in database {database:?}: {message}")]
    Statement {
        /// The database it ran in.
        database: String,
        /// The server's message, with its SQLSTATE.
        message: String,
    },
}

impl TestkitError {
    /// Wraps an error of the operating system with what was tried on which path.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> TestkitError {
        let path = path.into();
        move |source| TestkitError::Io {
            action,
            path,
            source,
        }
    }
}
