//! Which parameters and literals of a statement go straight into offloaded columns.
//!
//! Pure: a text goes in, a plan comes out. A wrong guess is harmless by design,
//! since types decide what a value means (S1); a changed text is always the
//! same statement with the same meaning.

mod analysis;
mod analyzer;
mod cache;
mod copy_in;
mod copy_out;
mod edit;
mod glance;
mod mentions;
mod plan;
mod reserved;
mod scan;
mod sites;
mod tables;
mod tokens;

pub use analyzer::Analyzer;
pub use copy_in::{CopyFormat, CopyIn, CopyInLayout, copies_in, may_copy_in};
pub use copy_out::{CopyOut, copies_out};
pub use edit::{EditMap, apply_edits};
pub use glance::{changes_names, row_shape};
pub use plan::{Edit, LiteralKind, LiteralSite, ParamSite, QueryPlan, RowShape, StatementPlan};
pub use tables::{ColumnDef, Kind, OffloadedColumn, TableDef, Tables};
