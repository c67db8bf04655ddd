//! The schema `toastrack`: types, casts, operators, functions; install and column changes.
//!
//! Owns:       the SQL in `sql/` and what it leaves in a database.
//! Promises:   [`install`] and [`uninstall`] are idempotent and leave nothing half done; moving a column
//!             never rewrites its table.
//! Invariants: S1 (a reference stands only where its type is a toastrack type), S4, S5; `docs/invariants.md`.
//! Fails:      with an [`Error`] that says what to do; the transaction is rolled back.
//! Format:     `docs/format/reference-v1.md` and `docs/format/segment-v1.md`, read by `sql/0003_detoast.up.sql`.
//! Proof:      `tests/`, and `docs/semantics.md` names the test of each difference from plain columns.

mod catalog;
mod column;
mod error;
mod install;
mod kind;
mod migration;
mod offload;
mod plan;
mod preflight;
mod restore;
mod run;
mod settings;
mod state;
mod target;

pub use catalog::{Catalog, CatalogColumn, CatalogTable, CatalogType, catalog};
pub use error::{Error, Kind};
pub use install::{InstallReport, install, uninstall};
pub use kind::ColumnKind;
pub use migration::VERSION;
pub use offload::{plan_offload, run_offload};
pub use plan::{ColumnPlan, Direction};
pub use restore::{VERIFIED_COUNT, plan_restore, run_restore};
pub use run::RunOptions;
pub use settings::{DirectRead, ResolverAddress, ServerSettings, refresh_settings};
pub use state::{InstallState, state};
pub use target::{Target, quoted_name};
