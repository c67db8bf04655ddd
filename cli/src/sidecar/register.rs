//! Tells the databases that have the schema where the store and the resolver are.

use std::time::Duration;

use toastrack_migrations::{DirectRead, InstallState, ResolverAddress, ServerSettings};
use toastrack_proxy::Upstream;
use tokio::time::timeout;
use tokio_postgres::Client;

use super::start::resolver_secret;
use crate::config::{Config, ResolverListen};
use crate::error::{CommandError, Server};

/// For one database; a server that is slower is told at the next start.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Where the list of databases is read.
const MAINTENANCE_DATABASE: &str = "postgres";

/// What the server is told: where it may read segments, and where to ask for values.
///
/// `resolver` is where the resolver listens in truth; without it the configured address.
///
/// # Errors
/// `Io` or `Failed` when the resolver's secret cannot be read or made.
pub(crate) fn server_settings(
    config: &Config,
    resolver: Option<&(String, u16)>,
) -> Result<ServerSettings, CommandError> {
    let (host, port) = match (resolver, &config.resolver.listen) {
        (Some(address), _) => address.clone(),
        (None, ResolverListen::Tcp(address)) => (address.ip().to_string(), address.port()),
        (None, ResolverListen::Unix { directory, port }) => {
            (directory.display().to_string(), *port)
        }
    };
    let may_read = config.store.server_group.is_some();
    Ok(ServerSettings {
        store_directory: may_read.then(|| config.store.directory.display().to_string()),
        resolver: Some(ResolverAddress {
            host,
            port,
            secret: resolver_secret(config)?.expose().to_owned(),
        }),
    })
}

/// Brings the settings of every database up to date, as the control user.
///
/// What cannot be told is logged and no failure: the proxy works without it, and so do
/// databases that were told before.
pub(super) async fn register(config: &Config, upstream: &Upstream, settings: &ServerSettings) {
    let databases = match within(databases(config, upstream)).await {
        Ok(databases) => databases,
        Err(problem) => {
            tracing::warn!(problem, "the server was not told where the store is");
            return;
        }
    };
    for database in databases {
        match within(register_in(config, upstream, &database, settings)).await {
            Ok(None | Some(DirectRead::Off | DirectRead::Registered)) => {}
            Ok(Some(DirectRead::Unreadable { reason })) => tracing::warn!(
                database,
                reason,
                "the server cannot read segments by itself and asks the resolver instead"
            ),
            Err(problem) => {
                tracing::warn!(
                    database,
                    problem,
                    "the database was not told where the store is"
                );
            }
        }
    }
}

async fn databases(config: &Config, upstream: &Upstream) -> Result<Vec<String>, String> {
    let client = connect(config, upstream, MAINTENANCE_DATABASE).await?;
    let rows = client
        .query(
            "SELECT datname::pg_catalog.text FROM pg_catalog.pg_database \
             WHERE datallowconn AND NOT datistemplate ORDER BY datname",
            &[],
        )
        .await
        .map_err(|error| Server(&error).to_string())?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// `None` when the database has no such schema.
async fn register_in(
    config: &Config,
    upstream: &Upstream,
    database: &str,
    settings: &ServerSettings,
) -> Result<Option<DirectRead>, String> {
    let mut client = connect(config, upstream, database).await?;
    let state = toastrack_migrations::state(&client)
        .await
        .map_err(|error| error.to_string())?;
    match state {
        InstallState::Absent => Ok(None),
        InstallState::Incomplete { missing } => Err(format!(
            "the schema is not whole, run `toastrack install` (missing: {})",
            missing.join(", ")
        )),
        InstallState::Installed { .. } => {
            toastrack_migrations::refresh_settings(&mut client, settings)
                .await
                .map(Some)
                .map_err(|error| error.to_string())
        }
    }
}

async fn connect(config: &Config, upstream: &Upstream, database: &str) -> Result<Client, String> {
    let mut settings = tokio_postgres::Config::new();
    settings
        .user(&config.control.user)
        .dbname(database)
        .application_name("toastrack");
    if let Some(password) = &config.control.password {
        settings.password(password.reveal());
    }
    upstream.client(&settings).await
}

async fn within<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    match timeout(TIMEOUT, work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("no answer within {} s", TIMEOUT.as_secs())),
    }
}
