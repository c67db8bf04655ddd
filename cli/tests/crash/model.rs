//! What the table must hold, by what was acknowledged.

use std::collections::BTreeMap;

use tokio_postgres::Client;

use crate::values::{Column, Value};
use crate::wire::{Field, JSONB_VERSION};

/// The offloaded columns of a row, in the order of [`Column::ALL`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// The transaction that wrote it last.
    pub(crate) txn: i64,
    pub(crate) values: [Option<Value>; 3],
}

/// A transaction: the rows it leaves, `None` for those it deletes.
#[derive(Clone, Debug)]
pub(crate) struct Transaction {
    pub(crate) txn: i64,
    pub(crate) changes: Vec<(i64, Option<Row>)>,
}

/// The rows of one writer; no other writes them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) rows: BTreeMap<i64, Row>,
    /// Its commit was asked for and not acknowledged.
    pub(crate) doubt: Option<Transaction>,
    /// Transactions begun.
    pub(crate) begun: i64,
    pub(crate) next_id: i64,
}

/// Each writer has so many numbers for its rows.
pub(crate) const IDS: i64 = 1_000_000;

/// What became of the transactions that were in doubt.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settled {
    pub(crate) committed: u64,
    pub(crate) lost: u64,
}

/// A row as somebody reads it; each field in binary format.
pub(crate) struct Found {
    txn: i64,
    pub(crate) fields: [Option<Field>; 3],
}

pub(crate) type Table = BTreeMap<i64, Found>;

const SELECT: &str = "select id, txn, body, data, raw from docs";

/// Reads the whole table.
pub(crate) async fn read_table(client: &Client) -> Result<Table, tokio_postgres::Error> {
    let rows = client.query(SELECT, &[]).await?;
    Ok(rows.iter().map(found).collect())
}

/// Reads one row.
pub(crate) async fn read_row(
    client: &Client,
    id: i64,
) -> Result<Option<Found>, tokio_postgres::Error> {
    let row = client
        .query_opt(&format!("{SELECT} where id = $1"), &[&id])
        .await?;
    Ok(row.map(|row| found(&row).1))
}

fn found(row: &tokio_postgres::Row) -> (i64, Found) {
    let found = Found {
        txn: row.get(1),
        fields: [row.get(2), row.get(3), row.get(4)],
    };
    (row.get(0), found)
}

impl Row {
    /// What is different, by column.
    pub(crate) fn difference(&self, found: &Found) -> Option<String> {
        if self.txn != found.txn {
            return Some(format!("txn is {}, must be {}", found.txn, self.txn));
        }
        let columns = Column::ALL.iter().zip(&self.values).zip(&found.fields);
        columns.into_iter().find_map(|((column, value), field)| {
            field_difference(*column, value.as_ref(), field.as_ref())
                .map(|what| format!("{}: {what}", column.name()))
        })
    }
}

fn field_difference(
    column: Column,
    value: Option<&Value>,
    field: Option<&Field>,
) -> Option<String> {
    let (value, field) = match (value, field) {
        (None, None) => return None,
        (Some(value), None) => return Some(format!("is NULL, must be {value:?}")),
        (None, Some(field)) => return Some(format!("is {} bytes, must be NULL", field.0.len())),
        (Some(value), Some(field)) => (value, field),
    };
    let bytes = match column {
        Column::Data => match field.0.strip_prefix(&[JSONB_VERSION]) {
            Some(text) => text,
            None => return Some("is not jsonb in binary format".to_owned()),
        },
        Column::Body | Column::Raw => &field.0,
    };
    if *bytes == *value.bytes {
        return None;
    }
    let at = bytes
        .iter()
        .zip(&*value.bytes)
        .take_while(|(a, b)| a == b)
        .count();
    let end = bytes.len().min(at + 40);
    Some(format!(
        "{} bytes, must be the {} of {value:?}; they differ from byte {at}, there stands {:?}",
        bytes.len(),
        value.bytes.len(),
        String::from_utf8_lossy(&bytes[at..end]),
    ))
}

/// Decides by the table what became of transactions in doubt.
pub(crate) fn settle(ledgers: &mut [Ledger], table: &Table) -> Settled {
    let mut settled = Settled::default();
    for ledger in ledgers {
        let Some(transaction) = ledger.doubt.take() else {
            continue;
        };
        let (id, row) = &transaction.changes[0];
        let seen = table.get(id);
        let committed = match row {
            Some(_) => seen.is_some_and(|found| found.txn == transaction.txn),
            None => seen.is_none(),
        };
        if committed {
            settled.committed += 1;
            ledger.apply(transaction);
        } else {
            settled.lost += 1;
        }
    }
    settled
}

/// Compares the table with the ledgers, both ways; the first difference, if there is one.
pub(crate) fn difference(ledgers: &[Ledger], table: &Table) -> Option<String> {
    let expected: BTreeMap<_, _> = ledgers.iter().flat_map(|ledger| &ledger.rows).collect();
    if let Some(id) = table.keys().find(|id| !expected.contains_key(id)) {
        return Some(format!("row {id} is there and was never committed"));
    }
    expected.into_iter().find_map(|(id, row)| {
        let Some(found) = table.get(id) else {
            return Some(format!("row {id} was committed and is not there"));
        };
        row.difference(found)
            .map(|what| format!("row {id}, {what}"))
    })
}

impl Ledger {
    pub(crate) fn new(writer: u64) -> Ledger {
        Ledger {
            next_id: writer as i64 * IDS,
            ..Ledger::default()
        }
    }

    /// The transaction is committed.
    pub(crate) fn apply(&mut self, transaction: Transaction) {
        for (id, row) in transaction.changes {
            match row {
                Some(row) => self.rows.insert(id, row),
                None => self.rows.remove(&id),
            };
        }
    }
}
