//! Prepared statements and portals as the proxy remembers them.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use toastrack_offload::ValueKind;
use toastrack_sql::{CopyIn, CopyOut, EditMap};

use super::asked::Asked;
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
    /// The segment (see [`Segment`]) in which a Describe of it is under way.
    pub(crate) described_in: Segment,
    /// The segment in which it was parsed.
    pub(crate) parsed_in: u64,
    /// The server said ParseComplete.
    pub(crate) confirmed: AtomicBool,
    /// COPY ... TO STDOUT in the text.
    pub(crate) copies: Vec<CopyOut>,
    /// The text is this COPY ... FROM STDIN, and worth a question.
    pub(crate) copy_in: Option<CopyIn>,
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
            described_in: Segment::default(),
            parsed_in: 0,
            confirmed: AtomicBool::new(false),
            copies: Vec::new(),
            copy_in: None,
            edits: None,
        }
    }
}

impl Statement {
    /// Whether a Bind that is sent in `segment` meets this statement, and not an older one of its
    /// name: after an error the server skips a Parse, but not what comes behind the next Sync.
    pub(crate) fn is_certain(&self, segment: u64) -> bool {
        self.parsed_in == segment || self.is_confirmed()
    }

    /// Whether the server has said that it has the statement.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.confirmed.load(Ordering::Relaxed)
    }
}

/// A stretch of messages between two that the server answers with ReadyForQuery, by its number from
/// 1; 0 is none. After an error the server skips to the end of a stretch at least: a message that was
/// sent in the same stretch as another one, behind it, is not run without it.
#[derive(Default)]
pub(crate) struct Segment(AtomicU64);

impl Segment {
    pub(crate) fn set(&self, segment: u64) {
        self.0.store(segment, Ordering::Relaxed);
    }

    pub(crate) fn clear(&self) {
        self.set(0);
    }

    fn is(&self, segment: u64) -> bool {
        self.0.load(Ordering::Relaxed) == segment
    }
}

/// A parameter that is assigned to an offloaded column.
pub(crate) struct ParamSite {
    /// From 0.
    pub(crate) index: usize,
    pub(crate) column: Arc<Column>,
    /// The type that the parameter has for the client.
    pub(crate) visible_type: u32,
    /// The parameter is used otherwise as well: its value stays inline, unless it would be read as a
    /// reference.
    pub(crate) used_elsewhere: bool,
}

/// A bound statement.
pub(crate) struct Portal {
    /// None when it was not bound through this session's Bind, or from a statement that is unknown.
    pub(crate) statement: Option<Arc<Statement>>,
    /// Result formats as in Bind; None when the message was too long to look into.
    pub(crate) formats: Option<Box<[i16]>>,
    /// As the server last described it.
    pub(crate) shape: Mutex<Option<Arc<Shape>>>,
    /// The segment in which a Describe of it is under way, or was.
    pub(crate) described_in: Segment,
    /// SQL cannot give another meaning to the unnamed portal, but can to a name (CLOSE, DECLARE).
    pub(crate) named: bool,
    /// How many messages that end an implicit transaction were sent before it was bound.
    pub(crate) bound_after: u64,
    /// The server said BindComplete.
    pub(crate) confirmed: AtomicBool,
    /// What was asked before it was last executed.
    pub(crate) asked: Mutex<Option<Arc<Asked>>>,
}

impl Portal {
    pub(crate) fn unknown() -> Portal {
        Portal {
            statement: None,
            formats: None,
            shape: Mutex::new(None),
            described_in: Segment::default(),
            named: true,
            bound_after: 0,
            confirmed: AtomicBool::new(false),
            asked: Mutex::default(),
        }
    }

    /// Whether the server has said that it has the portal.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.confirmed.load(Ordering::Relaxed)
    }

    /// The question before its last execution.
    pub(crate) fn asked(&self) -> Option<Arc<Asked>> {
        self.asked.lock().clone()
    }

    /// The result columns with their formats, when all of it is known.
    pub(crate) fn shape(&self) -> Option<Arc<Shape>> {
        let mut shape = self.shape.lock();
        if shape.is_some() {
            return shape.clone();
        }
        let statement = self
            .statement
            .as_ref()
            .filter(|statement| statement.fixed_shape)?;
        let columns = statement.columns.get()?;
        let formats = self.formats.as_ref()?;
        *shape = Some(Arc::new(columns.with_formats(formats)));
        shape.clone()
    }

    /// Whether the server must be asked for the result columns before an Execute in `segment`.
    pub(crate) fn needs_describe(&self, segment: u64) -> bool {
        if self.described_in.is(segment) {
            return false;
        }
        if self.named {
            return true;
        }
        if self.shape.lock().is_some() {
            return false;
        }
        let Some(statement) = self
            .statement
            .as_ref()
            .filter(|statement| statement.fixed_shape)
        else {
            return true;
        };
        let known = statement.columns.get().is_some() || statement.described_in.is(segment);
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
