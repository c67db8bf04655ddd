//! What the functions in the server need to know of the sidecar: where its store and its resolver are.

use tokio_postgres::{Client, Transaction};
use tracing::info;

use crate::error::Error;
use crate::install::lock_schema;

/// How the server gets at values by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSettings {
    /// The store's directory as the server sees it, absolute; for `pg_read_binary_file`.
    pub store_directory: Option<String>,
    /// Where the resolver listens.
    pub resolver: Option<ResolverAddress>,
}

/// Where the resolver listens, and the password it wants.
#[derive(Clone, PartialEq, Eq)]
pub struct ResolverAddress {
    /// A host name or address, or the directory of a Unix socket if it begins with `/`.
    pub host: String,
    /// The TCP port, or the number in the socket's name.
    pub port: u16,
    /// The password of the user `toastrack_resolver`.
    pub secret: String,
}

impl std::fmt::Debug for ResolverAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResolverAddress")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("secret", &"***")
            .finish()
    }
}

/// Whether the server reads segment files by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectRead {
    /// No directory is registered; every value comes from the resolver.
    Off,
    /// The directory is registered, and the server could read it.
    Registered,
    /// The server could not read the directory, so it is not registered.
    Unreadable {
        /// What the server said.
        reason: String,
    },
}

/// Makes `settings` those of the database: what is `None` is removed. Writes nothing where they are already.
///
/// One transaction. Needs the role that installed, or a superuser.
///
/// # Errors
/// `Postgres`, among others when the schema is not installed or the role may not.
pub async fn refresh_settings(
    client: &mut Client,
    settings: &ServerSettings,
) -> Result<DirectRead, Error> {
    let mut transaction = client.transaction().await?;
    lock_schema(&transaction).await?;
    let direct_read =
        apply_store_directory(&mut transaction, settings.store_directory.as_deref()).await?;
    apply_resolver(&transaction, settings.resolver.as_ref()).await?;
    transaction.commit().await?;
    Ok(direct_read)
}

/// Registers the directory if the server can read it; removes it otherwise.
pub(crate) async fn apply_store_directory(
    transaction: &mut Transaction<'_>,
    directory: Option<&str>,
) -> Result<DirectRead, Error> {
    let outcome = match directory {
        None => DirectRead::Off,
        Some(directory) => match unreadable(transaction, directory).await? {
            None => DirectRead::Registered,
            Some(reason) => DirectRead::Unreadable { reason },
        },
    };
    let registered = directory.filter(|_| outcome == DirectRead::Registered);
    let current: Option<String> = transaction
        .query_one("SELECT toastrack.store_directory()", &[])
        .await?
        .get(0);
    if current.as_deref() == registered {
        return Ok(outcome);
    }
    transaction
        .execute(
            "DELETE FROM toastrack.config WHERE key = 'store_directory'",
            &[],
        )
        .await?;
    if let Some(directory) = registered {
        transaction
            .execute(
                "INSERT INTO toastrack.config (key, value) VALUES ('store_directory', $1)",
                &[&directory],
            )
            .await?;
    }
    let redefine: String = transaction
        .query_one(
            "SELECT pg_catalog.format('CREATE OR REPLACE FUNCTION toastrack.store_directory() RETURNS pg_catalog.text \
             LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN %L::pg_catalog.text', $1::pg_catalog.text)",
            &[&registered],
        )
        .await?
        .get(0);
    transaction.batch_execute(&redefine).await?;
    info!(directory = registered, "store directory registered");
    Ok(outcome)
}

/// Tries to read the store's superblock and one segment as the server; `Some` says why it cannot.
async fn unreadable(
    transaction: &mut Transaction<'_>,
    directory: &str,
) -> Result<Option<String>, Error> {
    if !directory.starts_with('/') {
        return Ok(Some(format!("\"{directory}\" is not an absolute path")));
    }
    let attempt = transaction.savepoint("store_directory").await?;
    let read = attempt
        .query_one(
            "SELECT pg_catalog.pg_read_binary_file($1 || '/toastrack-store', 0, 1) IS NOT NULL \
             AND (SELECT pg_catalog.count(pg_catalog.pg_read_binary_file($1 || '/segments/' || f.name, 0, 1)) \
                  FROM (SELECT d.name FROM pg_catalog.pg_ls_dir($1 || '/segments') AS d (name) \
                        WHERE d.name LIKE '%.seg' LIMIT 1) AS f) >= 0",
            &[&directory],
        )
        .await;
    match read {
        Ok(_) => {
            attempt.commit().await?;
            Ok(None)
        }
        Err(error) => match error.as_db_error() {
            Some(server) => {
                let reason = server.message().to_owned();
                attempt.rollback().await?;
                Ok(Some(reason))
            }
            None => Err(error.into()),
        },
    }
}

/// Registers the resolver, or removes it.
pub(crate) async fn apply_resolver(
    transaction: &Transaction<'_>,
    resolver: Option<&ResolverAddress>,
) -> Result<(), Error> {
    match resolver {
        None => {
            transaction
                .execute("DELETE FROM toastrack.resolver", &[])
                .await?;
        }
        Some(address) => {
            transaction
                .execute(
                    "INSERT INTO toastrack.resolver (conninfo) VALUES ($1) \
                     ON CONFLICT (only_row) DO UPDATE SET conninfo = EXCLUDED.conninfo \
                     WHERE resolver.conninfo <> EXCLUDED.conninfo",
                    &[&conninfo(address)],
                )
                .await?;
        }
    }
    Ok(())
}

/// What libpq needs to reach the resolver. No TLS: the way is a Unix socket or the loopback.
fn conninfo(address: &ResolverAddress) -> String {
    format!(
        "host={} port={} user=toastrack_resolver password={} dbname=toastrack connect_timeout=10 \
         application_name=toastrack_detoast client_encoding=UTF8 sslmode=disable gssencmode=disable",
        quoted(&address.host),
        address.port,
        quoted(&address.secret),
    )
}

/// A value in a conninfo string.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A secret with quotes in it stays one value.
    #[test]
    fn conninfo_quotes_values() {
        let address = ResolverAddress {
            host: "/run/it's".into(),
            port: 6434,
            secret: r"a\b'c d".into(),
        };
        let text = conninfo(&address);
        assert!(text.starts_with(
            r"host='/run/it\'s' port=6434 user=toastrack_resolver password='a\\b\'c d' dbname"
        ));
        let config: tokio_postgres::Config = text
            .replace(" gssencmode=disable", "")
            .replace(" client_encoding=UTF8", "")
            .parse()
            .unwrap();
        assert_eq!(config.get_password(), Some(r"a\b'c d".as_bytes()));
    }

    /// The secret is not in the debug text.
    #[test]
    fn debug_hides_the_secret() {
        let address = ResolverAddress {
            host: "h".into(),
            port: 1,
            secret: "hush".into(),
        };
        assert!(!format!("{address:?}").contains("hush"));
    }
}
