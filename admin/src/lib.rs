//! The admin HTTP API: liveness, readiness, metrics, statistics.
//!
//! Owns:       the admin listener, its routes and the shapes of its answers.
//! Promises:   nothing but `/healthz`, `/readyz` (its status) and the API description answers
//!             without the bearer token; no route changes anything.
//! Fails:      every error is problem JSON (RFC 9457), whatever went wrong.
//! Proof:      tests/http.rs, tests/documents.rs
//!
//! This crate knows nothing of the proxy or the store: whoever runs them implements [`Source`] and
//! hands it to [`Admin::bind`].

mod metrics;
mod problem;
mod readiness;
mod routes;
mod server;
mod stats;
mod token;

pub use metrics::{METRICS, Metric, MetricKind, encode};
pub use readiness::{Check, Readiness, Source};
pub use routes::{OPENAPI_JSON, ROUTES, Route};
pub use server::Admin;
pub use stats::{
    CacheSection, ColumnStats, ProxySection, ResolverSection, SessionStats, Stats, StoreSection,
    StoreStatus, hit_rate, ratio,
};
pub use token::{Token, TokenError};
