//! Prepared statements and portals as the proxy remembers them.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use toastrack_offload::ValueKind;
use toastrack_sql::{CopyOut, EditMap};

use crate::catalog::Column;

/// A prepared statement.
pub(crate) struct Statement {
    /// Parameters that go straight into offloaded columns.
    pub(crate) sites: Vec<ParamSite>,
    /// The parameter types that the client declared; 0 leaves one to the server.
    pub(crate) declared: Vec<u32>,
    /// Whether every execution returns the same columns: not so for FETCH, EXECUTE and their like.
    pub(crate) fixed_shape: bool,
    /// The result columns, once the server described them.
    pub(crate) columns: OnceLock<Arc<Columns>>,
    /// A Describe is under way.
    pub(crate) describing: AtomicBool,
    /// COPY ... TO STDOUT in the text.
    pub(crate) copies: Vec<CopyOut>,
    /// Where positions in the forwarded text stand in the client's, if the two differ.
    pub(crate) edits: Option<Arc<EditMap>>,
}

impl Statement {
    /// A statement of which nothing is known: nothing is offloaded, each portal is described.
    pub(crate) fn unknown(declared: Vec<u32>) -> Statement {
        Statement {
            sites: Vec::new(),
            declared,
            fixed_shape: false,
            columns: OnceLock::new(),
            describing: AtomicBool::new(false),
            copies: Vec::new(),
            edits: None,
        }
    }
}

/// A parameter that is assigned to an offloaded column.
pub(crate) struct ParamSite {
    /// From 0.
    pub(crate) index: usize,
    pub(crate) column: Arc<Column>,
    /// The type that the parameter has for the client.
    pub(crate) visible_type: u32,
}

/// A bound statement.
pub(crate) struct Portal {
    /// None when it was not bound through this session's Bind, or from a statement that is unknown.
    pub(crate) statement: Option<Arc<Statement>>,
    /// Result formats as in Bind; None when the message was too long to look into.
    pub(crate) formats: Option<Box<[i16]>>,
    pub(crate) shape: OnceLock<Arc<Shape>>,
    pub(crate) describing: AtomicBool,
    /// How many messages that end an implicit transaction were sent before it was bound.
    pub(crate) bound_after: u64,
}

impl Portal {
    pub(crate) fn unknown() -> Portal {
        Portal {
            statement: None,
            formats: None,
            shape: OnceLock::new(),
            describing: AtomicBool::new(false),
            bound_after: 0,
        }
    }

    /// The result columns with their formats, when all of it is known.
    pub(crate) fn shape(&self) -> Option<Arc<Shape>> {
        if let Some(shape) = self.shape.get() {
            return Some(Arc::clone(shape));
        }
        let statement = self
            .statement
            .as_ref()
            .filter(|statement| statement.fixed_shape)?;
        let columns = statement.columns.get()?;
        let formats = self.formats.as_ref()?;
        let shape = Arc::new(columns.with_formats(formats));
        Some(Arc::clone(self.shape.get_or_init(|| shape)))
    }

    /// Whether the server must be asked for the result columns before an Execute.
    pub(crate) fn needs_describe(&self) -> bool {
        if self.shape.get().is_some() || self.describing.load(Ordering::Relaxed) {
            return false;
        }
        let Some(statement) = self
            .statement
            .as_ref()
            .filter(|statement| statement.fixed_shape)
        else {
            return true;
        };
        let known =
            statement.columns.get().is_some() || statement.describing.load(Ordering::Relaxed);
        !(known && self.formats.is_some())
    }
}

/// The offloaded columns among the columns of a result.
#[derive(Default)]
pub(crate) struct Columns {
    pub(crate) offloaded: Vec<ResultColumn>,
}

impl Columns {
    fn with_formats(&self, formats: &[i16]) -> Shape {
        let format_of = |index: usize| match formats {
            [] => 0,
            [one] => *one,
            many => many.get(index).copied().unwrap_or(0),
        };
        Shape {
            columns: self
                .offloaded
                .iter()
                .map(|column| ShapeColumn {
                    column: column.clone(),
                    binary: format_of(column.index) == 1,
                })
                .collect(),
        }
    }
}

/// A result column whose fields may hold references.
#[derive(Clone)]
pub(crate) struct ResultColumn {
    /// From 0.
    pub(crate) index: usize,
    pub(crate) kind: ValueKind,
    /// An array of the type, not the type.
    pub(crate) array: bool,
    /// The table column it comes from, for its counters.
    pub(crate) source: Option<Arc<Column>>,
}

/// What to look at in each DataRow. Empty: rows are forwarded as they come.
#[derive(Default)]
pub(crate) struct Shape {
    /// By rising index.
    pub(crate) columns: Vec<ShapeColumn>,
}

/// A result column with the format that this portal asked for.
pub(crate) struct ShapeColumn {
    pub(crate) column: ResultColumn,
    pub(crate) binary: bool,
}
