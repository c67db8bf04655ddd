//! A real store and a real resolver, as the sidecar has them, without the proxy.

use std::path::PathBuf;

use toastrack_cache::DetoastCache;
use toastrack_migrations::{ColumnKind, ResolverAddress, ServerSettings, refresh_settings};
use toastrack_offload::{Compression, Reference, Store, StoreOptions, ValueKind};
use toastrack_resolver::{Limits, Resolver, ResolverListen, Secret};
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;

use super::{cluster, server_directory};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// How the server gets at values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// By `pg_read_binary_file`, with no resolver registered.
    Direct,
    /// By the callback, with no directory registered.
    Callback,
    /// Not at all.
    None,
}

/// A store that the server may read, and a resolver over it.
pub(crate) struct Sidecar {
    pub(crate) store: Store,
    pub(crate) directory: PathBuf,
    address: (String, u16),
    stop: CancellationToken,
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Sidecar {
    /// Starts one whose payloads are raw, so that the server can read them by itself.
    pub(crate) async fn start() -> Sidecar {
        Sidecar::start_with(Compression::None).await
    }

    pub(crate) async fn start_with(compression: Compression) -> Sidecar {
        let directory = server_directory("store");
        let (_, gid) = cluster().server_uid_gid();
        let store = Store::open(StoreOptions {
            directory: directory.clone(),
            segment_len_bytes: 8 << 20,
            server_gid: Some(gid),
            compression,
            // Equal values at different addresses are what the tests of equality need.
            dedup_entries: 0,
            server_digest: true,
            ..StoreOptions::default()
        })
        .unwrap();
        let stop = CancellationToken::new();
        let address = Sidecar::serve(&store, "127.0.0.1:0", stop.clone()).await;
        Sidecar {
            store,
            directory,
            address,
            stop,
        }
    }

    async fn serve(store: &Store, listen: &str, stop: CancellationToken) -> (String, u16) {
        let resolver = Resolver::bind(
            ResolverListen::Tcp(listen.parse().unwrap()),
            Secret::new(SECRET).unwrap(),
            store.clone(),
            DetoastCache::new(0),
            Limits::default(),
        )
        .await
        .unwrap();
        let address = resolver.local_address().host_and_port();
        tokio::spawn(resolver.serve(stop));
        address
    }

    /// Stops the resolver, and with it every connection to it.
    pub(crate) async fn stop_resolver(&mut self) {
        self.stop.cancel();
        // The port is free when somebody else can have it.
        let (host, port) = self.address.clone();
        for _ in 0..500 {
            if std::net::TcpListener::bind((host.as_str(), port)).is_ok() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("the resolver never stopped");
    }

    /// Starts it again at the same address.
    pub(crate) async fn start_resolver(&mut self) {
        self.stop = CancellationToken::new();
        let listen = format!("{}:{}", self.address.0, self.address.1);
        Sidecar::serve(&self.store, &listen, self.stop.clone()).await;
    }

    /// What the sidecar would register.
    pub(crate) fn settings(&self, directory: bool, resolver: bool) -> ServerSettings {
        ServerSettings {
            store_directory: directory.then(|| self.directory.to_str().unwrap().to_owned()),
            resolver: resolver.then(|| ResolverAddress {
                host: self.address.0.clone(),
                port: self.address.1,
                secret: SECRET.to_owned(),
            }),
        }
    }

    /// Registers one way of reading, and only that.
    pub(crate) async fn register(&self, client: &mut Client, way: Way) {
        let settings = self.settings(way == Way::Direct, way == Way::Callback);
        let direct = refresh_settings(client, &settings).await.unwrap();
        assert_eq!(
            direct == toastrack_migrations::DirectRead::Registered,
            way == Way::Direct,
            "{direct:?}"
        );
    }

    /// Stores a value durably.
    pub(crate) async fn put(&self, kind: ColumnKind, value: &[u8]) -> Reference {
        let char_len = match kind {
            ColumnKind::Bytea => value.len(),
            _ => std::str::from_utf8(value).unwrap().chars().count(),
        };
        let put = self
            .store
            .put(value_kind(kind), char_len as u32, value)
            .unwrap();
        self.store.durable(put.ticket).await.unwrap();
        put.reference
    }

    /// Stores a value and gives its reference as a SQL literal without a type.
    pub(crate) async fn literal(&self, kind: ColumnKind, value: &[u8]) -> String {
        let reference = self.put(kind, value).await;
        let spelling = reference.spelling();
        match kind {
            ColumnKind::Bytea => {
                let hex: String = spelling.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("'\\x{hex}'")
            }
            _ => format!("'{}'", std::str::from_utf8(&spelling).unwrap()),
        }
    }
}

pub(crate) fn value_kind(kind: ColumnKind) -> ValueKind {
    match kind {
        ColumnKind::Text => ValueKind::Text,
        ColumnKind::Varchar => ValueKind::Varchar,
        ColumnKind::Json => ValueKind::Json,
        ColumnKind::Jsonb => ValueKind::Jsonb,
        ColumnKind::Bytea => ValueKind::Bytea,
    }
}
