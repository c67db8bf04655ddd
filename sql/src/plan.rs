//! What the analysis hands to the proxy.

use std::borrow::Cow;
use std::ops::Range;

use crate::tables::Kind;

/// The plan for one `Parse` message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementPlan {
    /// Parameters assigned straight to offloaded columns, ascending by number,
    /// each number once.
    pub params: Vec<ParamSite>,
    /// Changes of the text that go with `params`, ascending and disjoint. An
    /// edit belongs to one parameter and is made exactly when that parameter
    /// is declared as its `toastrack.*` type.
    pub edits: Vec<Edit>,
    /// Whether the result columns may differ between portals.
    pub row_shape: RowShape,
    /// `false` when the text may assign to an offloaded table and could not
    /// be parsed; the plan is then empty.
    pub understood: bool,
}

impl StatementPlan {
    /// About what it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<StatementPlan>()
            + self.params.len() * size_of::<ParamSite>()
            + self.edits.len() * size_of::<Edit>()
    }
}

/// A parameter that is assigned straight to an offloaded column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParamSite {
    /// 1-based: the `1` of `$1`.
    pub number: u16,
    /// The caller's number for the column; for a parameter assigned to several
    /// columns of one kind, the first of them in the text.
    pub column: u32,
    /// The kind of the column: declare the parameter as `kind.toastrack_name()`.
    pub kind: Kind,
    /// What plain Postgres would infer, for `ParameterDescription`. Differs
    /// from `kind` only where the statement casts between text and varchar.
    pub client_kind: Kind,
    /// The parameter occurs nowhere else, and the statement is not EXPLAIN
    /// (which prints values). When `false`, the value is best left inline: another
    /// use could compose text from it (`format('%s', $1)`). The parameter is
    /// declared as its `toastrack.*` type all the same, since its uses would
    /// otherwise disagree about its type (42P08).
    pub only_assigned: bool,
}

/// A replacement in a statement's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Bytes of the original text.
    pub range: Range<usize>,
    /// What stands there instead.
    pub replacement: Cow<'static, str>,
    /// The parameter whose cast is changed; `None` for the edit of a literal.
    pub param: Option<u16>,
}

/// Whether executions of a prepared statement can differ in their result columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowShape {
    /// SELECT, INSERT, UPDATE, DELETE, MERGE, VALUES, TABLE, WITH: Postgres
    /// itself refuses to execute the statement once its columns have changed.
    Fixed,
    /// Anything else: FETCH, EXECUTE, EXPLAIN, SHOW, CALL, utility statements.
    PerPortal,
}

/// The plan for one simple `Query` message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueryPlan {
    /// Literals assigned straight to offloaded columns, ascending, disjoint.
    pub literals: Vec<LiteralSite>,
    /// How many statements the text has, empty ones not counted. 0 when it
    /// mentions no offloaded table (it is not even scanned then) or was not
    /// understood.
    pub statement_count: usize,
    /// `false` when the text mentions an offloaded table and could not be
    /// scanned, or had to be parsed and could not be; the plan is then empty.
    pub understood: bool,
}

/// A string literal that is assigned straight to an offloaded column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiteralSite {
    /// The literal token in the original text, with prefix, quotes and tags.
    pub range: Range<usize>,
    /// What is between the quotes or tags, in its source spelling.
    pub body: Range<usize>,
    /// The literal with its direct cast, if any: what `edit` replaces.
    pub replace_range: Range<usize>,
    /// The caller's number for the column.
    pub column: u32,
    /// The kind of the column.
    pub kind: Kind,
    /// How `body` is to be decoded.
    pub literal: LiteralKind,
}

impl LiteralSite {
    /// Puts `'<value>'::toastrack.<kind>` in the literal's place.
    ///
    /// `value` is what the literal is to mean, a reference as a rule.
    pub fn edit(&self, value: &str) -> Edit {
        let value = value.replace('\'', "''");
        let name = self.kind.toastrack_name();
        Edit {
            range: self.replace_range.clone(),
            replacement: Cow::Owned(format!("'{value}'::{name}")),
            param: None,
        }
    }
}

/// How a literal spells its value. All of this presumes `standard_conforming_strings = on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiteralKind {
    /// `'it''s'`: doubled quotes.
    Plain,
    /// `E'it\'s'`: doubled quotes and backslash escapes.
    Escape,
    /// `$tag$it's$tag$`: verbatim.
    Dollar,
}
