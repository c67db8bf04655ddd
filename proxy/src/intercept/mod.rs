//! Values into references on the way in, references into values on the way out.

mod bind;
mod copy;
mod copy_in;
mod copy_lines;
mod ddl;
mod fields;
mod prepare;
mod query;
mod row;

pub(crate) use bind::offload_params;
pub(crate) use copy::{CopyReader, CopyRows};
pub(crate) use copy_in::{CopyInRows, CopyTarget, Passed};
pub(crate) use ddl::begins_with_ddl;
pub(crate) use prepare::Sink;
pub(crate) use query::{OffloadedQuery, offload_literals};
pub(crate) use row::{Fetched, Resolution, RowError, Rows};
