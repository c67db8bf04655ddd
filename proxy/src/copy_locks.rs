//! Which relation a COPY FROM STDIN that waits for its rows has opened, as other sessions see it.
//!
//! From its CopyInResponse to its end a COPY holds a lock on its target that no other session may change
//! the table under. So what the system catalog says then, and which relations the backend has locked, is
//! what the COPY works with; what was asked before it began may have been overtaken.

use std::sync::Arc;

use futures::FutureExt;
use tokio_postgres::Client;

use crate::catalog::Database;

/// A column, as pg_attribute has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attribute {
    pub(crate) number: i16,
    pub(crate) name: String,
    pub(crate) type_oid: u32,
    pub(crate) type_modifier: i32,
    pub(crate) generated: bool,
}

/// What a COPY is said to have opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    /// The backend.
    pub(crate) pid: i32,
    /// Tells one run of a server from all others.
    pub(crate) server: String,
    /// The relation's OID.
    pub(crate) relation: u32,
    /// Its bare name.
    pub(crate) table: String,
    /// Its columns without dropped ones, in order.
    pub(crate) attributes: Vec<Attribute>,
}

/// A relation that a backend has locked for writing.
struct Written {
    oid: u32,
    /// None when it is not visible outside of its transaction.
    name: Option<String>,
    /// Locked as well in a way in which it can be changed.
    altered: bool,
}

const WRITTEN: &str = "
SELECT l.relation, c.relname::pg_catalog.text, pg_catalog.bool_or(l.mode = 'AccessExclusiveLock'),
       pg_catalog.encode(pg_catalog.timestamptz_send(pg_catalog.pg_postmaster_start_time()), 'hex')
FROM pg_catalog.pg_locks AS l
LEFT JOIN pg_catalog.pg_class AS c ON c.oid = l.relation
WHERE l.pid = $1 AND l.granted AND l.locktype = 'relation'
  AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database())
GROUP BY l.relation, c.relname
HAVING pg_catalog.bool_or(l.mode = 'RowExclusiveLock')";

const ATTRIBUTES: &str = "
SELECT a.attnum, a.attname::pg_catalog.text, a.atttypid, a.atttypmod, a.attgenerated <> ''
FROM pg_catalog.pg_attribute AS a
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum";

impl Opened {
    /// Whether the COPY that waits in the backend works on this relation, with these columns.
    ///
    /// Asked of the same session right before the COPY, what is known may have become wrong only by what
    /// other sessions have committed, which shows here. With `alone` unset something of the session's own
    /// ran in between, which does not: then nothing that the session has changed itself may be involved.
    pub(crate) async fn is_certain(&self, database: &Database, alone: bool) -> bool {
        let this = Arc::new(self.clone());
        let holds = database.read_with_control(move |client| {
            let this = Arc::clone(&this);
            async move { this.holds(client, alone).await }.boxed()
        });
        match holds.await {
            Ok(holds) => holds,
            Err(error) => {
                tracing::warn!(%error, "target of a copy not certain, values stay inline");
                false
            }
        }
    }

    async fn holds(&self, client: &Client, alone: bool) -> Result<bool, String> {
        let said = |error: tokio_postgres::Error| error.to_string();
        let rows = client.query(WRITTEN, &[&self.pid]).await.map_err(said)?;
        let same_server = |row: &tokio_postgres::Row| row.get::<_, String>(3) == self.server;
        if !rows.iter().all(same_server) {
            return Ok(false);
        }
        let written = rows.iter().map(|row| Written {
            oid: row.get(0),
            name: row.get(1),
            altered: row.get(2),
        });
        if !self.is_the_only_one(&written.collect::<Vec<_>>(), alone) {
            return Ok(false);
        }
        let rows = client.query(ATTRIBUTES, &[&self.relation]).await;
        let attributes = rows.map_err(said)?;
        let attributes = attributes.iter().map(|row| Attribute {
            number: row.get(0),
            name: row.get(1),
            type_oid: row.get(2),
            type_modifier: row.get(3),
            generated: row.get(4),
        });
        Ok(attributes.eq(self.attributes.iter().cloned()))
    }

    /// Whether no other relation that the backend writes can be the target.
    fn is_the_only_one(&self, written: &[Written], alone: bool) -> bool {
        let named_so = |one: &Written| one.name.as_ref() == Some(&self.table);
        let others = written.iter().filter(|one| one.oid != self.relation);
        let unclear =
            |one: &Written| named_so(one) || (!alone && (one.name.is_none() || one.altered));
        let this = written.iter().find(|one| one.oid == self.relation);
        this.is_some_and(|this| named_so(this) && (alone || !this.altered))
            && !others.into_iter().any(unclear)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One relation of the name, locked, and nothing that could be meant instead.
    #[test]
    fn finds_what_may_be_meant() {
        let opened = Opened {
            pid: 1,
            server: String::new(),
            relation: 7,
            table: "docs".into(),
            attributes: Vec::new(),
        };
        let written = |oid, name: Option<&str>, altered| Written {
            oid,
            name: name.map(str::to_owned),
            altered,
        };
        let certain =
            |written: &[Written]| [true, false].map(|alone| opened.is_the_only_one(written, alone));
        let docs = || written(7, Some("docs"), false);
        assert_eq!(certain(&[]), [false; 2]);
        assert_eq!(certain(&[docs()]), [true; 2]);
        assert_eq!(certain(&[written(8, Some("docs"), false)]), [false; 2]);
        assert_eq!(
            certain(&[docs(), written(8, Some("docs"), false)]),
            [false; 2]
        );
        assert_eq!(certain(&[docs(), written(8, Some("kv"), false)]), [true; 2]);
        assert_eq!(certain(&[docs(), written(8, None, true)]), [true, false]);
        assert_eq!(
            certain(&[docs(), written(8, Some("kv"), true)]),
            [true, false]
        );
        assert_eq!(certain(&[written(7, Some("docs"), true)]), [true, false]);
        assert_eq!(certain(&[written(7, Some("old"), false)]), [false; 2]);
    }
}
