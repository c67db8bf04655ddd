//! The table that documents go to, and batches of rows into it.
//!
//! Rows are single-row inserts of one prepared statement, pipelined, so that it
//! is the same work for plain Postgres and through Toastrack.

use bytes::BufMut;
use futures::future::join_all;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{GenericClient, Statement};

use super::LoadError;
use super::document::{Content, Document};
use crate::table::TableName;

/// Rows on their way at once.
const BATCH_ROWS: usize = 64;
/// Bytes on their way at once, but for a single larger document.
const BATCH_BYTES: usize = 4 << 20;

/// The version byte of jsonb's binary format.
const JSONB_VERSION: u8 = 1;

/// Creates the table if there is none of that name.
///
/// # Errors
/// `Table` with the server's reason.
pub(crate) async fn create_table(
    client: &impl GenericClient,
    table: &TableName,
) -> Result<(), LoadError> {
    let statement = format!(
        "CREATE TABLE IF NOT EXISTS {table} (\
         id bigserial PRIMARY KEY, \
         path text NOT NULL, \
         kind text NOT NULL, \
         body text, \
         data jsonb, \
         raw bytea)"
    );
    client
        .batch_execute(&statement)
        .await
        .map_err(table_error(table))
}

/// Inserts documents through one client or transaction.
pub(crate) struct Inserter {
    statement: Statement,
    pending: Vec<Document>,
    pending_bytes: usize,
    counts: Counts,
}

/// What was inserted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) text: u64,
    pub(crate) json: u64,
    pub(crate) binary: u64,
    /// Bytes of the documents.
    pub(crate) bytes: u64,
}

impl Counts {
    pub(crate) fn rows(&self) -> u64 {
        self.text + self.json + self.binary
    }

    fn add(&mut self, content: &Content) {
        match content {
            Content::Text(_) => self.text += 1,
            Content::Json(_) => self.json += 1,
            Content::Binary(_) => self.binary += 1,
        }
        self.bytes += content.len() as u64;
    }
}

impl Inserter {
    /// Prepares the insert.
    ///
    /// # Errors
    /// `Table` when the table has not the columns `path`, `kind`, `body`, `data`, `raw`.
    pub(crate) async fn new(
        client: &impl GenericClient,
        table: &TableName,
    ) -> Result<Inserter, LoadError> {
        // The plain types are declared, since the columns may be of Toastrack's own.
        let statement = client
            .prepare_typed(
                &format!(
                    "INSERT INTO {table} (path, kind, body, data, raw) VALUES ($1, $2, $3, $4, $5)"
                ),
                &[Type::TEXT, Type::TEXT, Type::TEXT, Type::JSONB, Type::BYTEA],
            )
            .await
            .map_err(table_error(table))?;
        Ok(Inserter {
            statement,
            pending: Vec::new(),
            pending_bytes: 0,
            counts: Counts::default(),
        })
    }

    /// Takes a document; inserts once a batch is full.
    ///
    /// # Errors
    /// `Insert` names the first document that the server refused.
    pub(crate) async fn add(
        &mut self,
        client: &impl GenericClient,
        document: Document,
    ) -> Result<(), LoadError> {
        let len = document.content.len();
        if self.pending.len() >= BATCH_ROWS || self.pending_bytes + len > BATCH_BYTES {
            self.flush(client).await?;
        }
        self.pending_bytes += len;
        self.pending.push(document);
        Ok(())
    }

    /// Inserts what is pending.
    ///
    /// # Errors
    /// As [`add`](Inserter::add).
    pub(crate) async fn flush(&mut self, client: &impl GenericClient) -> Result<(), LoadError> {
        let statement = &self.statement;
        let inserts = self.pending.iter().map(|document| async move {
            let (body, data, raw) = match &document.content {
                Content::Text(text) => (Some(text.as_str()), None, None),
                Content::Json(text) => (None, Some(JsonbText(text)), None),
                Content::Binary(bytes) => (None, None, Some(bytes.as_slice())),
            };
            let kind = document.content.kind();
            client
                .execute(statement, &[&document.path, &kind, &body, &data, &raw])
                .await
                .map_err(|source| LoadError::Insert {
                    document: document.path.clone(),
                    source,
                })
        });
        // In order, so that the first error is the one that made the others fail.
        for inserted in join_all(inserts).await {
            inserted?;
        }
        for document in self.pending.drain(..) {
            self.counts.add(&document.content);
        }
        self.pending_bytes = 0;
        Ok(())
    }

    /// What was inserted so far.
    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }
}

/// JSON text sent as jsonb just as it stands, so that the server reads every digit of it.
#[derive(Debug)]
struct JsonbText<'a>(&'a str);

impl ToSql for JsonbText<'_> {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.put_u8(JSONB_VERSION);
        out.put_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::JSONB
    }

    to_sql_checked!();
}

fn table_error(table: &TableName) -> impl FnOnce(tokio_postgres::Error) -> LoadError {
    let table = table.to_string();
    move |source| LoadError::Table { table, source }
}
