//! Compares this crate with a private Postgres, over thousands of generated and
//! hand-picked inputs.
//!
//! Whatever this crate answers must be what Postgres answers. Where it declines,
//! Postgres may accept; how often that may be is asserted too, so that a function
//! that always declines fails here.
//!
//! `TOASTRACK_TEST_SEED` sets the seed of the generators (default 1).

mod array;
mod bytea;
mod copy;
mod encoding;
mod generate;
mod json;
mod literal;
mod server;
