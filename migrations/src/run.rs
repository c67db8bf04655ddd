//! Runs a plan in one transaction, under a lock, and sees that no table was rewritten.

use std::time::Duration;

use tokio_postgres::{Client, GenericClient, Transaction};
use tracing::info;

use crate::error::Error;
use crate::install::lock_schema;
use crate::plan::ColumnPlan;

/// How a plan is run.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// How long to wait for the table's lock, while everything behind us waits as well. Whole milliseconds, at
    /// least one.
    pub lock_timeout: Duration,
    /// Go on although something will see references instead of values.
    pub accept_differences: bool,
}

/// Locks the table, makes the plan again, and runs it if it is still the same one.
pub(crate) async fn run(
    client: &mut Client,
    plan: &ColumnPlan,
    options: RunOptions,
    plan_again: impl AsyncFnOnce(&Transaction<'_>) -> Result<ColumnPlan, Error>,
) -> Result<(), Error> {
    refuse(plan, options)?;
    let transaction = client.transaction().await?;
    let milliseconds = options.lock_timeout.as_millis().clamp(1, i32::MAX as u128);
    transaction
        .batch_execute(&format!("SET LOCAL lock_timeout = {milliseconds}"))
        .await?;
    lock_schema(&transaction).await?;
    // With all its partitions and children.
    transaction
        .batch_execute(&format!(
            "LOCK TABLE {} IN ACCESS EXCLUSIVE MODE",
            plan.target.relation()
        ))
        .await?;
    let current = plan_again(&transaction).await?;
    refuse(&current, options)?;
    if current != *plan {
        return Err(Error::Stale);
    }
    let before = file_nodes(&transaction, &plan.relations).await?;
    for statement in &plan.statements {
        transaction.batch_execute(statement).await?;
    }
    let after = file_nodes(&transaction, &plan.relations).await?;
    for ((relation, old), (_, new)) in before.iter().zip(&after) {
        if old != new {
            return Err(Error::Rewritten {
                relation: relation.clone(),
            });
        }
    }
    transaction.commit().await?;
    info!(column = %plan.target, direction = ?plan.direction, "column moved");
    Ok(())
}

fn refuse(plan: &ColumnPlan, options: RunOptions) -> Result<(), Error> {
    if !plan.refusals.is_empty() {
        return Err(Error::Refused(plan.refusals.clone()));
    }
    if !plan.differences.is_empty() && !options.accept_differences {
        return Err(Error::Refused(plan.differences.clone()));
    }
    Ok(())
}

/// The file of each table, in the order of the OIDs; partitioned tables have none.
async fn file_nodes(
    client: &impl GenericClient,
    relations: &[u32],
) -> Result<Vec<(String, u32)>, Error> {
    let rows = client
        .query(
            "SELECT c.oid::pg_catalog.regclass::pg_catalog.text, c.relfilenode FROM pg_catalog.pg_class AS c \
             WHERE c.oid = ANY ($1) ORDER BY c.oid",
            &[&relations],
        )
        .await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}
