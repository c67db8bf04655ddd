//! What the admin API asks of the process it belongs to.

use serde::Serialize;

use crate::Stats;

/// The process as the admin API sees it.
///
/// Both methods are called on a blocking thread, at most a few at a time, once a request. They
/// should answer from memory within milliseconds; a request that waits longer than ten seconds is
/// answered with 503.
pub trait Source: Send + Sync + 'static {
    /// Whether new sessions would be served right now, and what that was judged by.
    fn readiness(&self) -> Readiness;

    /// A snapshot of every counter.
    fn stats(&self) -> Stats;
}

/// Whether new sessions would be served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Readiness {
    /// True when a new session would be served.
    pub ready: bool,
    /// What was looked at, in the order in which a person should read it.
    pub checks: Vec<Check>,
}

impl Readiness {
    /// Ready exactly when every check is.
    pub fn from_checks(checks: Vec<Check>) -> Readiness {
        Readiness {
            ready: checks.iter().all(|check| check.ok),
            checks,
        }
    }
}

/// One thing that readiness depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// A short fixed name such as `store` or `server`; also a metric label.
    pub name: String,
    /// True when nothing is wrong.
    pub ok: bool,
    /// What was observed, for a person. Never a value, a literal or a credential.
    pub detail: String,
}
