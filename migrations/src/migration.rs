//! The migrations, in order, and what they are made of.
//!
//! A migration that was released is never edited; a change is a new one. The repeatable ones are run by every
//! install: part of what they make, in `pg_catalog`, is not in a dump, and the extension dblink may move.

/// One step of the schema, there and back.
#[derive(Debug)]
pub(crate) struct Migration {
    /// Its number, from 1 without gaps.
    pub(crate) version: i32,
    /// Its file's name without number and extension.
    pub(crate) name: &'static str,
    /// The statements that make it.
    up: &'static str,
    /// The statements that undo it.
    pub(crate) down: &'static str,
}

impl Migration {
    /// Whether it calls functions of the extension dblink.
    pub(crate) fn needs_dblink(&self) -> bool {
        self.up.contains(DBLINK_SCHEMA)
    }

    /// The statements that make it; `dblink_schema` is where the extension dblink is, as a quoted identifier.
    pub(crate) fn up(&self, dblink_schema: &str) -> String {
        self.up.replace(DBLINK_SCHEMA, dblink_schema)
    }
}

/// Stands in the SQL files for the schema of the extension dblink.
const DBLINK_SCHEMA: &str = "@dblink@";

macro_rules! migration {
    ($version:literal, $file:literal, $name:literal) => {
        Migration {
            version: $version,
            name: $name,
            up: include_str!(concat!("../sql/", $file, "_", $name, ".up.sql")),
            down: include_str!(concat!("../sql/", $file, "_", $name, ".down.sql")),
        }
    };
}

/// All migrations, oldest first.
pub(crate) const MIGRATIONS: &[Migration] = &[
    migration!(1, "0001", "schema"),
    migration!(2, "0002", "types"),
    migration!(3, "0003", "resolver"),
    migration!(4, "0004", "detoast"),
    migration!(5, "0005", "casts"),
    migration!(6, "0006", "operators"),
    migration!(7, "0007", "large_values"),
];

/// The migrations that make or replace only what has to be, and that every install runs again.
pub(crate) const REPEATABLE: [i32; 2] = [3, 6];

/// The version of the schema that this program installs and works with.
pub const VERSION: i32 = 7;

const _: () = assert!(MIGRATIONS[MIGRATIONS.len() - 1].version == VERSION);
