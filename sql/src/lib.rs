//! Which parameters and literals of a statement go straight into offloaded columns.
//!
//! Pure: a text goes in, a plan comes out. A wrong guess is harmless by design,
//! since types decide what a value means (S1); a changed text is always the
//! same statement with the same meaning.

mod analyzer;
mod edit;
mod mentions;
mod plan;
mod tables;

pub use analyzer::Analyzer;
pub use edit::{EditMap, apply_edits};
pub use plan::{Edit, LiteralKind, LiteralSite, ParamSite, QueryPlan, RowShape, StatementPlan};
pub use tables::{ColumnDef, Kind, OffloadedColumn, TableDef, Tables};
