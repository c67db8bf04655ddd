//! One connection that inserts, updates and deletes until it is cut off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::try_join_all;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error};

use crate::model::{IDS, Ledger, Row, Transaction, read_row};
use crate::random::Random;
use crate::values::{Column, Value};
use crate::wire::{Field, JSONB_VERSION};

/// Rows that a writer has at most, or a few more.
const MOST_ROWS: usize = 24;

/// A session and what it must find.
pub(crate) struct Writer {
    pub(crate) client: Client,
    pub(crate) ledger: Ledger,
    pub(crate) random: Random,
    /// Set before the sidecar is killed or stopped: from then on a lost connection is no failure.
    pub(crate) ending: Arc<AtomicBool>,
    pub(crate) acknowledged: u64,
}

/// What a writer leaves.
pub(crate) struct Written {
    pub(crate) ledger: Ledger,
    /// Transactions whose commit was acknowledged.
    pub(crate) acknowledged: u64,
    /// What the server or the proxy reported, a connection lost too early, or a wrong value.
    pub(crate) ended: Result<(), String>,
}

/// How the statements of a transaction are sent.
#[derive(Clone, Copy)]
enum Manner {
    /// One statement that commits by itself.
    Alone,
    /// BEGIN, one after the other, COMMIT or ROLLBACK.
    InTurn { commit: bool },
    /// BEGIN, all at once, COMMIT.
    Pipelined,
    /// One text with literals for all, in the simple protocol.
    OneText,
}

impl Writer {
    /// Writes until the connection is lost.
    pub(crate) async fn run(mut self) -> Written {
        let ended = loop {
            if let Err(error) = self.transaction().await {
                break self.judge(&error);
            }
            match self.read_one().await {
                Ok(None) => {}
                Ok(Some(wrong)) => break Err(wrong),
                Err(error) => break self.judge(&error),
            }
        };
        Written {
            ledger: self.ledger,
            acknowledged: self.acknowledged,
            ended,
        }
    }

    fn judge(&self, error: &Error) -> Result<(), String> {
        match error.as_db_error() {
            // An idle session may be told that the sidecar stops.
            Some(error) if error.code().code() == "57P01" && self.ending() => Ok(()),
            Some(error) => Err(format!("{} ({})", error.message(), error.code().code())),
            None if self.ending() => Ok(()),
            None => Err(format!("connection lost: {error}")),
        }
    }

    fn ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    async fn transaction(&mut self) -> Result<(), Error> {
        let manner = match self.random.below(10) {
            0..=3 => Manner::Alone,
            4..=5 => Manner::InTurn { commit: true },
            6 => Manner::InTurn { commit: false },
            7..=8 => Manner::Pipelined,
            _ => Manner::OneText,
        };
        let count = match manner {
            Manner::Alone => 1,
            _ => self.random.within(1, 5),
        };
        self.ledger.begun += 1;
        let transaction = self.plan(count);
        let statements: Vec<Statement> = transaction
            .changes
            .iter()
            .map(|(id, row)| {
                Statement::new(
                    *id,
                    self.ledger.rows.get(id),
                    row.as_ref(),
                    &mut self.random,
                )
            })
            .collect();
        let client = &self.client;
        match manner {
            Manner::Alone => {
                self.ledger.doubt = Some(transaction);
                statements[0].execute(client).await?;
            }
            Manner::InTurn { commit } => {
                client.batch_execute("begin").await?;
                for statement in &statements {
                    statement.execute(client).await?;
                }
                if !commit {
                    return client.batch_execute("rollback").await;
                }
                self.ledger.doubt = Some(transaction);
                client.batch_execute("commit").await?;
            }
            Manner::Pipelined => {
                client.batch_execute("begin").await?;
                try_join_all(statements.iter().map(|statement| statement.execute(client))).await?;
                self.ledger.doubt = Some(transaction);
                client.batch_execute("commit").await?;
            }
            Manner::OneText => {
                let texts: Vec<String> = statements.iter().map(Statement::as_text).collect();
                self.ledger.doubt = Some(transaction);
                client.batch_execute(&texts.join("; ")).await?;
            }
        }
        if let Some(transaction) = self.ledger.doubt.take() {
            self.ledger.apply(transaction);
            self.acknowledged += 1;
        }
        Ok(())
    }

    /// Changes to `count` different rows.
    fn plan(&mut self, count: u64) -> Transaction {
        let txn = self.ledger.begun;
        let mut changes: Vec<(i64, Option<Row>)> = Vec::new();
        for _ in 0..count {
            let random = &mut self.random;
            let free: Vec<i64> = self
                .ledger
                .rows
                .keys()
                .filter(|id| !kept(**id) && !changes.iter().any(|(changed, _)| changed == *id))
                .copied()
                .collect();
            let full = self.ledger.rows.len() + changes.len() >= MOST_ROWS;
            if free.is_empty() || !full && random.percent(40) {
                let values = Column::ALL.map(|column| value(column, random));
                self.ledger.next_id += 1;
                changes.push((self.ledger.next_id, Some(Row { txn, values })));
            } else {
                let id = free[random.below(free.len() as u64) as usize];
                let delete = random.percent(15);
                let row = (!delete).then(|| {
                    let mut values = self.ledger.rows[&id].values.clone();
                    let chosen = random.within(1, 8);
                    for (n, column) in Column::ALL.into_iter().enumerate() {
                        if chosen >> n & 1 == 1 {
                            values[n] = value(column, random);
                        }
                    }
                    Row { txn, values }
                });
                changes.push((id, row));
            }
        }
        Transaction { txn, changes }
    }

    /// Reads a row back in the session that wrote it; what is wrong with it.
    async fn read_one(&mut self) -> Result<Option<String>, Error> {
        let rows = &self.ledger.rows;
        if rows.is_empty() || !self.random.percent(20) {
            return Ok(None);
        }
        let nth = self.random.below(rows.len() as u64) as usize;
        let (id, row) = rows.iter().nth(nth).unwrap();
        let found = read_row(&self.client, *id).await?;
        Ok(match found {
            None => Some(format!("row {id} was committed and is not there")),
            Some(found) => row
                .difference(&found)
                .map(|what| format!("row {id} as read by its writer, {what}")),
        })
    }
}

/// A few of the first rows are never touched again, so that the oldest segments stay in use.
fn kept(id: i64) -> bool {
    id % 4 == 0 && id % IDS < 32
}

fn value(column: Column, random: &mut Random) -> Option<Value> {
    (!random.percent(5)).then(|| Value::any(column, random))
}

/// One statement with its values.
struct Statement {
    verb: Verb,
    id: i64,
    txn: i64,
    assigned: Vec<(Column, Option<Value>)>,
    /// With literals, in the simple protocol.
    simple: bool,
}

enum Verb {
    Insert,
    Update,
    Delete,
}

impl Statement {
    /// What makes `old` into `new`.
    fn new(id: i64, old: Option<&Row>, new: Option<&Row>, random: &mut Random) -> Statement {
        let verb = match (old, new) {
            (_, None) => Verb::Delete,
            (None, _) => Verb::Insert,
            (Some(_), _) => Verb::Update,
        };
        let same = |n: usize, value: &Option<Value>| {
            let old = old.and_then(|row| row.values[n].as_ref());
            match (old, value) {
                (Some(old), Some(value)) => old.bytes == value.bytes,
                (None, None) => true,
                _ => false,
            }
        };
        let values = new.map(|row| row.values.clone());
        let assigned = values
            .into_iter()
            .flat_map(|values| Column::ALL.into_iter().zip(values))
            .enumerate()
            .filter(|(n, (_, value))| old.is_none() || !same(*n, value))
            .map(|(_, assignment)| assignment)
            .collect();
        Statement {
            verb,
            id,
            txn: new.map_or(0, |row| row.txn),
            assigned,
            simple: random.percent(25),
        }
    }

    async fn execute(&self, client: &Client) -> Result<(), Error> {
        if self.simple {
            return client.batch_execute(&self.as_text()).await;
        }
        let fields: Vec<Option<Field>> = self
            .assigned
            .iter()
            .map(|(column, value)| value.as_ref().map(|value| parameter(*column, value)))
            .collect();
        let mut params: Vec<&(dyn ToSql + Sync)> = vec![&self.id];
        if !matches!(self.verb, Verb::Delete) {
            params.push(&self.txn);
        }
        params.extend(fields.iter().map(|field| field as &(dyn ToSql + Sync)));
        let text = self.text("$1", "$2", |n, _| format!("${}", n + 3));
        client.execute(&text, &params).await.map(drop)
    }

    fn as_text(&self) -> String {
        self.text(&self.id.to_string(), &self.txn.to_string(), |_, value| {
            value.map_or("null".to_owned(), Value::literal)
        })
    }

    fn text(
        &self,
        id: &str,
        txn: &str,
        written: impl Fn(usize, Option<&Value>) -> String,
    ) -> String {
        let assigned = self.assigned.iter().enumerate();
        let each = assigned.map(|(n, (column, value))| (column.name(), written(n, value.as_ref())));
        match self.verb {
            Verb::Delete => format!("delete from docs where id = {id}"),
            Verb::Insert => {
                let (names, values): (Vec<_>, Vec<_>) = each.unzip();
                format!(
                    "insert into docs(id, txn, {}) values ({id}, {txn}, {})",
                    names.join(", "),
                    values.join(", ")
                )
            }
            Verb::Update => {
                let set: String = each
                    .map(|(name, value)| format!(", {name} = {value}"))
                    .collect();
                format!("update docs set txn = {txn}{set} where id = {id}")
            }
        }
    }
}

fn parameter(column: Column, value: &Value) -> Field {
    let sent = value.as_sent();
    Field(match column {
        Column::Data => [&[JSONB_VERSION], &sent[..]].concat(),
        Column::Body | Column::Raw => sent,
    })
}
