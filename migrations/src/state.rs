//! Is the install whole?
//!
//! What stands in `pg_catalog` is not in a dump, so a database that was restored may have the types and the
//! tables without the operators. Offloading there would give wrong answers (`data || '{}'` would join the
//! reference's text), so whoever offloads asks here first.

use tokio_postgres::Client;

use crate::error::Error;
use crate::install::version;
use crate::kind::ColumnKind;
use crate::migration::{MIGRATIONS, VERSION};

/// What there is of the schema `toastrack` in a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstallState {
    /// Nothing.
    Absent,
    /// Some of it: offload nothing, run install.
    Incomplete {
        /// What is missing, each as SQL names it.
        missing: Vec<String>,
    },
    /// All of it.
    Installed {
        /// The version of the schema: [`VERSION`], or a newer program's.
        version: i32,
    },
}

impl InstallState {
    /// Whether values may be offloaded in this database by this program.
    pub fn is_ready(&self) -> bool {
        matches!(self, InstallState::Installed { version } if *version == VERSION)
    }
}

/// Looks at what there is. Three small queries on the catalogs; works for any role.
///
/// # Errors
/// `Postgres`.
pub async fn state(client: &Client) -> Result<InstallState, Error> {
    let present: bool = client
        .query_one(
            "SELECT pg_catalog.to_regnamespace('toastrack') IS NOT NULL",
            &[],
        )
        .await?
        .get(0);
    if !present {
        return Ok(InstallState::Absent);
    }
    let found = version(client).await?;
    let mut missing: Vec<String> = MIGRATIONS
        .iter()
        .filter(|migration| migration.version > found)
        .map(|migration| format!("migration {:04}_{}", migration.version, migration.name))
        .collect();
    let rows = client
        .query(
            MISSING,
            &[&relations(), &types(), &functions(), &operators()],
        )
        .await?;
    missing.extend(rows.iter().map(|row| row.get::<_, String>(0)));
    if found >= MIGRATIONS_WITH_CASTS {
        let rows = client.query(MISSING_CASTS, &[]).await;
        match rows {
            Ok(rows) => missing.extend(rows.iter().map(|row| row.get::<_, String>(0))),
            Err(error) if error.as_db_error().is_some() && !missing.is_empty() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(if missing.is_empty() {
        InstallState::Installed { version: found }
    } else {
        InstallState::Incomplete { missing }
    })
}

/// From this version on the casts are there, and the functions that list them.
const MIGRATIONS_WITH_CASTS: i32 = 5;

const MISSING: &str = "
SELECT 'table ' || e.name FROM pg_catalog.unnest($1::pg_catalog.text[]) AS e (name)
WHERE pg_catalog.to_regclass(e.name) IS NULL
UNION ALL
SELECT 'type ' || e.name FROM pg_catalog.unnest($2::pg_catalog.text[]) AS e (name)
WHERE pg_catalog.to_regtype(e.name) IS NULL
UNION ALL
SELECT 'function ' || e.name FROM pg_catalog.unnest($3::pg_catalog.text[]) AS e (name)
WHERE pg_catalog.to_regprocedure(e.name) IS NULL
UNION ALL
SELECT 'operator ' || e.name FROM pg_catalog.unnest($4::pg_catalog.text[]) AS e (name)
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_operator AS o
                  WHERE o.oid = pg_catalog.to_regoperator(e.name) AND o.oprcode <> 0)
UNION ALL
SELECT 'operator class for toastrack.' || t.name || ' using ' || m.amname
FROM pg_catalog.unnest(ARRAY['text', 'varchar', 'jsonb', 'bytea']) AS t (name)
JOIN pg_catalog.pg_am AS m ON m.amname IN ('btree', 'hash')
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_opclass AS c
                  WHERE c.opcmethod = m.oid AND c.opcdefault
                    AND c.opcintype = pg_catalog.to_regtype('toastrack.' || t.name)::pg_catalog.oid)
UNION ALL
SELECT 'extension dblink'
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'dblink')";

/// Without its cast, a conversion would take the reference's own text.
const MISSING_CASTS: &str = "
SELECT pg_catalog.format('cast (toastrack.%I AS %s)', k.kind, c.other)
FROM pg_catalog.unnest(ARRAY['text', 'varchar', 'json', 'jsonb', 'bytea']) AS k (kind),
     LATERAL toastrack.casts_out(k.kind) AS c
WHERE NOT c.present
UNION ALL
SELECT pg_catalog.format('cast (toastrack.%I AS %I)', k.kind, k.kind)
FROM pg_catalog.unnest(ARRAY['text', 'varchar', 'json', 'jsonb', 'bytea']) AS k (kind)
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_cast AS have
                  WHERE have.castsource = pg_catalog.to_regtype('toastrack.' || k.kind)::pg_catalog.oid
                    AND have.casttarget = pg_catalog.to_regtype('pg_catalog.' || k.kind)::pg_catalog.oid
                    AND have.castmethod = 'f')";

fn relations() -> Vec<String> {
    ["migrations", "config", "resolver", "column_settings"]
        .iter()
        .map(|name| format!("toastrack.{name}"))
        .collect()
}

fn types() -> Vec<String> {
    ColumnKind::ALL
        .iter()
        .map(|kind| format!("toastrack.{kind}"))
        .collect()
}

/// The functions of which an answer depends; the rest hang on them by dependency.
fn functions() -> Vec<String> {
    let mut names = vec![
        "toastrack.value_of(text)".to_owned(),
        "toastrack.value_from_segment(bytea)".to_owned(),
        "toastrack.value_from_resolver(text)".to_owned(),
        "toastrack.connect_to_resolver()".to_owned(),
        "toastrack.store_directory()".to_owned(),
    ];
    for kind in ColumnKind::ALL {
        names.push(format!("toastrack.detoast(toastrack.{kind})"));
        for name in ["to_json", "to_jsonb", "quote_literal", "quote_nullable"] {
            names.push(format!("pg_catalog.{name}(toastrack.{kind})"));
        }
        names.push(format!(
            "pg_catalog.array_to_string(toastrack.{kind}[],text)"
        ));
        names.push(format!(
            "pg_catalog.array_to_string(toastrack.{kind}[],text,text)"
        ));
        let lengths: &[&str] = match kind {
            ColumnKind::Text | ColumnKind::Varchar => &[
                "length",
                "char_length",
                "character_length",
                "octet_length",
                "bit_length",
            ],
            ColumnKind::Bytea => &["length", "octet_length", "bit_length"],
            ColumnKind::Json | ColumnKind::Jsonb => &[],
        };
        for name in lengths {
            names.push(format!("pg_catalog.{name}(toastrack.{kind})"));
        }
    }
    names
}

fn operators() -> Vec<String> {
    let mut names = Vec::new();
    for kind in ColumnKind::ALL
        .into_iter()
        .filter(|kind| kind.is_comparable())
    {
        for symbol in ["=", "<>", "<", "<=", ">", ">="] {
            names.push(format!(
                "pg_catalog.{symbol}(toastrack.{kind},toastrack.{kind})"
            ));
        }
    }
    for (left, right) in [("varchar", "text"), ("text", "varchar")] {
        for symbol in ["=", "<>", "<", "<=", ">", ">="] {
            names.push(format!(
                "pg_catalog.{symbol}(toastrack.{left},toastrack.{right})"
            ));
        }
    }
    for kind in ["jsonb", "bytea"] {
        names.push(format!("pg_catalog.||(toastrack.{kind},toastrack.{kind})"));
        names.push(format!("pg_catalog.||(toastrack.{kind},{kind})"));
        names.push(format!("pg_catalog.||({kind},toastrack.{kind})"));
    }
    names
}
