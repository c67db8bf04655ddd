//! The configuration of `toastrack serve`.
//!
//! [`RawConfig`](raw::RawConfig) mirrors the file; [`Config`] holds validated
//! types. `check-config`, `print-config` and `serve` all go through
//! [`Config::load`], which reports every problem with its key. Every setting
//! is applied at start: changing one takes a restart. Only the files that
//! `[listen.tls]` and `[server.tls]` name are read again on SIGHUP.

mod parse;
mod print;
mod raw;
mod server;
mod source;
mod tls;
mod validate;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use source::{Disk, Source};

use toastrack_proxy::{ServerTls, TargetSession};

use crate::secret::Secret;

/// The validated configuration.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) listen: Listen,
    pub(crate) server: Server,
    pub(crate) control: Control,
    pub(crate) store: Store,
    pub(crate) offload: Offload,
    pub(crate) cache: Cache,
    pub(crate) resolver: Resolver,
    pub(crate) admin: Admin,
    pub(crate) limits: Limits,
    pub(crate) log: Log,
}

/// `[listen]`: where applications connect.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listen {
    /// `address`: IP and port. Default `127.0.0.1:6432`; port 0 takes a free one.
    /// Other than loopback only with `allow_remote`, or with TLS that is required.
    pub(crate) address: SocketAddr,
    /// `unix_socket`: a directory for a Unix socket beside it, named `.s.PGSQL.PORT`
    /// after the port of `address` as libpq looks for it; or the path of a file of
    /// such a name. At most 107 bytes. Default: none.
    pub(crate) unix_socket: Option<PathBuf>,
    /// `unix_socket_mode`: permissions of the socket in octal, at most `0777`; who may
    /// write may connect. Default `0700`: only the user that `serve` runs as.
    pub(crate) unix_socket_mode: u32,
    /// `allow_remote`: whether `address` may be reachable from elsewhere without TLS.
    /// Default false.
    pub(crate) allow_remote: bool,
    /// `[listen.tls]`
    pub(crate) tls: ListenTls,
}

/// `[listen.tls]`: TLS with applications, over TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenTls {
    /// `mode`: `off` declines it, `allow` leaves it to the client, `require` refuses
    /// sessions without. Default `off`.
    pub(crate) mode: TlsMode,
    /// `certificate`: PEM file, with the certificates that lead to the authority behind
    /// it. Needed unless `mode` is `off`.
    pub(crate) certificate: Option<PathBuf>,
    /// `key`: PEM file of its private key, not encrypted, which nobody else may read.
    /// Needed unless `mode` is `off`.
    pub(crate) key: Option<PathBuf>,
    /// `client_ca`: PEM file of authorities. With it every session needs a certificate of
    /// one of them, so `mode` has to be `require`. Default: none.
    pub(crate) client_ca: Option<PathBuf>,
}

/// Whether applications use TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsMode {
    Off,
    Allow,
    Require,
}

/// `[server]`: the Postgres server behind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Server {
    /// `address`: `host:port`, or the path of a Unix socket. Default `127.0.0.1:5432`.
    /// Other than loopback only with `allow_remote`, or with TLS that is required.
    /// Or `addresses`: several servers that are copies of one another, tried in order.
    pub(crate) addresses: Vec<ServerLocation>,
    /// `target_session_attrs`: which of them a session takes, as libpq names it: `any`
    /// (default), `read-write`, `read-only`, `primary`, `standby`, `prefer-standby`.
    pub(crate) target: TargetSession,
    /// `allow_remote`: whether the server may be on another machine without TLS.
    /// Default false.
    pub(crate) allow_remote: bool,
    /// `[server.tls]`: TLS with the server, over TCP. `mode` is libpq's sslmode:
    /// `disable` (default), `prefer`, `require`, `verify-ca`, `verify-full`; `ca` is its
    /// sslrootcert (needed to verify), `certificate` and `key` are its sslcert and sslkey.
    pub(crate) tls: ServerTls,
}

/// Where a Postgres server listens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ServerLocation {
    /// A host name or address, and a port.
    Tcp(String, u16),
    /// The socket file, for example `/var/run/postgresql/.s.PGSQL.5432`.
    Unix(PathBuf),
}

/// `[control]`: the connections that read the catalog.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Control {
    /// `user`: a role that may connect to every database with offloaded columns.
    /// Default `postgres`.
    pub(crate) user: String,
    /// `password`, or the first line of the file `password_file`; at most one of
    /// the two. Default: none.
    pub(crate) password: Option<Secret>,
    /// `password_file`, kept to be printed.
    pub(crate) password_file: Option<PathBuf>,
}

/// `[store]`: the chunk store.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Store {
    /// `directory`: made when missing, for the store alone; on a disk that survives
    /// power loss. Default `/var/lib/toastrack/store`.
    pub(crate) directory: PathBuf,
    /// `segment_size`: bytes, 64 KiB to 4 GiB in steps of 4 KiB, default 256 MiB. Smaller
    /// segments are given back to the disk sooner, larger ones are switched less often.
    pub(crate) segment_size: u64,
    /// `server_group`: the group of the server's operating-system user. Segments
    /// become readable by it, and the server then reads uncompressed values by
    /// itself. Default: none, so that only the sidecar reads segments.
    pub(crate) server_group: Option<Group>,
    /// `compression`: `lz4` or `none`. Default `lz4`.
    pub(crate) compression: Compression,
    /// `min_saving_percent`: 0 to 95, default 12.5. A value is stored compressed only
    /// when that saves at least this share of its bytes.
    pub(crate) min_saving_percent: f64,
    /// `dedup_entries`: 0 to 1,000,000,000, default 262,144. How many values the
    /// deduplication hint remembers, at 64 bytes of memory each; 0 turns it off.
    pub(crate) dedup_entries: usize,
}

/// A group of the operating system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) gid: u32,
}

/// How values are compressed in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Lz4,
}

/// `[offload]`: what leaves the row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Offload {
    /// `threshold`: bytes, 64 B to 1 MiB, default 2 KiB, about where Postgres itself
    /// begins to move values out of the row. Values above it are offloaded in columns
    /// that have no threshold of their own.
    pub(crate) threshold: u32,
}

/// `[cache]`: the detoast cache.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cache {
    /// `size`: bytes, up to 1 TiB, default 256 MiB; 0 turns the cache off.
    pub(crate) size: u64,
}

/// `[resolver]`: the endpoint that the server asks for values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Resolver {
    /// `listen`: IP and port, or `unix:/dir` (socket `.s.PGSQL.6434` in that directory;
    /// `unix:/dir:PORT` for another number). Default `127.0.0.1:6434`. Never an address
    /// that other machines reach.
    pub(crate) listen: ResolverListen,
    /// `secret_file`: the password of the endpoint; made with mode 0600 when missing.
    /// Default `resolver-secret` beside the store's directory.
    pub(crate) secret_file: PathBuf,
}

/// Where the resolver listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResolverListen {
    Tcp(SocketAddr),
    Unix { directory: PathBuf, port: u16 },
}

/// `[admin]`: health, metrics, statistics.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Admin {
    /// `address`: IP and port. Default `127.0.0.1:6433`; port 0 takes a free one.
    pub(crate) address: SocketAddr,
    /// `token_file`: the bearer token; made with mode 0600 when missing.
    /// Default `admin-token` beside the store's directory.
    pub(crate) token_file: PathBuf,
    /// `allow_remote`: whether `address` may be reachable from elsewhere. Default false.
    pub(crate) allow_remote: bool,
}

/// `[limits]`
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Limits {
    /// `max_sessions`: 1 to 100,000, default 100: the server's own default. More
    /// clients than that are refused as the server would refuse them.
    pub(crate) max_sessions: usize,
    /// `startup_timeout`: 100 ms to 10 min, default 60s: Postgres' own
    /// `authentication_timeout`. How long a client may take until it is authenticated.
    pub(crate) startup_timeout: Duration,
    /// `drain_timeout`: 0 to 1 h, default 30s. How long sessions may go on after SIGTERM.
    pub(crate) drain_timeout: Duration,
}

/// `[log]`
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Log {
    /// `level`: `error`, `warn`, `info`, `debug`, `trace`, or directives such as
    /// `info,toastrack_proxy=debug`. Default `info`.
    pub(crate) level: String,
    /// `format`: `text` or `json`. Default `text`.
    pub(crate) format: LogFormat,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// What is wrong with a configuration: every problem, not only the first.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.lines())]
pub(crate) struct ConfigError {
    /// The file, for messages.
    pub(crate) file: PathBuf,
    pub(crate) problems: Vec<Problem>,
}

/// One thing that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// `section.key`; empty when the file as a whole is meant.
    pub(crate) key: String,
    pub(crate) message: String,
}

impl ConfigError {
    fn lines(&self) -> String {
        let lines: Vec<String> = self
            .problems
            .iter()
            .map(|problem| {
                let key = if problem.key.is_empty() {
                    String::new()
                } else {
                    format!("{}: ", problem.key)
                };
                format!("{}: {key}{}", self.file.display(), problem.message)
            })
            .collect();
        lines.join("\n")
    }
}

impl Config {
    /// Reads and checks a configuration file.
    ///
    /// # Errors
    /// Every problem of the file, each with its key.
    pub(crate) fn load(file: &Path, source: &dyn Source) -> Result<Config, ConfigError> {
        let failed = |problems| ConfigError {
            file: file.to_path_buf(),
            problems,
        };
        let whole = |message| {
            failed(vec![Problem {
                key: String::new(),
                message,
            }])
        };
        let text = source
            .read(file)
            .map_err(|error| whole(format!("cannot be read: {error}")))?;
        let raw: raw::RawConfig =
            toml::from_str(&text).map_err(|error| whole(error.to_string()))?;
        validate::validate(raw, source).map_err(failed)
    }

    /// The configuration of an empty file.
    ///
    /// # Errors
    /// None that a test would not have shown: the defaults are valid.
    pub(crate) fn defaults() -> Result<Config, ConfigError> {
        validate::validate(raw::RawConfig::default(), &Disk).map_err(|problems| ConfigError {
            file: PathBuf::from("defaults"),
            problems,
        })
    }
}

#[cfg(test)]
mod tests;
