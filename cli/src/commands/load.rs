//! `toastrack load`

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use crate::database::DatabaseArgs;
use crate::error::CommandError;
use crate::load::LoadError;
use crate::load::insert::{Counts, Inserter, create_table};
use crate::load::sources::Sources;
use crate::output::{readable_size, say};
use crate::table::TableName;

/// Arguments of `load`.
#[derive(Debug, clap::Args)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// The table, made when there is none
    #[arg(long, value_name = "TABLE")]
    table: TableName,
    /// A directory, a .jsonl file or a .json file
    #[arg(long, value_name = "PATH")]
    from: PathBuf,
    /// Commit after every N documents, instead of once at the end
    #[arg(long, value_name = "N")]
    batch: Option<NonZeroU64>,
}

/// Loads, and says what was loaded.
pub(crate) async fn load(args: LoadArgs) -> Result<(), CommandError> {
    let sources = Sources::open(&args.from)?;
    let mut client = args.database.connect().await?;
    let bar = progress_bar(sources.total_bytes());
    let started = Instant::now();
    let per_transaction = args.batch.map_or(u64::MAX, NonZeroU64::get);
    let outcome = insert_all(&mut client, &args.table, sources, per_transaction, &bar).await;
    bar.finish_and_clear();
    let counts = outcome?;
    say(format!(
        "loaded {} documents ({} text, {} json, {} binary), {} in {:.1} s",
        counts.rows(),
        counts.text,
        counts.json,
        counts.binary,
        readable_size(counts.bytes),
        started.elapsed().as_secs_f64()
    ));
    Ok(())
}

/// Inserts every document; what a failed transaction inserted is rolled back.
async fn insert_all(
    client: &mut tokio_postgres::Client,
    table: &TableName,
    mut sources: Sources,
    per_transaction: u64,
    bar: &ProgressBar,
) -> Result<Counts, LoadError> {
    let mut transaction = client.transaction().await.map_err(LoadError::Commit)?;
    create_table(&transaction, table).await?;
    let mut inserter = Inserter::new(&transaction, table).await?;
    let mut in_transaction = 0;
    // Files are read between batches: a disk is faster than the server takes rows.
    while let Some(document) = tokio::task::block_in_place(|| sources.next()) {
        let document = document?;
        bar.inc(document.content.len() as u64);
        inserter.add(&transaction, document).await?;
        in_transaction += 1;
        if in_transaction == per_transaction {
            inserter.flush(&transaction).await?;
            transaction.commit().await.map_err(LoadError::Commit)?;
            transaction = client.transaction().await.map_err(LoadError::Commit)?;
            in_transaction = 0;
        }
    }
    inserter.flush(&transaction).await?;
    transaction.commit().await.map_err(LoadError::Commit)?;
    Ok(inserter.counts())
}

/// Shown on a terminal only.
fn progress_bar(total_bytes: u64) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta} left")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total_bytes).with_style(style)
}
