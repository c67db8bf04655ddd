//! The tables that have offloaded columns, as the analysis sees them.
//!
//! Names are matched by bare relation name: a wrong guess is harmless (S1),
//! so search paths and temporary tables need not be followed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::mentions::Mentions;

/// The plain type behind an offloaded column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `text`
    Text,
    /// `character varying`, with or without a length
    Varchar,
    /// `json`
    Json,
    /// `jsonb`
    Jsonb,
    /// `bytea`
    Bytea,
}

impl Kind {
    /// Every kind, in the order of the reference format.
    pub const ALL: [Kind; 5] = [
        Kind::Text,
        Kind::Varchar,
        Kind::Json,
        Kind::Jsonb,
        Kind::Bytea,
    ];

    /// The name of the plain type, as in `pg_type.typname`.
    pub fn plain_name(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Varchar => "varchar",
            Kind::Json => "json",
            Kind::Jsonb => "jsonb",
            Kind::Bytea => "bytea",
        }
    }

    /// The schema-qualified name of the offloading type.
    pub fn toastrack_name(self) -> &'static str {
        match self {
            Kind::Text => "toastrack.text",
            Kind::Varchar => "toastrack.varchar",
            Kind::Json => "toastrack.json",
            Kind::Jsonb => "toastrack.jsonb",
            Kind::Bytea => "toastrack.bytea",
        }
    }

    /// The kind whose plain type has this `pg_type.typname`.
    pub fn from_plain_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.plain_name() == name)
    }

    /// Whether a value cast to `cast` is stored in a column of this kind as the same bytes.
    pub(crate) fn accepts_cast(self, cast: Kind) -> bool {
        let is_string = |kind| matches!(kind, Kind::Text | Kind::Varchar);
        self == cast || (is_string(self) && is_string(cast))
    }
}

/// The offloaded side of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OffloadedColumn {
    /// The caller's own number for the column; handed back in every site.
    pub id: u32,
    /// The plain type behind it.
    pub kind: Kind,
}

/// One column, in the order of `pg_attribute.attnum` without dropped ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDef {
    /// `pg_attribute.attname`, unquoted.
    pub name: String,
    /// Set when the column has a `toastrack.*` type.
    pub offloaded: Option<OffloadedColumn>,
    /// `GENERATED ALWAYS AS (...)`: nothing can be assigned to it.
    pub generated: bool,
}

impl ColumnDef {
    /// The offloaded side, if something can be assigned to the column.
    pub(crate) fn assignable(&self) -> Option<OffloadedColumn> {
        self.offloaded.filter(|_| !self.generated)
    }
}

/// One relation with at least one offloaded column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDef {
    /// The schema's name, unquoted.
    pub schema: String,
    /// The relation's name, unquoted.
    pub name: String,
    /// All columns, since `INSERT` without a column list counts positions.
    pub columns: Vec<ColumnDef>,
}

/// An immutable set of tables; a clone shares it.
#[derive(Debug, Clone)]
pub struct Tables {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Distinguishes this set from every other one in the caches.
    id: u64,
    tables: Vec<TableDef>,
    mentions: Mentions,
}

impl Tables {
    /// Keeps the tables that have an assignable offloaded column; the others cannot matter.
    pub fn new(tables: Vec<TableDef>) -> Tables {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let tables: Vec<TableDef> = tables
            .into_iter()
            .filter(|table| table.columns.iter().any(|c| c.assignable().is_some()))
            .collect();
        let mentions = Mentions::new(tables.iter().map(|table| table.name.as_bytes()));
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Tables {
            inner: Arc::new(Inner {
                id,
                tables,
                mentions,
            }),
        }
    }

    /// Whether there is no offloaded column at all.
    pub fn is_empty(&self) -> bool {
        self.inner.tables.is_empty()
    }

    /// Whether the text holds the name of a table of this set.
    ///
    /// ASCII case is ignored and a substring is enough, so `true` proves
    /// nothing. `false` means that no site can be found in the text (a name
    /// spelled with `U&"\...."` escapes or doubled quotes is missed, which
    /// leaves its values inline). Costs next to nothing: see `benches`.
    pub fn mentions(&self, text: &[u8]) -> bool {
        self.inner.mentions.found_in(text)
    }

    /// Whether a table of this set has this bare name.
    pub fn has_named(&self, name: &str) -> bool {
        self.inner.tables.iter().any(|table| table.name == name)
    }

    pub(crate) fn id(&self) -> u64 {
        self.inner.id
    }

    /// The tables that `schema.name` may mean: an exact match of a given schema
    /// alone, else every table of that bare name. `schema` is empty when not given.
    pub(crate) fn candidates(&self, schema: &str, name: &str) -> Vec<&TableDef> {
        let tables = self.inner.tables.iter();
        let named: Vec<&TableDef> = tables.filter(|table| table.name == name).collect();
        match named.iter().find(|table| table.schema == schema) {
            Some(exact) => vec![exact],
            None => named,
        }
    }
}

impl Default for Tables {
    fn default() -> Tables {
        Tables::new(Vec::new())
    }
}
