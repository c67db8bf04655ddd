//! Compares two tables of documents row by row, byte for byte, without holding either.

use std::pin::pin;

use futures::{Stream, TryStreamExt};
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, Error, Row, SimpleQueryMessage, SimpleQueryRow};

use crate::error::CommandError;

/// What a comparison found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub(crate) rows: u64,
    /// Rows that differ, or that only one side has.
    pub(crate) different: u64,
}

/// The bytes of a field, just as they came.
pub(crate) struct RawField<'a>(pub(crate) Option<&'a [u8]>);

impl<'a> FromSql<'a> for RawField<'a> {
    fn from_sql(
        _: &Type,
        raw: &'a [u8],
    ) -> Result<RawField<'a>, Box<dyn std::error::Error + Sync + Send>> {
        Ok(RawField(Some(raw)))
    }

    fn from_sql_null(_: &Type) -> Result<RawField<'a>, Box<dyn std::error::Error + Sync + Send>> {
        Ok(RawField(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// The documents of a table, in a fixed order.
pub(crate) fn select(table: &str) -> String {
    format!("SELECT id, path, kind, body, data, raw FROM {table} ORDER BY id")
}

/// A connection, and the table to read there.
pub(crate) type Side<'a> = (&'a Client, &'a str);

/// Compares what the same statement returns in the extended protocol: types of the
/// columns, and fields in binary format.
///
/// # Errors
/// `Database` when a side fails.
pub(crate) async fn compare_binary(
    left: Side<'_>,
    right: Side<'_>,
) -> Result<Comparison, CommandError> {
    let no_parameters: [&str; 0] = [];
    let statements = (select(left.1), select(right.1));
    let (left, right) = tokio::try_join!(
        left.0.query_raw(&statements.0, no_parameters),
        right.0.query_raw(&statements.1, no_parameters),
    )
    .map_err(read_error)?;
    compare(left, right, same_row).await
}

/// Compares what the same statement returns in the simple protocol: fields in text format.
///
/// # Errors
/// `Database` when a side fails.
pub(crate) async fn compare_text(
    left: Side<'_>,
    right: Side<'_>,
) -> Result<Comparison, CommandError> {
    let statements = (select(left.1), select(right.1));
    let (left, right) = tokio::try_join!(
        left.0.simple_query_raw(&statements.0),
        right.0.simple_query_raw(&statements.1),
    )
    .map_err(read_error)?;
    compare(rows_only(left), rows_only(right), same_text_row).await
}

/// Compares by a join in the server, which sees the values without the proxy.
///
/// # Errors
/// `Database` when the server cannot read a value.
pub(crate) async fn compare_sql(
    client: &Client,
    left: &str,
    right: &str,
) -> Result<Comparison, CommandError> {
    let statement = format!(
        "SELECT count(*), count(*) FILTER (WHERE \
         (l.path, l.kind) IS DISTINCT FROM (r.path, r.kind) \
         OR l.body IS DISTINCT FROM r.body::text \
         OR l.data IS DISTINCT FROM r.data::jsonb \
         OR l.raw IS DISTINCT FROM r.raw::bytea) \
         FROM {left} AS l FULL JOIN {right} AS r USING (id)"
    );
    let row = client
        .query_one(&statement, &[])
        .await
        .map_err(read_error)?;
    Ok(Comparison {
        rows: row.get::<_, i64>(0).unsigned_abs(),
        different: row.get::<_, i64>(1).unsigned_abs(),
    })
}

/// Leaves out what is no row: descriptions and command tags.
fn rows_only(
    messages: impl Stream<Item = Result<SimpleQueryMessage, Error>>,
) -> impl Stream<Item = Result<SimpleQueryRow, Error>> {
    messages.try_filter_map(|message| async move {
        Ok(match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        })
    })
}

/// Walks two results side by side.
async fn compare<R>(
    left: impl Stream<Item = Result<R, Error>>,
    right: impl Stream<Item = Result<R, Error>>,
    same: impl Fn(&R, &R) -> bool,
) -> Result<Comparison, CommandError> {
    let (mut left, mut right) = (pin!(left), pin!(right));
    let mut comparison = Comparison::default();
    loop {
        let (left, right) =
            tokio::try_join!(left.try_next(), right.try_next()).map_err(read_error)?;
        let equal = match (&left, &right) {
            (None, None) => return Ok(comparison),
            (Some(left), Some(right)) => same(left, right),
            _ => false,
        };
        comparison.rows += 1;
        if !equal {
            comparison.different += 1;
        }
    }
}

fn same_row(left: &Row, right: &Row) -> bool {
    left.len() == right.len()
        && (0..left.len()).all(|column| {
            let types = (
                left.columns()[column].type_(),
                right.columns()[column].type_(),
            );
            types.0 == types.1 && field(left, column) == field(right, column)
        })
}

fn field(row: &Row, column: usize) -> Option<&[u8]> {
    row.get::<_, RawField<'_>>(column).0
}

fn same_text_row(left: &SimpleQueryRow, right: &SimpleQueryRow) -> bool {
    left.len() == right.len() && (0..left.len()).all(|column| left.get(column) == right.get(column))
}

fn read_error(source: Error) -> CommandError {
    CommandError::database("read back")(source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;

    /// Differing rows and missing rows on either side are counted.
    #[tokio::test]
    async fn differences_are_counted() {
        for (left, right, rows, different) in [
            (vec![1, 2, 3], vec![1, 2, 3], 3, 0),
            (vec![1, 2, 3], vec![1, 5, 3], 3, 1),
            (vec![1, 2, 3], vec![1], 3, 2),
            (vec![], vec![1], 1, 1),
        ] {
            let left = stream::iter(left.into_iter().map(Ok));
            let right = stream::iter(right.into_iter().map(Ok));
            let found = compare(left, right, |a: &i32, b: &i32| a == b)
                .await
                .unwrap();
            assert_eq!(found, Comparison { rows, different });
        }
    }
}
