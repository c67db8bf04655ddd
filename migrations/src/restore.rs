//! From an offloaded column back to a plain one, once no reference is left in it.

use tokio_postgres::{Client, GenericClient};

use crate::column::Column;
use crate::error::Error;
use crate::kind::ColumnKind;
use crate::offload::{literal, plain_name, storage};
use crate::plan::{ColumnPlan, Direction};
use crate::preflight::{check_dependents, check_indexes};
use crate::run::{RunOptions, run};
use crate::target::Target;

/// Says what restoring a column would do. Changes nothing, but reads the table to count references: no index
/// finds them. Values themselves are not read, unless at most [`VERIFIED_COUNT`] fields look like references.
///
/// # Errors
/// `NotFound`, `NotInstalled`, `Postgres`. What stands in the way is not an error but in the plan.
pub async fn plan_restore(client: &Client, target: &Target) -> Result<ColumnPlan, Error> {
    plan(client, target).await
}

/// Restores the column as planned, in one transaction: all of it or nothing. No row is rewritten. The table is
/// read once more, under its exclusive lock, so that no reference can come in between.
///
/// # Errors
/// As [`crate::run_offload`].
pub async fn run_restore(
    client: &mut Client,
    plan_made: &ColumnPlan,
    options: RunOptions,
) -> Result<(), Error> {
    run(client, plan_made, options, async |transaction| {
        plan(transaction, &plan_made.target).await
    })
    .await
}

async fn plan(client: &impl GenericClient, target: &Target) -> Result<ColumnPlan, Error> {
    let column = Column::load(client, target).await?;
    let mut plan = ColumnPlan {
        direction: Direction::Restore,
        target: target.clone(),
        statements: Vec::new(),
        notices: Vec::new(),
        differences: Vec::new(),
        refusals: Vec::new(),
        relations: column.oids(),
    };
    let Some(kind) = column.kind.filter(|_| column.is_offloaded) else {
        plan.refusals.push(format!(
            "the column is of type {}: it is not offloaded",
            column.type_name
        ));
        return Ok(plan);
    };
    if column.is_inherited {
        plan.refusals.push(format!(
            "the column is inherited: a table and its partitions move together, so name the topmost parent of {}",
            column.table().name
        ));
    }
    check_dependents(client, &column, &mut plan).await?;
    check_indexes(client, &column, &mut plan).await?;
    let left = references_left(client, &column).await?;
    if left > 0 {
        plan.refusals.push(format!(
            "{left} {} references; bring the values back first, in pieces if they are many: \
             UPDATE {table} SET {name} = {name}::{kind} WHERE toastrack.looks_like_reference({name})",
            if left == 1 { "value is still kept by" } else { "values are still kept by" },
            table = column.table().name,
            name = column.name,
        ));
    }
    plan.notices.push(
        "the whole table is read under its lock, to see that no reference is left".to_owned(),
    );
    plan.statements.push(change_type(&column, kind));
    for relation in &column.relations {
        plan.statements.extend(storage(&column, relation));
        plan.statements.push(format!(
            "DELETE FROM toastrack.column_settings WHERE relation = {}::pg_catalog.regclass AND attname = {}",
            literal(&relation.name),
            literal(&plain_name(&column.name))
        ));
    }
    Ok(plan)
}

/// `relabel` hands the column through as the plain type while the statement is planned, so that no cast with a
/// function stands between the types.
fn change_type(column: &Column, kind: ColumnKind) -> String {
    let (length, modifier) = match column.length {
        Some(length) => (format!("({length})"), length + 4),
        None => (String::new(), -1),
    };
    format!(
        "ALTER TABLE {} ALTER COLUMN {name} TYPE pg_catalog.{kind}{length}{} USING toastrack.relabel({name}, {modifier}, false)",
        column.table().name,
        column.collate,
        name = column.name,
    )
}

/// Up to this many fields that look like references are looked up, to tell those that are ordinary data.
pub const VERIFIED_COUNT: i64 = 1000;

/// How many rows hold a reference. A field that has the fields of one counts, unless the store says that it is
/// ordinary data; it is asked only about a few.
async fn references_left(client: &impl GenericClient, column: &Column) -> Result<i64, Error> {
    let looks = format!(
        "FROM {table} WHERE toastrack.looks_like_reference({name}) \
         AND toastrack.reference_fields(toastrack.spelling({name})) IS NOT NULL",
        table = column.table().name,
        name = column.name
    );
    let left: i64 = client
        .query_one(&format!("SELECT pg_catalog.count(*) {looks}"), &[])
        .await?
        .get(0);
    if left == 0 || left > VERIFIED_COUNT {
        return Ok(left);
    }
    let row = client
        .query_one(
            &format!(
                "SELECT pg_catalog.count(*) {looks} AND toastrack.value_of(toastrack.spelling({})) IS NOT NULL",
                column.name
            ),
            &[],
        )
        .await?;
    Ok(row.get(0))
}
