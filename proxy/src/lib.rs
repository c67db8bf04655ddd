//! Stands between an application and PostgreSQL: sockets, sessions, interception.
//!
//! One client connection has one backend connection. Messages that concern no offloaded column are
//! forwarded as the bytes that came (S6); values over their column's threshold are replaced by
//! references on the way in, references by values on the way out.
//!
//! - [`Proxy`] accepts and drains sessions.
//! - `tls` and `upstream` encrypt what clients and the server wish to have encrypted.
//! - `startup` answers the encryption preamble, relays cancel requests and the start-up packet.
//! - `session` follows the protocol: what was asked, what was answered.
//! - `intercept` turns values into references and back.
//! - `catalog` knows, for each database, the `toastrack.*` types and the columns that use them.

mod catalog;
mod copy_locks;
mod detoast;
mod intercept;
mod listener;
mod metrics;
mod namesakes;
mod options;
mod server;
mod session;
mod startup;
mod tls;
mod unix_listener;
mod upstream;
mod workers;

pub use catalog::CatalogError;
pub use listener::{Proxy, ProxyError, Reload};
pub use metrics::{ColumnCounters, ColumnKey, InlineReason, Metrics};
pub use options::{
    ControlOptions, ProxyOptions, ServerAddress, Servers, Services, TargetSession, UnixListen,
};
pub use tls::{ListenTls, ListenTlsMode, ServerTls, ServerTlsMode, TlsError};
pub use upstream::Upstream;
