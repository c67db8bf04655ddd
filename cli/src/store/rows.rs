//! Follows every reference of a database into the store.
//!
//! Promises: a reference that was committed when the scan began is followed, whatever is written
//!           meanwhile: the scan has one snapshot, taken after the store was read, and what that walk
//!           did not meet is looked up. Rows that the role may not see are an error, not left out.

use std::fmt;
use std::ops::AddAssign;
use std::pin::pin;

use futures::TryStreamExt;
use serde_json::{Map, Value, json};
use toastrack_offload::inspect::Inspector;
use tokio_postgres::{Client, IsolationLevel, Transaction};

use super::verify::Tally;
use crate::database::DatabaseArgs;
use crate::error::CommandError;

/// A database whose references are followed.
pub(super) struct Database {
    client: Client,
    name: String,
}

/// What was met.
#[derive(Default)]
pub(super) struct RowCounts {
    columns: u64,
    references: u64,
    /// Fields that have the form of a reference and are not one of this store.
    others: u64,
    pub(super) damaged: u64,
}

/// A column that can hold references.
struct Column {
    relation: u32,
    schema: String,
    table: String,
    name: String,
    /// Both parts quoted.
    qualified: String,
    quoted: String,
    is_array: bool,
}

/// Types that may hold references: the schema's own, domains over them, and arrays of either.
const COLUMNS: &str = "
WITH RECURSIVE own(oid, is_array) AS (
  SELECT t.oid, false FROM pg_catalog.pg_type AS t
  WHERE t.typnamespace = pg_catalog.to_regnamespace('toastrack')::pg_catalog.oid
    AND t.typname IN ('text', 'varchar', 'json', 'jsonb', 'bytea')
  UNION
  SELECT t.oid, own.is_array OR t.typelem = own.oid FROM own JOIN pg_catalog.pg_type AS t
    ON t.typtype = 'd' AND t.typbasetype = own.oid
    OR t.typcategory = 'A' AND t.typelem = own.oid AND NOT own.is_array
)
SELECT c.oid, c.relkind::pg_catalog.text, n.nspname::pg_catalog.text, c.relname::pg_catalog.text,
       a.attname::pg_catalog.text,
       pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname),
       pg_catalog.quote_ident(a.attname), own.is_array
FROM own
JOIN pg_catalog.pg_attribute AS a ON a.atttypid = own.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_catalog.pg_class AS c ON c.oid = a.attrelid
  AND (c.relkind IN ('r', 'c') OR c.relkind = 'm' AND c.relispopulated) AND c.relpersistence <> 't'
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
ORDER BY 3, 4, a.attnum";

/// The columns of the primary key, unless reading one could mean reading a damaged value.
const KEY: &str = "
SELECT a.attname::pg_catalog.text, pg_catalog.quote_ident(a.attname)
FROM pg_catalog.pg_index AS i
CROSS JOIN LATERAL pg_catalog.unnest(i.indkey) WITH ORDINALITY AS k(attnum, position)
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
WHERE i.indrelid = $1 AND i.indisprimary AND k.position <= i.indnkeyatts
  AND t.typnamespace IS DISTINCT FROM pg_catalog.to_regnamespace('toastrack')::pg_catalog.oid
ORDER BY k.position";

/// Connects to a database.
pub(super) async fn connect(url: &str) -> Result<Database, CommandError> {
    let args = DatabaseArgs {
        database: url.to_owned(),
    };
    let client = args.connect().await?;
    let row = client
        .query_one("SELECT pg_catalog.current_database()::pg_catalog.text", &[])
        .await
        .map_err(CommandError::database("asking for the database's name"))?;
    Ok(Database {
        client,
        name: row.get(0),
    })
}

/// Follows all references of a database.
///
/// # Errors
/// `Database` when a column cannot be read, for want of a privilege for example.
pub(super) async fn follow(
    database: &mut Database,
    inspector: &Inspector,
    tally: &mut Tally,
) -> Result<RowCounts, CommandError> {
    let name = database.name.clone();
    let transaction = database
        .client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .await
        .map_err(CommandError::database("beginning a transaction"))?;
    transaction
        .batch_execute("SET LOCAL row_security = off; SET LOCAL search_path = pg_catalog")
        .await
        .map_err(CommandError::database("beginning a transaction"))?;
    let mut counts = RowCounts::default();
    for column in columns(&transaction, &name, tally).await? {
        counts.columns += 1;
        let scan = Scan {
            transaction: &transaction,
            database: &name,
            column: &column,
            inspector,
        };
        scan.run(tally, &mut counts).await?;
    }
    if counts.columns == 0 {
        let line = json!({"event": "note", "database": name, "seen": "no offloaded columns"});
        tally.list(&line, || {
            format!("note: database {name} has no offloaded columns")
        });
    }
    Ok(counts)
}

async fn columns(
    transaction: &Transaction<'_>,
    database: &str,
    tally: &mut Tally,
) -> Result<Vec<Column>, CommandError> {
    let found = transaction
        .query(COLUMNS, &[])
        .await
        .map_err(CommandError::database("looking for offloaded columns"))?;
    let mut columns = Vec::new();
    for row in found {
        let column = Column {
            relation: row.get(0),
            schema: row.get(2),
            table: row.get(3),
            name: row.get(4),
            qualified: row.get(5),
            quoted: row.get(6),
            is_array: row.get(7),
        };
        if row.get::<_, &str>(1) == "c" {
            let place = column.to_string();
            let line = json!({
                "event": "note", "database": database, "attribute": place,
                "seen": "columns of composite types are not followed",
            });
            tally.list(&line, || {
                format!("note: {place}: columns of composite types are not followed")
            });
            continue;
        }
        columns.push(column);
    }
    Ok(columns)
}

struct Scan<'a> {
    transaction: &'a Transaction<'a>,
    database: &'a str,
    column: &'a Column,
    inspector: &'a Inspector,
}

impl Scan<'_> {
    async fn run(&self, tally: &mut Tally, counts: &mut RowCounts) -> Result<(), CommandError> {
        let column = self.column;
        let failed = || CommandError::database(format!("reading {column}"));
        let Column {
            qualified, quoted, ..
        } = column;
        let from = if column.is_array {
            format!("ONLY {qualified} AS r CROSS JOIN LATERAL unnest(r.{quoted}) AS u(v)")
        } else {
            format!("(SELECT ctid, {quoted} AS v FROM ONLY {qualified}) AS r")
        };
        let statement = format!(
            "SELECT r.ctid::text, toastrack.spelling(v) FROM {from} \
             WHERE toastrack.looks_like_reference(v)"
        );
        let mut damaged = Vec::new();
        let mut unlisted = 0_u64;
        let none: [&str; 0] = [];
        let stream = self
            .transaction
            .query_raw(&statement, none)
            .await
            .map_err(failed())?;
        let mut stream = pin!(stream);
        while let Some(row) = stream.try_next().await.map_err(failed())? {
            let spelling: &str = row.get(1);
            let Some(reference) = self.inspector.parse_any_text(spelling.as_bytes()) else {
                counts.others += 1;
                continue;
            };
            counts.references += 1;
            if tally.seen.holds(&reference) {
                continue;
            }
            // Written since the store was read, or damaged, or nowhere.
            let read = tokio::task::block_in_place(|| self.inspector.read(&reference));
            if let Err(error) = read {
                counts.damaged += 1;
                if damaged.len() < MAX_LISTED {
                    damaged.push((row.get::<_, String>(0), reference, error.to_string()));
                } else {
                    unlisted += 1;
                }
            }
        }
        let key = self.key_columns().await?;
        for (ctid, reference, seen) in damaged {
            let key = self.key_of(&key, &ctid).await?;
            let line = json!({
                "event": "row",
                "database": self.database,
                "schema": column.schema,
                "table": column.table,
                "column": column.name,
                "key": key,
                "ctid": ctid,
                "segment": format!("{:08x}", reference.segment()),
                "offset": reference.offset(),
                "seen": seen,
            });
            tally.list(&line, || {
                format!("row: {column} {}: {seen}", described(&key, &ctid))
            });
        }
        if unlisted > 0 {
            let seen = format!("{unlisted} more values cannot be read");
            let line = json!({
                "event": "note", "database": self.database, "column": column.to_string(),
                "seen": seen,
            });
            tally.list(&line, || format!("note: {column}: {seen}"));
        }
        Ok(())
    }

    async fn key_columns(&self) -> Result<Vec<(String, String)>, CommandError> {
        let rows = self
            .transaction
            .query(KEY, &[&self.column.relation])
            .await
            .map_err(CommandError::database("looking for the primary key"))?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    /// The primary key of a row, empty when there is none.
    async fn key_of(
        &self,
        columns: &[(String, String)],
        ctid: &str,
    ) -> Result<Map<String, Value>, CommandError> {
        let mut key = Map::new();
        if columns.is_empty() {
            return Ok(key);
        }
        let list: Vec<String> = columns.iter().map(|c| format!("{}::text", c.1)).collect();
        let statement = format!(
            "SELECT {} FROM ONLY {} WHERE ctid = $1::text::tid",
            list.join(", "),
            self.column.qualified
        );
        let row = self
            .transaction
            .query_opt(&statement, &[&ctid])
            .await
            .map_err(CommandError::database(format!("reading {}", self.column)))?;
        if let Some(row) = row {
            for (at, (name, _)) in columns.iter().enumerate() {
                key.insert(name.clone(), row.get::<_, Option<String>>(at).into());
            }
        }
        Ok(key)
    }
}

/// Damaged values of one column that are listed, so that no list grows with the damage.
const MAX_LISTED: usize = 100_000;

/// `(id)=(17)`, as in the server's own messages, or the place of the row.
fn described(key: &Map<String, Value>, ctid: &str) -> String {
    if key.is_empty() {
        return format!("ctid {ctid}");
    }
    let names: Vec<&str> = key.keys().map(String::as_str).collect();
    let values: Vec<&str> = key.values().map(|v| v.as_str().unwrap_or("null")).collect();
    format!("({})=({})", names.join(", "), values.join(", "))
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.qualified, self.quoted)
    }
}

impl AddAssign for RowCounts {
    fn add_assign(&mut self, more: RowCounts) {
        self.columns += more.columns;
        self.references += more.references;
        self.others += more.others;
        self.damaged += more.damaged;
    }
}

impl RowCounts {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "columns": self.columns,
            "references": self.references,
            "not_of_this_store": self.others,
            "damaged": self.damaged,
        })
    }
}

impl fmt::Display for RowCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} columns with {} references, {} of which cannot be read",
            self.columns, self.references, self.damaged
        )?;
        if self.others > 0 {
            write!(
                f,
                "; {} fields look like references and are none of this store's",
                self.others
            )?;
        }
        Ok(())
    }
}
