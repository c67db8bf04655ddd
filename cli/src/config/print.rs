//! The configuration as `print-config` shows it: every key, secrets as `***`.

use std::fmt;
use std::path::Path;

use toml::Value;

use super::server::TARGET_SESSION_ATTRS;
use super::tls::{LISTEN_TLS_MODES, SERVER_TLS_MODES};
use super::{Compression, Config, LogFormat, ResolverListen, ServerLocation};
use crate::units::{ByteSize, Span};

impl fmt::Display for ServerLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerLocation::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            ServerLocation::Tcp(host, port) => write!(f, "{host}:{port}"),
            ServerLocation::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl fmt::Display for ResolverListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResolverListen::Tcp(address) => write!(f, "{address}"),
            ResolverListen::Unix { directory, port } => {
                write!(f, "unix:{}:{port}", directory.display())
            }
        }
    }
}

impl fmt::Display for Config {
    /// TOML that reads back as the same configuration (but for a `password`, which
    /// is shown as `***`). Keys without a value stand in a comment.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (listen, store, limits) = (&self.listen, &self.store, &self.limits);
        let mut out = Printer { f, first: true };

        out.section("listen")?;
        out.text("address", listen.address)?;
        out.path("unix_socket", listen.unix_socket.as_deref())?;
        let mode = format!("{:04o}", listen.unix_socket_mode);
        out.text("unix_socket_mode", mode)?;
        out.value("allow_remote", listen.allow_remote)?;

        let tls = &listen.tls;
        out.section("listen.tls")?;
        out.text("mode", name_of(LISTEN_TLS_MODES, tls.mode))?;
        out.path("certificate", tls.certificate.as_deref())?;
        out.path("key", tls.key.as_deref())?;
        out.path("client_ca", tls.client_ca.as_deref())?;

        out.section("server")?;
        match self.server.addresses.as_slice() {
            [address] => {
                out.text("address", address)?;
                out.absent("addresses")?;
            }
            addresses => {
                let texts: Vec<Value> = addresses
                    .iter()
                    .map(|address| address.to_string().into())
                    .collect();
                out.absent("address")?;
                out.value("addresses", texts)?;
            }
        }
        let target = name_of(TARGET_SESSION_ATTRS, self.server.target);
        out.text("target_session_attrs", target)?;
        out.value("allow_remote", self.server.allow_remote)?;

        let tls = &self.server.tls;
        out.section("server.tls")?;
        out.text("mode", name_of(SERVER_TLS_MODES, tls.mode))?;
        out.path("ca", tls.ca.as_deref())?;
        out.path("certificate", tls.certificate.as_deref())?;
        out.path("key", tls.key.as_deref())?;

        out.section("control")?;
        out.text("user", &self.control.user)?;
        match (&self.control.password, &self.control.password_file) {
            (Some(secret), None) => out.text("password", secret)?,
            _ => out.absent("password")?,
        }
        out.path("password_file", self.control.password_file.as_deref())?;

        out.section("store")?;
        out.path("directory", Some(&store.directory))?;
        out.text("segment_size", ByteSize(store.segment_size))?;
        match &store.server_group {
            Some(group) => out.text("server_group", &group.name)?,
            None => out.absent("server_group")?,
        }
        let compression = match store.compression {
            Compression::Lz4 => "lz4",
            Compression::None => "none",
        };
        out.text("compression", compression)?;
        out.value("min_saving_percent", store.min_saving_percent)?;
        out.value("dedup_entries", store.dedup_entries as i64)?;

        out.section("offload")?;
        out.text("threshold", ByteSize(u64::from(self.offload.threshold)))?;

        out.section("cache")?;
        out.text("size", ByteSize(self.cache.size))?;

        out.section("resolver")?;
        out.text("listen", &self.resolver.listen)?;
        out.path("secret_file", Some(&self.resolver.secret_file))?;

        out.section("admin")?;
        out.text("address", self.admin.address)?;
        out.path("token_file", Some(&self.admin.token_file))?;
        out.value("allow_remote", self.admin.allow_remote)?;

        out.section("limits")?;
        out.value("max_sessions", limits.max_sessions as i64)?;
        out.text("startup_timeout", Span(limits.startup_timeout))?;
        out.text("drain_timeout", Span(limits.drain_timeout))?;

        out.section("log")?;
        out.text("level", &self.log.level)?;
        let format = match self.log.format {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        };
        out.text("format", format)
    }
}

/// How a choice is spelled.
fn name_of<T: Copy + PartialEq>(choices: &[(&'static str, T)], choice: T) -> &'static str {
    let found = choices.iter().find(|(_, other)| *other == choice);
    found.map_or("", |(name, _)| name)
}

struct Printer<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
    first: bool,
}

impl Printer<'_, '_> {
    fn section(&mut self, name: &str) -> fmt::Result {
        if !std::mem::take(&mut self.first) {
            writeln!(self.f)?;
        }
        writeln!(self.f, "[{name}]")
    }

    fn value(&mut self, key: &str, value: impl Into<Value>) -> fmt::Result {
        writeln!(self.f, "{key} = {}", value.into())
    }

    fn text(&mut self, key: &str, value: impl fmt::Display) -> fmt::Result {
        self.value(key, value.to_string())
    }

    fn path(&mut self, key: &str, path: Option<&Path>) -> fmt::Result {
        match path {
            Some(path) => self.text(key, path.display()),
            None => self.absent(key),
        }
    }

    fn absent(&mut self, key: &str) -> fmt::Result {
        writeln!(self.f, "# {key} is not set")
    }
}
