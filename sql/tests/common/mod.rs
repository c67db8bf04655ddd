//! The tables that the tests of statements are about.

use toastrack_sql::{ColumnDef, Kind, OffloadedColumn, TableDef, Tables};

/// `docs` in `public`: 1 body text, 2 data jsonb, 3 note varchar, 4 raw bytea, 5 meta json,
/// 6 a generated text, 7 "Mixed" text; id and title are plain. Another `docs` in
/// `archive`: 11 body varchar. `"Weird Table"`: 20 "Body" text. `pair`: 30 a, 31 b, both text.
pub(crate) fn tables() -> Tables {
    use Kind::{Bytea, Json, Jsonb, Text, Varchar};
    Tables::new(vec![
        table(
            "public",
            "docs",
            &[
                ("id", None),
                ("body", Some((1, Text))),
                ("title", None),
                ("data", Some((2, Jsonb))),
                ("note", Some((3, Varchar))),
                ("raw", Some((4, Bytea))),
                ("meta", Some((5, Json))),
                ("made", Some((6, Text))),
                ("Mixed", Some((7, Text))),
            ],
        ),
        table(
            "archive",
            "docs",
            &[("body", Some((11, Varchar))), ("archived", None)],
        ),
        table("public", "Weird Table", &[("Body", Some((20, Text)))]),
        table(
            "public",
            "pair",
            &[("a", Some((30, Text))), ("b", Some((31, Text)))],
        ),
        table("public", "plain_only", &[("x", None)]),
    ])
}

fn table(schema: &str, name: &str, columns: &[(&str, Option<(u32, Kind)>)]) -> TableDef {
    let columns = columns.iter().map(|(name, offloaded)| ColumnDef {
        name: (*name).to_owned(),
        offloaded: offloaded.map(|(id, kind)| OffloadedColumn { id, kind }),
        generated: *name == "made",
    });
    TableDef {
        schema: schema.to_owned(),
        name: name.to_owned(),
        columns: columns.collect(),
    }
}

/// The kind of each column of `tables`.
pub(crate) fn kind_of(column: u32) -> Kind {
    match column {
        2 => Kind::Jsonb,
        3 | 11 => Kind::Varchar,
        4 => Kind::Bytea,
        5 => Kind::Json,
        _ => Kind::Text,
    }
}
