//! The five kinds of offloaded columns, one for each plain type.

use std::fmt;

/// Which plain type stands behind a `toastrack.*` type. The numbers are those of the value kind
/// in a reference (`docs/format/reference-v1.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ColumnKind {
    /// `text`
    Text = 1,
    /// `varchar`, with or without a length
    Varchar = 2,
    /// `json`
    Json = 3,
    /// `jsonb`
    Jsonb = 4,
    /// `bytea`
    Bytea = 5,
}

impl ColumnKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [ColumnKind; 5] = [
        ColumnKind::Text,
        ColumnKind::Varchar,
        ColumnKind::Json,
        ColumnKind::Jsonb,
        ColumnKind::Bytea,
    ];

    /// The name that the plain type has in `pg_catalog` and the offloaded one in `toastrack`.
    pub fn name(self) -> &'static str {
        match self {
            ColumnKind::Text => "text",
            ColumnKind::Varchar => "varchar",
            ColumnKind::Json => "json",
            ColumnKind::Jsonb => "jsonb",
            ColumnKind::Bytea => "bytea",
        }
    }

    /// The kind whose types have this name, if there is one.
    pub fn from_name(name: &str) -> Option<ColumnKind> {
        ColumnKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The OID of the plain type, fixed in every server.
    pub fn plain_oid(self) -> u32 {
        match self {
            ColumnKind::Text => 25,
            ColumnKind::Varchar => 1043,
            ColumnKind::Json => 114,
            ColumnKind::Jsonb => 3802,
            ColumnKind::Bytea => 17,
        }
    }

    /// The OID of the array type of the plain type, fixed in every server.
    pub fn plain_array_oid(self) -> u32 {
        match self {
            ColumnKind::Text => 1009,
            ColumnKind::Varchar => 1015,
            ColumnKind::Json => 199,
            ColumnKind::Jsonb => 3807,
            ColumnKind::Bytea => 1001,
        }
    }

    /// Whether `min`, `=`, `ORDER BY` and `GROUP BY` work on the plain type (all but `json`).
    pub(crate) fn is_comparable(self) -> bool {
        self != ColumnKind::Json
    }
}

impl fmt::Display for ColumnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
