//! Through the proxy and straight to plain columns: every message the server sends must be the same.
//!
//! Two databases of one cluster hold tables of the same names and columns, one with the plain types,
//! one with the `toastrack.*` types behind the proxy. A statement runs on both, in many ways of
//! saying it in the protocol, and what comes back is compared byte for byte; `normalise` says what
//! is allowed to differ. `corpus/` holds the statements as data.

#[path = "../common/mod.rs"]
mod common;

mod copy;
mod cursors;
mod modes;
mod names;
mod normalise;
mod pair;
mod params;
mod pipelines;
mod scripts;
mod sizes;
mod start;
