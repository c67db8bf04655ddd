//! DataRow: fields that hold references become the values.
//!
//! Promises: a row leaves here with every reference of its offloaded columns resolved, or not at all
//!           (S4); what is no reference stays as it came (S5).

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use toastrack_offload::{Identity, Reference, Store, StoreError};
use toastrack_value::array::Malformed;
use toastrack_value::encoding::{ClientEncoding, Untranslatable};
use toastrack_wire::EncodeError;
use toastrack_wire::backend::{DataRow, RowWriter};

use super::fields::{self, Found, Spelling, Values};
use crate::detoast::Detoaster;
use crate::metrics::{Metrics, add};
use crate::session::{Shape, ShapeColumn};

/// Why a row could not be given out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RowError {
    #[error("{0}")]
    Store(Arc<StoreError>),
    #[error("{0}")]
    Encoding(#[from] Untranslatable),
    #[error("a row with its values does not fit a message: {0}")]
    Message(#[from] EncodeError),
    #[error("an array that holds references cannot be read: {0}")]
    Array(Malformed),
    #[error("a value of the row was not fetched")]
    Unfetched,
}

impl RowError {
    /// The code that the client gets.
    pub(crate) fn sqlstate(&self) -> &'static str {
        match self {
            RowError::Store(error) => error.sqlstate(),
            RowError::Encoding(error) => error.sqlstate(),
            RowError::Message(_) => "54000",
            RowError::Array(_) | RowError::Unfetched => "XX001",
        }
    }
}

/// Values fetched for the rows at hand, beyond those that need no waiting.
pub(crate) type Fetched = HashMap<Identity, Result<Bytes, Arc<StoreError>>>;

/// What became of a row.
pub(crate) enum Resolution {
    /// It holds no reference: forward it as it came.
    Untouched,
    /// It was written with its values.
    Written,
    /// These must be fetched first.
    Missing(Vec<Reference>),
}

/// Resolves rows of one session.
pub(crate) struct Rows<'s> {
    pub(crate) store: &'s Store,
    pub(crate) detoaster: &'s Detoaster,
    pub(crate) metrics: &'s Metrics,
    pub(crate) encoding: ClientEncoding,
}

impl Rows<'_> {
    /// Writes the row with its values to `out`, or says what is missing.
    pub(crate) fn resolve(
        &self,
        row: &DataRow<'_>,
        shape: &Shape,
        fetched: &Fetched,
        out: &mut Vec<u8>,
    ) -> Result<Resolution, RowError> {
        let found = self.find(row, shape);
        if found.is_empty() {
            return Ok(Resolution::Untouched);
        }
        let mut values = Values::new();
        let mut missing = Vec::new();
        for reference in found.iter().flat_map(|(_, field)| field.references()) {
            let identity = reference.identity();
            let value = match fetched.get(&identity) {
                Some(Ok(value)) => Some(value.clone()),
                Some(Err(error)) => return Err(RowError::Store(Arc::clone(error))),
                None => self.detoaster.now(reference),
            };
            match value {
                Some(value) => {
                    values.insert(identity, value);
                }
                None => missing.push(*reference),
            }
        }
        if !missing.is_empty() {
            return Ok(Resolution::Missing(missing));
        }
        self.write(row, &found, &values, out)?;
        Ok(Resolution::Written)
    }

    /// The references of a row that need waiting, for rows that come behind the one at hand.
    pub(crate) fn missing(&self, row: &DataRow<'_>, shape: &Shape) -> Vec<Reference> {
        let found = self.find(row, shape);
        let references = found.iter().flat_map(|(_, field)| field.references());
        references
            .filter(|reference| self.detoaster.now(reference).is_none())
            .copied()
            .collect()
    }

    fn find<'c>(&self, row: &DataRow<'_>, shape: &'c Shape) -> Vec<(&'c ShapeColumn, Found)> {
        let mut columns = shape.columns.iter().peekable();
        let mut found = Vec::new();
        for (index, field) in row.fields().enumerate() {
            let Some(shape) = columns.next_if(|shape| shape.column.index == index) else {
                continue;
            };
            let column = &shape.column;
            let here = field.and_then(|field| {
                fields::find(self.store, column.kind, column.array, shape.binary, field)
            });
            found.extend(here.map(|here| (shape, here)));
        }
        found
    }

    fn write(
        &self,
        row: &DataRow<'_>,
        found: &[(&ShapeColumn, Found)],
        values: &Values,
        out: &mut Vec<u8>,
    ) -> Result<(), RowError> {
        let columns = u16::try_from(row.len()).unwrap_or(u16::MAX);
        let mut writer = RowWriter::begin(out, columns);
        let mut found = found.iter().peekable();
        for (index, field) in row.fields().enumerate() {
            match (
                found.next_if(|(shape, _)| shape.column.index == index),
                field,
            ) {
                (Some((shape, found)), Some(field)) => {
                    self.count(shape, found, values);
                    self.write_found(&mut writer, found, field, values)?;
                }
                (_, Some(field)) => writer.field(field)?,
                (_, None) => writer.null()?,
            }
        }
        writer.finish()?;
        Ok(())
    }

    fn write_found(
        &self,
        writer: &mut RowWriter<'_>,
        found: &Found,
        field: &[u8],
        values: &Values,
    ) -> Result<(), RowError> {
        let Found::Value(reference, Spelling::JsonbBinary) = found else {
            writer.field(&fields::written(found, field, values, self.encoding)?)?;
            return Ok(());
        };
        // In two pieces, so that a large value is not copied once more for one byte.
        let value = values
            .get(&reference.identity())
            .ok_or(RowError::Unfetched)?;
        let text = fields::spelled(value, reference.kind(), Spelling::Plain, self.encoding)?;
        writer.begin_field(text.len() + 1)?;
        writer.piece(&[1])?;
        writer.piece(&text)?;
        Ok(())
    }

    fn count(&self, shape: &ShapeColumn, found: &Found, values: &Values) {
        let references = found.references();
        add(&self.metrics.values_resolved, references.len() as u64);
        if let Some(source) = &shape.column.source {
            let lens = references
                .iter()
                .filter_map(|one| values.get(&one.identity()));
            add(&source.counters.values_resolved, references.len() as u64);
            add(
                &source.counters.bytes_resolved,
                lens.map(|value| value.len() as u64).sum(),
            );
        }
    }
}
