//! Relations of one name in different schemas, temporary ones among them.
//!
//! A statement names its table without a schema, as a rule, and which table that is depends on the
//! session's search path. A guess is harmless (S1) as long as the column that it is about has the plain
//! type in whichever relation is meant, or the `toastrack.*` one. Where it has another type there, the
//! guess would make an error of what is none: such columns are left alone.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Client;

/// The types that columns have in all relations of a name.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct Namesakes {
    by_name: BTreeMap<(String, String), BTreeSet<u32>>,
    /// Columns from 0, as `INSERT` without a column list counts them.
    by_position: BTreeMap<(String, usize), BTreeSet<u32>>,
}

const COLUMNS: &str = "
SELECT c.oid, c.relname::pg_catalog.text, a.attname::pg_catalog.text, a.atttypid
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relname = ANY ($1::pg_catalog.text[]::pg_catalog.name[]) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
ORDER BY c.oid, a.attnum";

impl Namesakes {
    /// Reads the relations that have one of these names.
    pub(crate) async fn read(
        client: &Client,
        names: &[&str],
    ) -> Result<Namesakes, tokio_postgres::Error> {
        let mut namesakes = Namesakes::default();
        if names.is_empty() {
            return Ok(namesakes);
        }
        let (mut relation, mut position) = (0, 0);
        for row in client.query(COLUMNS, &[&names]).await? {
            position = if row.get::<_, u32>(0) == relation {
                position + 1
            } else {
                0
            };
            relation = row.get(0);
            namesakes.add(row.get(1), row.get(2), position, row.get(3));
        }
        Ok(namesakes)
    }

    fn add(&mut self, relation: String, column: String, position: usize, type_oid: u32) {
        let by_position = (relation.clone(), position);
        self.by_position
            .entry(by_position)
            .or_default()
            .insert(type_oid);
        self.by_name
            .entry((relation, column))
            .or_default()
            .insert(type_oid);
    }

    /// Whether every column that a statement can mean by this name, or by its place, has a type that
    /// `fits`.
    pub(crate) fn all_fit(
        &self,
        relation: &str,
        column: &str,
        position: usize,
        fits: impl Fn(u32) -> bool,
    ) -> bool {
        let named = self.by_name.get(&(relation.to_owned(), column.to_owned()));
        let placed = self.by_position.get(&(relation.to_owned(), position));
        named
            .into_iter()
            .chain(placed)
            .flatten()
            .all(|type_oid| fits(*type_oid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another type by the same name or in the same place speaks against a column, and only there.
    #[test]
    fn finds_what_does_not_fit() {
        const TEXT: u32 = 25;
        const JSONB: u32 = 3802;
        const OURS: u32 = 70_000;
        let mut namesakes = Namesakes::default();
        for (column, position, type_oid) in [("id", 0, 23), ("body", 1, OURS), ("d", 2, TEXT)] {
            namesakes.add("docs".into(), column.into(), position, type_oid);
        }
        for (column, position, type_oid) in [("id", 0, 23), ("body", 1, TEXT), ("e", 2, JSONB)] {
            namesakes.add("docs".into(), column.into(), position, type_oid);
        }
        let fits = |type_oid| [TEXT, OURS].contains(&type_oid);
        assert!(namesakes.all_fit("docs", "body", 1, fits));
        assert!(!namesakes.all_fit("docs", "d", 2, fits), "by its place");
        assert!(!namesakes.all_fit("docs", "e", 9, fits), "by its name");
        assert!(namesakes.all_fit("others", "e", 2, fits));
    }
}
