//! Which columns of a database are offloaded: what the proxy needs to know of it.

use std::collections::HashMap;

use tokio_postgres::Client;

use crate::error::Error;
use crate::kind::ColumnKind;

/// The offloaded types of a database and the tables that have columns of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    /// The five types and the five types of arrays of them; empty when the schema is not installed.
    pub types: Vec<CatalogType>,
    /// Tables and partitioned tables with at least one column of such a type, by OID.
    pub tables: Vec<CatalogTable>,
}

/// A `toastrack.*` type, or the type of arrays of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogType {
    /// The type's OID in this database.
    pub oid: u32,
    /// Which plain type stands behind it.
    pub kind: ColumnKind,
    /// Whether this is the array type.
    pub is_array: bool,
    /// The OID that clients expect in its place: the plain type's, or its array type's.
    pub plain_oid: u32,
}

/// A table or partitioned table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogTable {
    /// The table's OID.
    pub oid: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// All its columns in their order, without dropped ones.
    pub columns: Vec<CatalogColumn>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogColumn {
    /// Its name.
    pub name: String,
    /// Its number, from 1; dropped columns leave gaps.
    pub number: i16,
    /// Its kind if its type is a toastrack type itself; `None` for all others, also arrays of one.
    pub offloaded: Option<ColumnKind>,
    /// The type modifier, as in RowDescription; -1 when there is none, the length plus 4 for `varchar(n)`.
    pub type_modifier: i32,
    /// Bytes from which on a value is offloaded, where the column has its own figure.
    pub threshold: Option<u32>,
    /// Whether it is a generated column, which no statement can assign to.
    pub is_generated: bool,
}

/// Reads the catalog: two queries that go by index, from the types to the columns that use them. Works for any
/// role. A database without the schema has an empty catalog.
///
/// # Errors
/// `Postgres`, among others when the schema is incomplete; ask [`crate::state`].
pub async fn catalog(client: &Client) -> Result<Catalog, Error> {
    let mut types = Vec::new();
    for row in client.query(TYPES, &[]).await? {
        let Some(kind) = ColumnKind::from_name(row.get(1)) else {
            continue;
        };
        types.push(CatalogType {
            oid: row.get(0),
            kind,
            is_array: false,
            plain_oid: kind.plain_oid(),
        });
        types.push(CatalogType {
            oid: row.get(2),
            kind,
            is_array: true,
            plain_oid: kind.plain_array_oid(),
        });
    }
    if types.is_empty() {
        return Ok(Catalog::default());
    }
    let kinds: HashMap<u32, ColumnKind> = types
        .iter()
        .filter(|one| !one.is_array)
        .map(|one| (one.oid, one.kind))
        .collect();
    let oids: Vec<u32> = types.iter().map(|one| one.oid).collect();
    let mut tables: Vec<CatalogTable> = Vec::new();
    for row in client.query(COLUMNS, &[&oids]).await? {
        let oid: u32 = row.get(0);
        let column = CatalogColumn {
            name: row.get(3),
            number: row.get(4),
            offloaded: kinds.get(&row.get::<_, u32>(5)).copied(),
            type_modifier: row.get(6),
            is_generated: row.get(7),
            threshold: row
                .get::<_, Option<i32>>(8)
                .and_then(|bytes| u32::try_from(bytes).ok()),
        };
        match tables.last_mut().filter(|table| table.oid == oid) {
            Some(table) => table.columns.push(column),
            None => tables.push(CatalogTable {
                oid,
                schema: row.get(1),
                name: row.get(2),
                columns: vec![column],
            }),
        }
    }
    Ok(Catalog { types, tables })
}

const TYPES: &str = "
SELECT t.oid, t.typname::pg_catalog.text, t.typarray
FROM pg_catalog.pg_type AS t
WHERE t.typnamespace = pg_catalog.to_regnamespace('toastrack')::pg_catalog.oid
  AND t.typname IN ('text', 'varchar', 'json', 'jsonb', 'bytea')
ORDER BY t.oid";

const COLUMNS: &str = "
SELECT c.oid, n.nspname::pg_catalog.text, c.relname::pg_catalog.text, a.attname::pg_catalog.text, a.attnum,
       a.atttypid, a.atttypmod, a.attgenerated <> '', s.threshold_bytes
FROM (SELECT DISTINCT d.objid FROM pg_catalog.pg_depend AS d
      WHERE d.refclassid = 'pg_catalog.pg_type'::pg_catalog.regclass
        AND d.refobjid = ANY ($1)
        AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objsubid > 0) AS u
JOIN pg_catalog.pg_class AS c ON c.oid = u.objid AND c.relkind IN ('r', 'p')
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN toastrack.column_settings AS s ON s.relation = c.oid::pg_catalog.regclass AND s.attname = a.attname
ORDER BY c.oid, a.attnum";
