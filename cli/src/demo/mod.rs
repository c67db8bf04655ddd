//! The parts of `toastrack demo`.
//!
//! - [`environment`]: a private server, and Toastrack in front of it.
//! - [`documents`]: real documents to load.
//! - [`run`]: loads, reads back, compares and measures.
//! - [`compare`]: two tables, row by row, byte for byte.
//! - [`figures`]: the table that is printed.

pub(crate) mod compare;
pub(crate) mod documents;
pub(crate) mod environment;
pub(crate) mod figures;
pub(crate) mod run;
