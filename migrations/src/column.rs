//! What the catalogs say of one column, in its table and in the table's partitions and children.

use tokio_postgres::GenericClient;

use crate::error::Error;
use crate::kind::ColumnKind;
use crate::target::{Target, quote_ident};

/// A column as it is.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// Its quoted name.
    pub(crate) name: String,
    /// Its type as SQL writes it.
    pub(crate) type_name: String,
    /// Its kind, if it is of one of the plain or offloaded types.
    pub(crate) kind: Option<ColumnKind>,
    /// Whether its type is the offloaded one.
    pub(crate) is_offloaded: bool,
    /// The length of a `varchar(n)`.
    pub(crate) length: Option<i32>,
    /// ` COLLATE ...` when the collation is not the type's default, else empty.
    pub(crate) collate: String,
    /// Whether the column is inherited from a parent table.
    pub(crate) is_inherited: bool,
    /// Whether it is a generated column.
    pub(crate) is_generated: bool,
    /// The table first, then every partition or child.
    pub(crate) relations: Vec<Relation>,
}

/// The column's settings in one table of the tree.
#[derive(Clone, Debug)]
pub(crate) struct Relation {
    pub(crate) oid: u32,
    /// The quoted name, with schema.
    pub(crate) name: String,
    /// `pg_class.relkind`.
    pub(crate) kind: char,
    pub(crate) is_partition: bool,
    /// Whether the table is of a composite type (`CREATE TABLE ... OF`).
    pub(crate) is_typed: bool,
    pub(crate) is_system: bool,
    /// The column's number here.
    pub(crate) number: i16,
    /// The word for `SET STORAGE` if it is not the types' default.
    pub(crate) storage: Option<&'static str>,
    /// The word for `SET COMPRESSION` if there is one.
    pub(crate) compression: Option<&'static str>,
}

impl Column {
    /// Looks the column up.
    ///
    /// # Errors
    /// `NotFound`; `NotInstalled` when the schema is not there.
    pub(crate) async fn load(
        client: &impl GenericClient,
        target: &Target,
    ) -> Result<Column, Error> {
        let installed: bool = client
            .query_one(
                "SELECT pg_catalog.to_regclass('toastrack.column_settings') IS NOT NULL",
                &[],
            )
            .await?
            .get(0);
        if !installed {
            return Err(Error::NotInstalled {
                missing: "toastrack.column_settings".to_owned(),
            });
        }
        let relation: Option<u32> = client
            .query_one(
                "SELECT pg_catalog.to_regclass($1)::pg_catalog.oid",
                &[&target.relation()],
            )
            .await?
            .get(0);
        let relation = relation
            .ok_or_else(|| Error::NotFound(format!("there is no table {}", target.relation())))?;
        let row = client
            .query_opt(COLUMN, &[&relation, &target.column])
            .await?
            .ok_or_else(|| {
                Error::NotFound(format!(
                    "the table {} has no column {}",
                    target.relation(),
                    quote_ident(&target.column)
                ))
            })?;
        let schema: &str = row.get(1);
        let type_name: &str = row.get(0);
        let known = ColumnKind::from_name(type_name);
        let is_offloaded = schema == "toastrack" && known.is_some();
        let type_modifier: i32 = row.get(2);
        Ok(Column {
            name: quote_ident(&target.column),
            type_name: row.get(3),
            kind: known.filter(|_| is_offloaded || schema == "pg_catalog"),
            is_offloaded,
            length: (known == Some(ColumnKind::Varchar) && type_modifier >= 4)
                .then_some(type_modifier - 4),
            collate: row.get(4),
            is_inherited: row.get(5),
            is_generated: row.get(6),
            relations: relations(client, relation, &target.column).await?,
        })
    }

    /// The table itself.
    pub(crate) fn table(&self) -> &Relation {
        &self.relations[0]
    }

    /// The OIDs of the table and all below it.
    pub(crate) fn oids(&self) -> Vec<u32> {
        self.relations.iter().map(|relation| relation.oid).collect()
    }
}

async fn relations(
    client: &impl GenericClient,
    table: u32,
    column: &str,
) -> Result<Vec<Relation>, Error> {
    let rows = client.query(RELATIONS, &[&table, &column]).await?;
    Ok(rows
        .iter()
        .map(|row| Relation {
            oid: row.get(0),
            name: row.get(1),
            kind: code(row.get(2)),
            is_partition: row.get(3),
            is_typed: row.get(4),
            is_system: row.get(5),
            number: row.get(6),
            storage: match code(row.get(7)) {
                'p' => Some("PLAIN"),
                'e' => Some("EXTERNAL"),
                'm' => Some("MAIN"),
                _ => None,
            },
            compression: match code(row.get(8)) {
                'p' => Some("pglz"),
                'l' => Some("lz4"),
                _ => None,
            },
        })
        .collect())
}

/// A `"char"` of the catalogs.
fn code(value: i8) -> char {
    char::from(value.to_le_bytes()[0])
}

const COLUMN: &str = "
SELECT t.typname::pg_catalog.text, n.nspname::pg_catalog.text, a.atttypmod,
       pg_catalog.format_type(a.atttypid, a.atttypmod),
       CASE WHEN a.attcollation IN (0, t.typcollation) THEN ''
            ELSE ' COLLATE ' || pg_catalog.quote_ident(cn.nspname) || '.' || pg_catalog.quote_ident(c.collname) END,
       a.attinhcount > 0, a.attgenerated <> ''
FROM pg_catalog.pg_attribute AS a
JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
JOIN pg_catalog.pg_namespace AS n ON n.oid = t.typnamespace
LEFT JOIN pg_catalog.pg_collation AS c ON c.oid = a.attcollation
LEFT JOIN pg_catalog.pg_namespace AS cn ON cn.oid = c.collnamespace
WHERE a.attrelid = $1 AND a.attname = $2 AND a.attnum > 0 AND NOT a.attisdropped";

const RELATIONS: &str = "
WITH RECURSIVE tree AS (
    SELECT $1::pg_catalog.oid AS oid, 0 AS depth
  UNION
    SELECT i.inhrelid, tree.depth + 1 FROM tree JOIN pg_catalog.pg_inherits AS i ON i.inhparent = tree.oid
)
SELECT c.oid, pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname), c.relkind, c.relispartition,
       c.reloftype <> 0, n.nspname IN ('pg_catalog', 'information_schema', 'pg_toast', 'toastrack'), a.attnum,
       a.attstorage, a.attcompression
FROM (SELECT oid, pg_catalog.min(depth) AS depth FROM tree GROUP BY oid) AS t
JOIN pg_catalog.pg_class AS c ON c.oid = t.oid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attname = $2 AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY t.depth, c.oid";
