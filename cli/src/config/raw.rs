//! The configuration as the file spells it.
//!
//! Values keep their TOML type and unknown keys are collected, so that
//! validation can report every problem of a file at once. What each key means
//! stands at the field of the same name in [`super::Config`].

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Value;

/// Keys that no section knows, with their values.
pub(super) type Unknown = BTreeMap<String, Value>;

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawConfig {
    pub(super) listen: RawListen,
    pub(super) server: RawServer,
    pub(super) control: RawControl,
    pub(super) store: RawStore,
    pub(super) offload: RawOffload,
    pub(super) cache: RawCache,
    pub(super) resolver: RawResolver,
    pub(super) admin: RawAdmin,
    pub(super) limits: RawLimits,
    pub(super) log: RawLog,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}

/// `[listen]`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawListen {
    pub(super) address: Option<Value>,
    pub(super) unix_socket: Option<Value>,
    pub(super) unix_socket_mode: Option<Value>,
    pub(super) allow_remote: Option<Value>,
    pub(super) tls: RawListenTls,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}

/// `[listen.tls]`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawListenTls {
    pub(super) mode: Option<Value>,
    pub(super) certificate: Option<Value>,
    pub(super) key: Option<Value>,
    pub(super) client_ca: Option<Value>,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}

/// `[server]`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawServer {
    pub(super) address: Option<Value>,
    pub(super) addresses: Option<Value>,
    pub(super) target_session_attrs: Option<Value>,
    pub(super) allow_remote: Option<Value>,
    pub(super) tls: RawServerTls,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}

/// `[server.tls]`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawServerTls {
    pub(super) mode: Option<Value>,
    pub(super) ca: Option<Value>,
    pub(super) certificate: Option<Value>,
    pub(super) key: Option<Value>,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}

/// `[control]`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawControl {
    pub(super) user: Option<Value>,
    pub(super) password: Option<Value>,
    pub(super) password_file: Option<Value>,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}

/// `[store]`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawStore {
    pub(super) directory: Option<Value>,
    pub(super) segment_size: Option<Value>,
    pub(super) server_group: Option<Value>,
    pub(super) compression: Option<Value>,
    pub(super) min_saving_percent: Option<Value>,
    pub(super) dedup_entries: Option<Value>,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}

/// `[offload]`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawOffload {
    pub(super) threshold: Option<Value>,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}

/// `[cache]`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawCache {
    pub(super) size: Option<Value>,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}

/// `[resolver]`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawResolver {
    pub(super) listen: Option<Value>,
    pub(super) secret_file: Option<Value>,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}

/// `[admin]`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawAdmin {
    pub(super) address: Option<Value>,
    pub(super) token_file: Option<Value>,
    pub(super) allow_remote: Option<Value>,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}

/// `[limits]`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawLimits {
    pub(super) max_sessions: Option<Value>,
    pub(super) startup_timeout: Option<Value>,
    pub(super) drain_timeout: Option<Value>,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}

/// `[log]`
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RawLog {
    pub(super) level: Option<Value>,
    pub(super) format: Option<Value>,
    #[serde(flatten)]
    pub(super) unknown: Unknown,
}
