//! From the raw configuration to the validated one, collecting every problem.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use toml::Value;

use super::parse::{
    DEFAULT_RESOLVER_PORT, absolute_path, boolean, file_mode, group, integer, log_level, number,
    one_of, parsed, resolver_listen, segment_size, size, socket_path, span, text,
};
use super::raw::{RawConfig, Unknown};
use super::server::server;
use super::tls::listen_tls;
use super::{
    Admin, Cache, Compression, Config, Control, Limits, Listen, Log, LogFormat, Offload, Problem,
    Resolver, ResolverListen, ServerLocation, Source, Store, TlsMode,
};
use crate::secret::Secret;

const MIB: u64 = 1 << 20;
const DEFAULT_STORE_DIRECTORY: &str = "/var/lib/toastrack/store";

/// Checks every key, and gives the configuration or all problems.
pub(super) fn validate(raw: RawConfig, source: &dyn Source) -> Result<Config, Vec<Problem>> {
    let mut problems = Vec::new();
    let check = Section::new;
    for name in raw.unknown.keys() {
        problems.push(Problem {
            key: name.clone(),
            message: "there is no such section".to_owned(),
        });
    }

    let mut section = check("listen");
    let address = section.take("address", raw.listen.address, loopback(6432), parsed);
    let unix_socket = section.optional("unix_socket", raw.listen.unix_socket, |value| {
        socket_path(value, address.port())
    });
    let mode = raw.listen.unix_socket_mode;
    let unix_socket_mode = section.take("unix_socket_mode", mode, 0o700, file_mode);
    let allow_remote = section.take("allow_remote", raw.listen.allow_remote, false, boolean);
    let tls = listen_tls(raw.listen.tls, &mut problems);
    section.check_remote(
        "address",
        &address,
        address.ip().is_loopback() || tls.mode == TlsMode::Require,
        allow_remote,
    );
    section.finish(raw.listen.unknown, &mut problems);
    let listen = Listen {
        address,
        unix_socket,
        unix_socket_mode,
        allow_remote,
        tls,
    };

    let server = server(raw.server, &mut problems);

    let mut section = check("control");
    let control = section.control(
        raw.control.user,
        raw.control.password,
        raw.control.password_file,
        source,
    );
    section.finish(raw.control.unknown, &mut problems);

    let mut section = check("store");
    let store = Store {
        directory: section.take(
            "directory",
            raw.store.directory,
            PathBuf::from(DEFAULT_STORE_DIRECTORY),
            absolute_path,
        ),
        segment_size: section.take("segment_size", raw.store.segment_size, 256 * MIB, |value| {
            segment_size(value)
        }),
        server_group: section.optional("server_group", raw.store.server_group, |value| {
            group(value, source)
        }),
        compression: section.take(
            "compression",
            raw.store.compression,
            Compression::Lz4,
            |value| {
                one_of(
                    value,
                    &[("lz4", Compression::Lz4), ("none", Compression::None)],
                )
            },
        ),
        min_saving_percent: section.take(
            "min_saving_percent",
            raw.store.min_saving_percent,
            12.5,
            |value| number(value, 0.0..=95.0),
        ),
        dedup_entries: section.take("dedup_entries", raw.store.dedup_entries, 262_144, |value| {
            integer(value, 0..=1_000_000_000)
        }),
    };
    section.finish(raw.store.unknown, &mut problems);

    let mut section = check("offload");
    let offload = Offload {
        threshold: section.take("threshold", raw.offload.threshold, 2048, |value| {
            size(value, 64..=MIB).map(|bytes| bytes as u32)
        }),
    };
    section.finish(raw.offload.unknown, &mut problems);

    let mut section = check("cache");
    let cache = Cache {
        size: section.take("size", raw.cache.size, 256 * MIB, |value| {
            size(value, 0..=1 << 40)
        }),
    };
    section.finish(raw.cache.unknown, &mut problems);

    let mut section = check("resolver");
    let default = ResolverListen::Tcp(loopback(DEFAULT_RESOLVER_PORT));
    let resolver_listen = section.take("listen", raw.resolver.listen, default, resolver_listen);
    // Secrets live beside the store's directory, which the store keeps for itself.
    let beside = |name| store.directory.with_file_name(name);
    let resolver = Resolver {
        listen: resolver_listen,
        secret_file: section.take(
            "secret_file",
            raw.resolver.secret_file,
            beside("resolver-secret"),
            absolute_path,
        ),
    };
    section.finish(raw.resolver.unknown, &mut problems);

    let mut section = check("admin");
    let address = section.take("address", raw.admin.address, loopback(6433), parsed);
    let allow_remote = section.take("allow_remote", raw.admin.allow_remote, false, boolean);
    section.check_remote(
        "address",
        &address,
        address.ip().is_loopback(),
        allow_remote,
    );
    let admin = Admin {
        address,
        token_file: section.take(
            "token_file",
            raw.admin.token_file,
            beside("admin-token"),
            absolute_path,
        ),
        allow_remote,
    };
    section.finish(raw.admin.unknown, &mut problems);

    let mut section = check("limits");
    let limits = Limits {
        max_sessions: section.take("max_sessions", raw.limits.max_sessions, 100, |value| {
            integer(value, 1..=100_000)
        }),
        startup_timeout: section.take(
            "startup_timeout",
            raw.limits.startup_timeout,
            Duration::from_secs(60),
            |value| span(value, Duration::from_millis(100)..=Duration::from_secs(600)),
        ),
        drain_timeout: section.take(
            "drain_timeout",
            raw.limits.drain_timeout,
            Duration::from_secs(30),
            |value| span(value, Duration::ZERO..=Duration::from_secs(3600)),
        ),
    };
    section.finish(raw.limits.unknown, &mut problems);

    let mut section = check("log");
    let log = Log {
        level: section.take("level", raw.log.level, "info".to_owned(), log_level),
        format: section.take("format", raw.log.format, LogFormat::Text, |value| {
            one_of(
                value,
                &[("text", LogFormat::Text), ("json", LogFormat::Json)],
            )
        }),
    };
    section.finish(raw.log.unknown, &mut problems);

    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(Config {
        listen,
        server,
        control,
        store,
        offload,
        cache,
        resolver,
        admin,
        limits,
        log,
    })
}

/// One section while it is checked.
pub(super) struct Section {
    name: &'static str,
    problems: Vec<Problem>,
}

impl Section {
    pub(super) fn new(name: &'static str) -> Section {
        Section {
            name,
            problems: Vec::new(),
        }
    }

    /// Nothing was wrong so far.
    pub(super) fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    pub(super) fn problem(&mut self, key: &str, message: String) {
        self.problems.push(Problem {
            key: format!("{}.{key}", self.name),
            message,
        });
    }

    /// The parsed value, or nothing when the key is absent or (noted) wrong.
    pub(super) fn optional<T>(
        &mut self,
        key: &str,
        value: Option<Value>,
        parse: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Option<T> {
        match parse(&value?) {
            Ok(parsed) => Some(parsed),
            Err(message) => {
                self.problem(key, message);
                None
            }
        }
    }

    pub(super) fn take<T>(
        &mut self,
        key: &str,
        value: Option<Value>,
        default: T,
        parse: impl FnOnce(&Value) -> Result<T, String>,
    ) -> T {
        self.optional(key, value, parse).unwrap_or(default)
    }

    /// `safe` says that it is local or encrypted.
    pub(super) fn check_remote(
        &mut self,
        key: &str,
        address: &impl Display,
        safe: bool,
        allowed: bool,
    ) {
        if !safe && !allowed {
            let message = format!(
                "{address} is not on this machine, and the connection need not be encrypted: \
                 require it in [{0}.tls], or set `allow_remote = true` in [{0}] if that is meant",
                self.name
            );
            self.problem(key, message);
        }
    }

    fn control(
        &mut self,
        user: Option<Value>,
        password: Option<Value>,
        password_file: Option<Value>,
        source: &dyn Source,
    ) -> Control {
        if password.is_some() && password_file.is_some() {
            let message = "`password` and `password_file` exclude each other".to_owned();
            self.problem("password", message);
        }
        let user = self.take("user", user, "postgres".to_owned(), text);
        let inline = self.optional("password", password, text).map(Secret::new);
        let file = self.optional("password_file", password_file, absolute_path);
        let read = file.as_ref().and_then(|file| {
            source
                .read(file)
                .and_then(|text| Secret::first_line(&text))
                .map_err(|error| {
                    self.problem("password_file", format!("{}: {error}", file.display()))
                })
                .ok()
        });
        Control {
            user,
            password: inline.or(read),
            password_file: file,
        }
    }

    pub(super) fn finish(mut self, unknown: Unknown, problems: &mut Vec<Problem>) {
        for key in unknown.keys() {
            self.problem(key, "there is no such key".to_owned());
        }
        problems.append(&mut self.problems);
    }
}

impl ServerLocation {
    /// Whether what is sent there stays on this machine.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            ServerLocation::Unix(_) => true,
            ServerLocation::Tcp(host, _) => {
                host == "localhost"
                    || host
                        .parse::<std::net::IpAddr>()
                        .is_ok_and(|address| address.is_loopback())
            }
        }
    }
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}
