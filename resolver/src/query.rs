//! The one statement: `select toastrack.resolve('<text reference>')`.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{BufMut, BytesMut};
use futures::Sink;
use futures::stream;
use pgwire::api::portal::Format;
use pgwire::api::query::SimpleQueryHandler;
use pgwire::api::results::{FieldInfo, QueryResponse, Response};
use pgwire::api::store::PortalStore;
use pgwire::api::{ClientInfo, ClientPortalStore, Type};
use pgwire::error::{ErrorInfo, PgWireError, PgWireResult};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::data::DataRow;

use crate::counters::Counters;
use crate::lookup::{Answer, Lookup};

/// SQLSTATE for an argument that is no reference of this store: the caller has ordinary data in
/// its hands and returns it as it stands (S5).
const NOT_A_REFERENCE: &str = "TR001";

/// Answers simple queries.
pub(crate) struct Queries {
    lookup: Arc<dyn Lookup>,
    counters: Arc<Counters>,
    schema: Arc<Vec<FieldInfo>>,
}

impl Queries {
    pub(crate) fn new(lookup: Arc<dyn Lookup>, counters: Arc<Counters>) -> Queries {
        let format = Format::UnifiedText.format_for(0);
        let field = FieldInfo::new("resolve".to_owned(), None, None, Type::BYTEA, format)
            .with_type_size(-1);
        Queries {
            lookup,
            counters,
            schema: Arc::new(vec![field]),
        }
    }

    async fn answer(&self, query: &str) -> PgWireResult<Response> {
        let Some(argument) = argument(query) else {
            return Err(error(
                "0A000",
                "only select toastrack.resolve('<reference>') is answered here",
            ));
        };
        match self.lookup.resolve(argument.as_bytes()).await {
            Answer::Value(value) => {
                Counters::add(&self.counters.values_resolved, 1);
                Counters::add(&self.counters.bytes_resolved, value.len() as u64);
                let row = bytea_row(&value)?;
                let rows = stream::iter([Ok(row)]);
                let response = QueryResponse::new(Arc::clone(&self.schema), rows);
                Ok(Response::Query(response))
            }
            Answer::NotAReference => {
                Counters::add(&self.counters.not_references, 1);
                Err(error(NOT_A_REFERENCE, "not a reference of this store"))
            }
            Answer::Failed { sqlstate, message } => {
                Counters::add(&self.counters.errors, 1);
                tracing::error!(sqlstate, message, "reference not resolved");
                Err(error(sqlstate, &message))
            }
        }
    }
}

#[async_trait]
impl SimpleQueryHandler for Queries {
    async fn do_query<C>(&self, _client: &mut C, query: &str) -> PgWireResult<Vec<Response>>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        Ok(vec![self.answer(query).await?])
    }
}

/// The literal in the one statement that is understood; `None` for any other.
///
/// The literal is not unescaped: with a quote or a backslash in it the statement is another one.
fn argument(query: &str) -> Option<&str> {
    let query = query.strip_suffix(';').unwrap_or(query);
    let argument = query
        .strip_prefix("select toastrack.resolve('")?
        .strip_suffix("')")?;
    match argument.contains(['\'', '\\']) {
        true => None,
        false => Some(argument),
    }
}

/// A row of one bytea column in text format: `\x` and two digits for each byte.
fn bytea_row(value: &[u8]) -> PgWireResult<DataRow> {
    let text_len = 2 + 2 * value.len();
    let field_len =
        i32::try_from(text_len).map_err(|_| error("54000", "the value is too long for one row"))?;
    let mut data = BytesMut::with_capacity(4 + text_len);
    data.put_i32(field_len);
    data.put_slice(b"\\x");
    let digits_at = data.len();
    data.resize(digits_at + 2 * value.len(), 0);
    faster_hex::hex_encode(value, &mut data[digits_at..])
        .map_err(|_| error("XX000", "the value could not be written as hex"))?;
    Ok(DataRow::new(data, 1))
}

fn error(sqlstate: &str, message: &str) -> PgWireError {
    PgWireError::UserError(Box::new(ErrorInfo::new(
        "ERROR".to_owned(),
        sqlstate.to_owned(),
        message.to_owned(),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves that exactly one form of statement is understood.
    #[test]
    fn one_statement_is_understood() {
        let understood = [
            ("select toastrack.resolve('toast:AA-_')", "toast:AA-_"),
            ("select toastrack.resolve('x');", "x"),
            ("select toastrack.resolve('')", ""),
        ];
        for (query, expected) in understood {
            assert_eq!(argument(query), Some(expected), "{query}");
        }
        for other in [
            "",
            "select 1",
            "SELECT toastrack.resolve('x')",
            "select toastrack.resolve('x'), 1",
            "select toastrack.resolve('x') union select toastrack.resolve('y')",
            "select toastrack.resolve('x'); drop table t",
            "select toastrack.resolve('x');;",
            "select toastrack.resolve('a''b')",
            "select toastrack.resolve('a\\')",
            "select toastrack.resolve(E'x')",
            "select toastrack.resolve(x)",
            "select toastrack.resolve('x",
            " select toastrack.resolve('x')",
        ] {
            assert_eq!(argument(other), None, "{other}");
        }
    }

    /// Proves the row's bytes, for every value of a byte.
    #[test]
    fn rows_are_hex_text() {
        assert_eq!(&bytea_row(b"").unwrap().data[..], b"\0\0\0\x02\\x");
        let every: Vec<u8> = (0..=255).collect();
        let row = bytea_row(&every).unwrap();
        let digits: String = every.iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = [&514u32.to_be_bytes()[..], b"\\x", digits.as_bytes()].concat();
        assert_eq!(row.data, expected);
        assert_eq!(row.field_count, 1);
    }
}
