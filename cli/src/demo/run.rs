//! The main job, once: documents into a plain table directly and into an offloaded
//! table through Toastrack, both read back, compared and measured.

use std::time::{Duration, Instant};

use futures::{StreamExt, pin_mut};
use toastrack_migrations::{RunOptions, Target};
use tokio_postgres::Client;

use super::compare::{compare_binary, compare_sql, compare_text, select};
use super::environment::Environment;
use super::figures::{Figures, SideFigures};
use crate::error::CommandError;
use crate::load::document::Document;
use crate::load::insert::{Inserter, create_table};
use crate::output::say;
use crate::table::TableName;

/// The plain twin.
const PLAIN: &str = "documents_plain";
/// The table whose large values leave the row.
const OFFLOADED: &str = "documents";
const OFFLOADED_COLUMNS: [&str; 3] = ["body", "data", "raw"];
/// Documents in one transaction: each commit waits for the disk, on both sides.
const ROWS_PER_TRANSACTION: usize = 16;
/// Reads that are timed; the median counts.
const READ_ROUNDS: usize = 5;
const OFFLOAD: RunOptions = RunOptions {
    lock_timeout: Duration::from_secs(5),
    accept_differences: false,
};

/// Runs all of it.
///
/// # Errors
/// `Failed` when what comes back differs; whatever else fails.
pub(crate) async fn run(
    environment: &Environment,
    documents: Vec<Document>,
) -> Result<Figures, CommandError> {
    let direct = environment.direct().await?;
    create(&direct, PLAIN).await?;
    create(&direct, OFFLOADED).await?;
    offload_columns(environment).await?;
    let mut writer_direct = environment.direct().await?;
    let mut writer_through = environment.through().await?;

    say("writing the documents directly, then through Toastrack ...");
    let plain = write(&direct, &mut writer_direct, PLAIN, &documents).await?;
    let offloaded = write(&direct, &mut writer_through, OFFLOADED, &documents).await?;

    say("reading both back, in turns ...");
    let (reader_direct, reader_through) = (writer_direct, writer_through);
    let mut reads = (Vec::new(), Vec::new());
    read(&reader_direct, PLAIN).await?;
    read(&reader_through, OFFLOADED).await?;
    let cache_before = environment.shared().cache_stats();
    for _ in 0..READ_ROUNDS {
        reads.0.push(read(&reader_direct, PLAIN).await?);
        reads.1.push(read(&reader_through, OFFLOADED).await?);
    }
    let cache = environment.shared().cache_stats();

    say("comparing every field: in binary, in text, and by SQL in the server ...");
    let (left, right) = ((&reader_direct, PLAIN), (&reader_through, OFFLOADED));
    let binary = compare_binary(left, right).await?;
    let text = compare_text(left, right).await?;
    let sql = compare_sql(&direct, PLAIN, OFFLOADED).await?;
    let store = environment.shared().store_stats();
    let compression = direct
        .query_one("SHOW default_toast_compression", &[])
        .await
        .map_err(CommandError::database("measure"))?;
    Ok(Figures {
        rows: documents.len() as u64,
        logical_bytes: documents
            .iter()
            .map(|document| document.content.len() as u64)
            .sum(),
        direct: SideFigures {
            read: median(reads.0),
            ..plain
        },
        through: SideFigures {
            read: median(reads.1),
            ..offloaded
        },
        store_bytes: store.used_bytes,
        values_in_store: store.values_put,
        cache_hits: cache.hits - cache_before.hits,
        cache_misses: cache.misses - cache_before.misses,
        compression: compression.get(0),
        binary,
        text,
        sql,
    })
}

async fn create(client: &Client, table: &str) -> Result<(), CommandError> {
    Ok(create_table(client, &name(table)?).await?)
}

fn name(table: &str) -> Result<TableName, CommandError> {
    table.parse().map_err(CommandError::Failed)
}

async fn offload_columns(environment: &Environment) -> Result<(), CommandError> {
    let mut client = environment.direct().await?;
    for column in OFFLOADED_COLUMNS {
        let target =
            Target::parse(&format!("{OFFLOADED}.{column}")).map_err(CommandError::failed)?;
        let plan = toastrack_migrations::plan_offload(&client, &target, None)
            .await
            .map_err(CommandError::failed)?;
        toastrack_migrations::run_offload(&mut client, &plan, None, OFFLOAD)
            .await
            .map_err(CommandError::failed)?;
    }
    Ok(())
}

/// Writes every document, and measures: the time, and what it cost the server.
async fn write(
    observer: &Client,
    writer: &mut Client,
    table: &str,
    documents: &[Document],
) -> Result<SideFigures, CommandError> {
    observer
        .batch_execute("CHECKPOINT")
        .await
        .map_err(CommandError::database("checkpoint"))?;
    let wal_before = wal_position(observer).await?;
    let started = Instant::now();
    let name = name(table)?;
    let mut inserter = Inserter::new(writer, &name).await?;
    let commit = || CommandError::database("write");
    for chunk in documents.chunks(ROWS_PER_TRANSACTION) {
        let transaction = writer.transaction().await.map_err(commit())?;
        for document in chunk {
            inserter.add(&transaction, document.clone()).await?;
        }
        inserter.flush(&transaction).await?;
        transaction.commit().await.map_err(commit())?;
    }
    let elapsed = started.elapsed();
    Ok(SideFigures {
        server_bytes: table_bytes(observer, &name).await?,
        wal_bytes: wal_position(observer).await? - wal_before,
        write: elapsed,
        read: Duration::ZERO,
    })
}

/// Reads every document, and gives the time it took.
async fn read(client: &Client, table: &str) -> Result<Duration, CommandError> {
    let error = || CommandError::database("read");
    let no_parameters: [&str; 0] = [];
    let started = Instant::now();
    let rows = client
        .query_raw(&select(table), no_parameters)
        .await
        .map_err(error())?;
    pin_mut!(rows);
    while let Some(row) = rows.next().await {
        row.map_err(error())?;
    }
    Ok(started.elapsed())
}

/// Bytes of write-ahead log since the cluster was made.
async fn wal_position(client: &Client) -> Result<u64, CommandError> {
    number(
        client,
        "pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')",
    )
    .await
}

async fn table_bytes(client: &Client, table: &TableName) -> Result<u64, CommandError> {
    let quoted = table.to_string().replace('\'', "''");
    number(client, &format!("pg_total_relation_size('{quoted}')")).await
}

async fn number(client: &Client, expression: &str) -> Result<u64, CommandError> {
    let row = client
        .query_one(&format!("SELECT ({expression})::int8"), &[])
        .await
        .map_err(CommandError::database("measure"))?;
    Ok(row.get::<_, i64>(0).unsigned_abs())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
