//! Postgres values as bytes: pure functions, no I/O.
//!
//! Everything here answers one question: which bytes would plain PostgreSQL
//! print for these bytes? Where the answer is not certain the functions return
//! an error, and the caller leaves the value inline and lets Postgres judge it
//! (S2, S5). No input panics or makes a large allocation from a length that was
//! not checked (S9).
//!
//! | module | holds |
//! |---|---|
//! | [`json`] | canonical jsonb text, json validity |
//! | [`text`] | UTF-8 validity and character counts |
//! | [`bytea`] | bytea input and output text |
//! | [`array`](mod@array) | elements of arrays, in text and binary format |
//! | [`literal`] | SQL string literals: decode, quote, find the long ones |
//! | [`copy`] | fields of COPY rows, text and CSV |
//! | [`encoding`] | client encodings on the way out |

pub mod array;
pub mod bytea;
pub mod copy;
pub mod encoding;
pub mod json;
pub mod literal;
pub mod text;
