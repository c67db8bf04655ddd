//! The admin HTTP API: liveness, readiness, metrics, statistics
