//! From a configuration to a running sidecar.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

use toastrack_admin::{Admin, Token};
use toastrack_cache::DetoastCache;
use toastrack_offload::{Compression, Store, StoreOptions};
use toastrack_proxy::{
    ControlOptions, ListenTls, ListenTlsMode, Metrics, Proxy, ProxyOptions, ServerAddress, Servers,
    Services, UnixListen,
};
use toastrack_resolver::{Limits, Resolver, ResolverListen};

use super::admin_source::AdminSource;
use super::probe::Probe;
use super::{Addresses, Shared, Sidecar};
use crate::config::{self, Config, ServerLocation, TlsMode};
use crate::error::CommandError;
use crate::secret::{Secret, readable_by_others};

impl Sidecar {
    /// Opens the store and listens everywhere. Nothing is served before [`Sidecar::run`].
    ///
    /// # Errors
    /// `Io` or `Failed` with what could not be opened or listened on.
    pub(crate) async fn start(config: &Config) -> Result<Sidecar, CommandError> {
        let secret = resolver_secret(config)?;
        let token = read_secret("use the token file", &config.admin.token_file)?;
        let token = Token::new(token.reveal()).map_err(CommandError::failed)?;

        let options = store_options(config);
        let directory = config.store.directory.clone();
        let store = tokio::task::spawn_blocking(move || Store::open(options))
            .await
            .map_err(CommandError::failed)?
            .map_err(|error| CommandError::Failed(format!("{}: {error}", directory.display())))?;
        let cache = DetoastCache::new(config.cache.size);
        let metrics = Arc::new(Metrics::default());

        let resolver = Resolver::bind(
            resolver_listen(config),
            secret,
            store.clone(),
            cache.clone(),
            Limits::default(),
        )
        .await
        .map_err(|error| CommandError::Failed(format!("{}: {error}", config.resolver.listen)))?;
        let services = Services {
            store: store.clone(),
            cache: cache.clone(),
            metrics: Arc::clone(&metrics),
        };
        let proxy = Proxy::bind(proxy_options(config), services)
            .await
            .map_err(CommandError::failed)?;
        let proxy_address = proxy.local_addr().map_err(CommandError::failed)?;

        let probe = Probe::new(servers(config).addresses);
        let source = Arc::new(AdminSource::new(
            store.clone(),
            cache.clone(),
            metrics,
            resolver.counters(),
            probe.outcome(),
            config.limits.max_sessions,
        ));
        let admin = bind_admin(config, token, Arc::clone(&source)).await?;
        let addresses = Addresses {
            proxy: proxy_address,
            proxy_unix: proxy.unix_path().map(Path::to_path_buf),
            admin: admin.local_addr(),
            resolver: resolver.local_address().host_and_port(),
        };
        Ok(Sidecar {
            proxy,
            resolver,
            admin,
            probe,
            source,
            shared: Shared { store, cache },
            addresses,
        })
    }
}

async fn bind_admin(
    config: &Config,
    token: Token,
    source: Arc<AdminSource>,
) -> Result<Admin, CommandError> {
    let address = config.admin.address;
    let bound = if config.admin.allow_remote {
        Admin::bind_remote(address, token, source).await
    } else {
        Admin::bind(address, token, source).await
    };
    bound.map_err(|error| CommandError::Failed(format!("cannot listen on {address}: {error}")))
}

/// The resolver's secret, made when there is none.
///
/// # Errors
/// `Io` when its file cannot be read or made, `Failed` when it cannot be a secret.
pub(super) fn resolver_secret(config: &Config) -> Result<toastrack_resolver::Secret, CommandError> {
    let secret = read_secret("use the secret file", &config.resolver.secret_file)?;
    toastrack_resolver::Secret::new(secret.reveal()).map_err(CommandError::failed)
}

/// Reads a secret, or makes it, and the directory it is in.
fn read_secret(action: &'static str, path: &Path) -> Result<Secret, CommandError> {
    if let Some(directory) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(directory)
            .map_err(CommandError::io("create", directory))?;
    }
    let secret = Secret::read_or_create(path).map_err(CommandError::io(action, path))?;
    if readable_by_others(path).map_err(CommandError::io(action, path))? {
        tracing::warn!(path = %path.display(), "the file of a secret is readable by others");
    }
    Ok(secret)
}

fn store_options(config: &Config) -> StoreOptions {
    let store = &config.store;
    StoreOptions {
        directory: store.directory.clone(),
        segment_len_bytes: store.segment_size,
        server_gid: store.server_group.as_ref().map(|group| group.gid),
        compression: match store.compression {
            config::Compression::None => Compression::None,
            config::Compression::Lz4 => Compression::Lz4 {
                min_saving: (store.min_saving_percent / 100.0) as f32,
            },
        },
        dedup_entries: store.dedup_entries,
        // Only a server that may read segments checks the digest.
        server_digest: store.server_group.is_some(),
        ..StoreOptions::default()
    }
}

fn resolver_listen(config: &Config) -> ResolverListen {
    match &config.resolver.listen {
        config::ResolverListen::Tcp(address) => ResolverListen::Tcp(*address),
        config::ResolverListen::Unix { directory, port } => ResolverListen::Unix {
            directory: directory.clone(),
            port: *port,
            group_id: config.store.server_group.as_ref().map(|group| group.gid),
        },
    }
}

fn proxy_options(config: &Config) -> ProxyOptions {
    ProxyOptions {
        listen: config.listen.address,
        listen_unix: config.listen.unix_socket.clone().map(|path| UnixListen {
            path,
            mode: config.listen.unix_socket_mode,
        }),
        listen_tls: listen_tls(&config.listen.tls),
        server: servers(config),
        server_tls: config.server.tls.clone(),
        control: ControlOptions {
            user: config.control.user.clone(),
            password: config
                .control
                .password
                .as_ref()
                .map(|password| password.reveal().to_owned()),
        },
        threshold: config.offload.threshold,
        max_sessions: config.limits.max_sessions,
        startup_timeout: config.limits.startup_timeout,
        drain_timeout: config.limits.drain_timeout,
    }
}

fn listen_tls(tls: &config::ListenTls) -> Option<ListenTls> {
    let mode = match tls.mode {
        TlsMode::Off => return None,
        TlsMode::Allow => ListenTlsMode::Allow,
        TlsMode::Require => ListenTlsMode::Require,
    };
    Some(ListenTls {
        mode,
        certificate: tls.certificate.clone()?,
        key: tls.key.clone()?,
        client_ca: tls.client_ca.clone(),
    })
}

/// Whether the files of certificates and keys can be used.
///
/// # Errors
/// `Failed` with the file and what is wrong with it.
pub(crate) fn check_tls(config: &Config) -> Result<(), CommandError> {
    if let Some(tls) = listen_tls(&config.listen.tls) {
        tls.check().map_err(CommandError::failed)?;
    }
    config.server.tls.check().map_err(CommandError::failed)
}

fn servers(config: &Config) -> Servers {
    Servers {
        addresses: config.server.addresses.iter().map(server_address).collect(),
        target: config.server.target,
    }
}

fn server_address(location: &ServerLocation) -> ServerAddress {
    match location {
        ServerLocation::Tcp(host, port) => ServerAddress::Tcp(host.clone(), *port),
        ServerLocation::Unix(path) => ServerAddress::Unix(path.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documented defaults of the configuration are those of the store itself.
    #[test]
    fn store_defaults_agree() {
        let config = Config::defaults().unwrap();
        let expected = StoreOptions {
            directory: config.store.directory.clone(),
            ..StoreOptions::default()
        };
        assert_eq!(store_options(&config), expected);
    }
}
