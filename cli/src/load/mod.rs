//! Loading documents into a table.
//!
//! - [`document`]: what a document is, and how its bytes decide its column.
//! - [`sources`]: documents of a directory tree, a JSON file or a JSON Lines file.
//! - [`insert`]: the table, and batches of rows into it.

pub(crate) mod document;
pub(crate) mod insert;
pub(crate) mod sources;

use std::io;
use std::path::PathBuf;

use crate::error::Server;

/// Why documents could not be loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("cannot read {path}: {source}", path = .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} is neither a directory nor a .json or .jsonl file", path = .path.display())]
    UnknownSource { path: PathBuf },
    #[error("{path}: line {line}: {problem}", path = .path.display())]
    JsonLine {
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        problem: String,
    },
    #[error("{path}: {problem}", path = .path.display())]
    JsonFile { path: PathBuf, problem: String },
    #[error("{document}: {}", Server(.source))]
    Insert {
        document: String,
        source: tokio_postgres::Error,
    },
    #[error("table {table}: {}", Server(.source))]
    Table {
        table: String,
        source: tokio_postgres::Error,
    },
    #[error("commit: {}", Server(.0))]
    Commit(tokio_postgres::Error),
}
