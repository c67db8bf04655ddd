//! The private Postgres of a run, and the settings it runs with.

use std::path::Path;

use toastrack_testkit::Cluster;

use crate::args::Args;
use crate::error::BenchError;

/// The database that holds all tables.
pub(crate) const DATABASE: &str = "bench";

/// What differs from Postgres' defaults, with the reason in docs/benchmarks.md.
pub(crate) fn settings(args: &Args) -> Vec<(&'static str, String)> {
    vec![
        ("fsync", "on".into()),
        ("synchronous_commit", "on".into()),
        ("full_page_writes", "on".into()),
        (
            "shared_buffers",
            format!("{}kB", (args.shared_buffers / 1024).max(128)),
        ),
        (
            "default_toast_compression",
            args.compression.setting().into(),
        ),
        ("max_wal_size", "16GB".into()),
        ("min_wal_size", "4GB".into()),
        ("checkpoint_timeout", "1h".into()),
        ("autovacuum", "off".into()),
        ("max_connections", "300".into()),
    ]
}

/// Starts a durable cluster beneath `directory` with an empty database.
///
/// # Errors
/// `Cluster` when there are no server binaries, or they do not start.
pub(crate) fn start_postgres(args: &Args, directory: &Path) -> Result<Cluster, BenchError> {
    let mut builder = Cluster::builder().durable(true).directory(directory);
    for (name, value) in settings(args) {
        builder = builder.setting(name, &value);
    }
    let cluster = builder.start()?;
    cluster.create_database(DATABASE)?;
    Ok(cluster)
}
