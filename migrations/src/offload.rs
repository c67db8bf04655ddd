//! From a plain column to an offloaded one: a change of the table's description, not of its rows.

use tokio_postgres::{Client, GenericClient};

use crate::column::{Column, Relation};
use crate::error::Error;
use crate::kind::ColumnKind;
use crate::plan::{ColumnPlan, Direction};
use crate::preflight::{check_dependents, check_indexes, check_text_composers};
use crate::run::{RunOptions, run};
use crate::target::Target;

/// Says what offloading a column would do. Changes nothing.
///
/// `threshold_bytes`: from which length on values of this column go to the store; `None` for the sidecar's
/// own figure. For a column that is offloaded already, the plan changes the threshold alone.
///
/// # Errors
/// `NotFound`, `NotInstalled`, `Postgres`. What stands in the way is not an error but in the plan.
pub async fn plan_offload(
    client: &Client,
    target: &Target,
    threshold_bytes: Option<u32>,
) -> Result<ColumnPlan, Error> {
    plan(client, target, threshold_bytes).await
}

/// Offloads the column as planned, in one transaction: all of it or nothing.
///
/// Holds an exclusive lock on the table and its partitions for the time that rebuilding indexes and verifying
/// constraints takes; without those, milliseconds. No row is rewritten: the transaction is rolled back if
/// one was.
///
/// # Errors
/// `Refused` when the plan has refusals, or differences that `options` does not accept; `Stale` when the table
/// is not as it was planned for; `Rewritten`; `Postgres`, with kind `Retry` when the lock was not to be had.
pub async fn run_offload(
    client: &mut Client,
    plan_made: &ColumnPlan,
    threshold_bytes: Option<u32>,
    options: RunOptions,
) -> Result<(), Error> {
    run(client, plan_made, options, async |transaction| {
        plan(transaction, &plan_made.target, threshold_bytes).await
    })
    .await
}

async fn plan(
    client: &impl GenericClient,
    target: &Target,
    threshold_bytes: Option<u32>,
) -> Result<ColumnPlan, Error> {
    let column = Column::load(client, target).await?;
    let mut plan = ColumnPlan {
        direction: Direction::Offload,
        target: target.clone(),
        statements: Vec::new(),
        notices: Vec::new(),
        differences: Vec::new(),
        refusals: Vec::new(),
        relations: column.oids(),
    };
    if column.is_offloaded {
        plan.notices
            .push("the column is offloaded already: only its threshold changes".to_owned());
        plan.statements = settings(&column, threshold_bytes);
        return Ok(plan);
    }
    let Some(kind) = column.kind else {
        plan.refusals.push(format!(
            "the column is of type {}: only text, varchar, json, jsonb and bytea can be offloaded",
            column.type_name
        ));
        return Ok(plan);
    };
    check_tables(&column, &mut plan);
    check_dependents(client, &column, &mut plan).await?;
    check_indexes(client, &column, &mut plan).await?;
    check_text_composers(client, &column, &mut plan).await?;
    plan.notices.push(
        "prepared statements that read the column fail once with \"cached plan must not change result type\", \
         as after any change of a type"
            .to_owned(),
    );
    plan.notices.push(
        "the column's statistics are dropped and no longer collected, since collecting them would read the values"
            .to_owned(),
    );
    plan.statements.push(change_type(&column, kind));
    for relation in &column.relations {
        plan.statements.extend(storage(&column, relation));
    }
    plan.statements.extend(settings(&column, threshold_bytes));
    Ok(plan)
}

/// What a table must be for its column to change.
fn check_tables(column: &Column, plan: &mut ColumnPlan) {
    let table = column.table();
    if !matches!(table.kind, 'r' | 'p') {
        plan.refusals.push(format!(
            "{} is not a table (it is a view, a materialized view or a foreign table)",
            table.name
        ));
    }
    if table.is_system {
        plan.refusals
            .push(format!("{} is a system table", table.name));
    }
    if table.is_partition || column.is_inherited {
        plan.refusals.push(format!(
            "the column is inherited: a table and its partitions move together, so name the topmost parent of {}",
            table.name
        ));
    }
    if column.is_generated {
        plan.refusals
            .push("the column is generated: nothing can be stored into it".to_owned());
    }
    for relation in &column.relations {
        if relation.is_typed {
            plan.refusals.push(format!(
                "{} is a typed table: its columns are those of its type",
                relation.name
            ));
        }
        if relation.kind == 'f' && relation.oid != table.oid {
            plan.refusals.push(format!(
                "the partition {} is a foreign table: another server holds its values",
                relation.name
            ));
        }
    }
}

/// Text, json, jsonb and bytea change by a cast that shares the bytes. A `varchar(n)` goes through
/// `relabel`, or Postgres would check every length, which rewrites the table.
fn change_type(column: &Column, kind: ColumnKind) -> String {
    let alter = format!(
        "ALTER TABLE {} ALTER COLUMN {} TYPE toastrack.{kind}",
        column.table().name,
        column.name
    );
    match column.length {
        Some(length) => format!(
            "{alter}({length}){} USING toastrack.relabel({}, {}, false)",
            column.collate,
            column.name,
            length + 4
        ),
        None => format!("{alter}{}", column.collate),
    }
}

/// Storage and compression of the column, which a change of type sets back to the type's.
pub(crate) fn storage(column: &Column, relation: &Relation) -> Vec<String> {
    let alter = format!(
        "ALTER TABLE ONLY {} ALTER COLUMN {}",
        relation.name, column.name
    );
    let storage = relation
        .storage
        .map(|word| format!("{alter} SET STORAGE {word}"));
    let compression = relation
        .compression
        .map(|word| format!("{alter} SET COMPRESSION {word}"));
    storage.into_iter().chain(compression).collect()
}

/// Remembers the threshold.
fn settings(column: &Column, threshold_bytes: Option<u32>) -> Vec<String> {
    let threshold = threshold_bytes.map_or("NULL".to_owned(), |bytes| bytes.to_string());
    column
        .relations
        .iter()
        .map(|relation| {
            format!(
                "INSERT INTO toastrack.column_settings (relation, attname, threshold_bytes) \
                 VALUES ({}::pg_catalog.regclass, {}, {threshold}) \
                 ON CONFLICT (relation, attname) DO UPDATE SET threshold_bytes = EXCLUDED.threshold_bytes",
                literal(&relation.name),
                literal(&plain_name(&column.name)),
            )
        })
        .collect()
}

/// The name in a quoted identifier.
pub(crate) fn plain_name(quoted: &str) -> String {
    match quoted
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        Some(inner) => inner.replace("\"\"", "\""),
        None => quoted.to_owned(),
    }
}

/// A string literal. Names only: a backslash in one would need `E''` under old settings, and gets it.
pub(crate) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') {
        format!("E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}
