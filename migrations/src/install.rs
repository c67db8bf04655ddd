//! Installs the schema, brings it up to date, repairs it, and takes it away again.

use tokio_postgres::{Client, Transaction};
use tracing::info;

use crate::error::Error;
use crate::migration::{MIGRATIONS, Migration, REPEATABLE, VERSION};
use crate::settings::{DirectRead, ServerSettings, apply_resolver, apply_store_directory};
use crate::state::{InstallState, state};

/// What [`install`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallReport {
    /// The version before; 0 when the schema was not there.
    pub version_before: i32,
    /// The version now.
    pub version: i32,
    /// Migrations that were applied, by number and name.
    pub applied: Vec<String>,
    /// What had been missing from an installed schema and was made again.
    pub repaired: Vec<String>,
    /// Whether the server reads segment files; `None` when the settings said nothing about it.
    pub direct_read: Option<DirectRead>,
}

/// Installs the schema, or brings it up to date, or makes what is missing of it (after a dump and restore).
/// Settings that are `None` stay as they are; see [`crate::refresh_settings`].
///
/// Idempotent. One transaction for each migration, so an install that was interrupted goes on where it was;
/// two at a time wait for each other.
///
/// # Errors
/// `NotSuperuser`, `ServerTooOld`, `NotUtf8`, `Not64Bit`, `NoDblink` before anything was changed;
/// `TooNew` and `ForeignMigration` when another program's schema is there; `NotInstalled` when what is
/// missing cannot be made again (a part of a migration was dropped by hand); `Postgres` for the rest.
pub async fn install(
    client: &mut Client,
    settings: &ServerSettings,
) -> Result<InstallReport, Error> {
    check_server(client).await?;
    let missing_before = match state(client).await? {
        InstallState::Incomplete { missing } => missing,
        InstallState::Absent | InstallState::Installed { .. } => Vec::new(),
    };
    let version_before = version(client).await?;
    adopt(client).await?;
    let mut applied = Vec::new();
    for migration in MIGRATIONS {
        let transaction = begin(client).await?;
        if is_applied(&transaction, migration).await? {
            continue;
        }
        run(&transaction, migration).await?;
        transaction
            .execute(RECORD, &[&migration.version, &migration.name])
            .await?;
        transaction
            .batch_execute(&format!(
                "COMMENT ON SCHEMA toastrack IS 'Toastrack, version {}: types, casts and functions of offloaded columns'",
                migration.version
            ))
            .await?;
        transaction.commit().await?;
        info!(
            version = migration.version,
            name = migration.name,
            "migration applied"
        );
        applied.push(format!("{:04}_{}", migration.version, migration.name));
    }
    let direct_read = repair_and_configure(client, settings).await?;
    if let InstallState::Incomplete { missing } = state(client).await? {
        return Err(Error::NotInstalled {
            missing: missing.join(", "),
        });
    }
    Ok(InstallReport {
        version_before,
        version: VERSION,
        repaired: if version_before == VERSION {
            missing_before
        } else {
            Vec::new()
        },
        applied,
        direct_read,
    })
}

/// Takes the schema away. Nothing is done when it is not there.
///
/// One transaction. Needs a superuser.
///
/// # Errors
/// `InUse` with every column, domain, composite type and other object that still uses a toastrack type;
/// `Postgres` with the server's list where something else depends on the schema.
pub async fn uninstall(client: &mut Client) -> Result<(), Error> {
    let found = version(client).await?;
    if found > VERSION {
        return Err(Error::TooNew {
            found,
            known: VERSION,
        });
    }
    let transaction = begin(client).await?;
    let users = users(&transaction).await?;
    if !users.is_empty() {
        return Err(Error::InUse { users });
    }
    for migration in MIGRATIONS.iter().rev().filter(|m| m.version <= found) {
        transaction.batch_execute(migration.down).await?;
    }
    transaction.commit().await?;
    if found > 0 {
        info!(version = found, "schema removed");
    }
    Ok(())
}

/// Takes the lock that everything that changes the schema takes; held to the end of the transaction.
pub(crate) async fn lock_schema(transaction: &Transaction<'_>) -> Result<(), Error> {
    transaction
        .batch_execute(
            "SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('toastrack.migrations', 0))",
        )
        .await?;
    Ok(())
}

/// The highest version that is recorded; 0 when there is none. The schema's comment has it too, which a dump
/// without data keeps.
pub(crate) async fn version(client: &Client) -> Result<i32, Error> {
    let recorded: bool = client.query_one(RECORDED, &[]).await?.get(0);
    if !recorded {
        return Ok(0);
    }
    let row = client
        .query_one(
            "SELECT COALESCE(pg_catalog.max(version), \
                             pg_catalog.substring(pg_catalog.obj_description(pg_catalog.to_regnamespace('toastrack'), 'pg_namespace'), 'version ([0-9]{1,6})')::pg_catalog.int4, \
                             0) \
             FROM toastrack.migrations",
            &[],
        )
        .await?;
    Ok(row.get(0))
}

/// Records the migrations of a schema that came without its data, from the schema's comment.
async fn adopt(client: &mut Client) -> Result<(), Error> {
    let found = version(client).await?;
    if found == 0 {
        return Ok(());
    }
    let transaction = begin(client).await?;
    let empty: bool = transaction
        .query_one("SELECT NOT EXISTS (SELECT FROM toastrack.migrations)", &[])
        .await?
        .get(0);
    for migration in MIGRATIONS.iter().filter(|m| empty && m.version <= found) {
        transaction
            .execute(RECORD, &[&migration.version, &migration.name])
            .await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// A transaction in which names mean what they mean in `pg_catalog`, and that is alone at work.
async fn begin(client: &mut Client) -> Result<Transaction<'_>, Error> {
    let transaction = client.transaction().await?;
    transaction
        .batch_execute(
            "SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL client_min_messages = warning",
        )
        .await?;
    lock_schema(&transaction).await?;
    Ok(transaction)
}

async fn is_applied(transaction: &Transaction<'_>, migration: &Migration) -> Result<bool, Error> {
    let recorded: bool = transaction.query_one(RECORDED, &[]).await?.get(0);
    if !recorded {
        return Ok(false);
    }
    let row = transaction
        .query_opt(
            "SELECT name FROM toastrack.migrations WHERE version = $1",
            &[&migration.version],
        )
        .await?;
    match row.map(|row| row.get::<_, String>(0)) {
        None => Ok(false),
        Some(name) if name == migration.name => Ok(true),
        Some(found) => Err(Error::ForeignMigration {
            version: migration.version,
            found,
            expected: migration.name,
        }),
    }
}

/// Runs one migration; makes the extension it needs first.
async fn run(transaction: &Transaction<'_>, migration: &Migration) -> Result<(), Error> {
    let dblink_schema = if migration.needs_dblink() {
        dblink_schema(transaction).await?
    } else {
        String::new()
    };
    transaction
        .batch_execute(&migration.up(&dblink_schema))
        .await?;
    Ok(())
}

/// The quoted schema of the extension dblink, which is created in `toastrack` if it is nowhere.
async fn dblink_schema(transaction: &Transaction<'_>) -> Result<String, Error> {
    transaction
        .batch_execute("CREATE EXTENSION IF NOT EXISTS dblink SCHEMA toastrack")
        .await?;
    let row = transaction
        .query_one(
            "SELECT pg_catalog.quote_ident(n.nspname) FROM pg_catalog.pg_extension AS e \
             JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'dblink'",
            &[],
        )
        .await?;
    Ok(row.get(0))
}

/// Runs the repeatable migrations again, makes casts for types that came since, writes the settings.
async fn repair_and_configure(
    client: &mut Client,
    settings: &ServerSettings,
) -> Result<Option<DirectRead>, Error> {
    let mut transaction = begin(client).await?;
    for migration in MIGRATIONS {
        if REPEATABLE.contains(&migration.version) {
            run(&transaction, migration).await?;
        }
    }
    transaction
        .batch_execute("SELECT toastrack.create_casts()")
        .await?;
    let mut direct_read = None;
    if settings.store_directory.is_some() {
        let directory = settings.store_directory.as_deref();
        direct_read = Some(apply_store_directory(&mut transaction, directory).await?);
    }
    if settings.resolver.is_some() {
        apply_resolver(&transaction, settings.resolver.as_ref()).await?;
    }
    transaction.commit().await?;
    Ok(direct_read)
}

/// Refuses a server, a database or a role that cannot hold the schema, before anything is changed.
async fn check_server(client: &Client) -> Result<(), Error> {
    let row = client
        .query_one(
            "SELECT pg_catalog.current_setting('server_version_num')::pg_catalog.int4, \
                    pg_catalog.current_setting('server_version'), \
                    pg_catalog.current_setting('server_encoding'), \
                    pg_catalog.current_setting('is_superuser') = 'on', \
                    current_user::pg_catalog.text, \
                    EXISTS (SELECT FROM pg_catalog.pg_available_extensions WHERE name = 'dblink')",
            &[],
        )
        .await?;
    if row.get::<_, i32>(0) < OLDEST_SERVER {
        return Err(Error::ServerTooOld { found: row.get(1) });
    }
    if row.get::<_, &str>(2) != "UTF8" {
        return Err(Error::NotUtf8 { found: row.get(2) });
    }
    if !row.get::<_, bool>(3) {
        return Err(Error::NotSuperuser { role: row.get(4) });
    }
    if !row.get::<_, bool>(5) {
        return Err(Error::NoDblink);
    }
    let by_value: bool = client
        .query_one(
            "SELECT float8_pass_by_value FROM pg_catalog.pg_control_init()",
            &[],
        )
        .await?
        .get(0);
    if !by_value {
        return Err(Error::Not64Bit);
    }
    let found = version(client).await?;
    if found > VERSION {
        return Err(Error::TooNew {
            found,
            known: VERSION,
        });
    }
    Ok(())
}

/// Every object outside the schema that uses one of its types, an array of one, or a domain or composite
/// type over one, as Postgres describes it.
async fn users(transaction: &Transaction<'_>) -> Result<Vec<String>, Error> {
    let rows = transaction.query(USERS, &[]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

const USERS: &str = "
WITH RECURSIVE types AS (
    SELECT t.oid FROM pg_catalog.pg_type AS t
    WHERE t.typnamespace = pg_catalog.to_regnamespace('toastrack') AND t.typrelid = 0
), users AS (
    SELECT d.classid, d.objid, d.objsubid, d.deptype
    FROM types AS t
    JOIN pg_catalog.pg_depend AS d ON d.refclassid = 'pg_catalog.pg_type'::pg_catalog.regclass AND d.refobjid = t.oid
  UNION
    SELECT d.classid, d.objid, d.objsubid, d.deptype
    FROM users AS u
    JOIN pg_catalog.pg_depend AS d
      ON u.classid = 'pg_catalog.pg_type'::pg_catalog.regclass AND d.refclassid = u.classid AND d.refobjid = u.objid
)
SELECT DISTINCT pg_catalog.pg_describe_object(u.classid, u.objid, u.objsubid)
FROM users AS u
LEFT JOIN pg_catalog.pg_proc AS p ON u.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND p.oid = u.objid
LEFT JOIN pg_catalog.pg_type AS t ON u.classid = 'pg_catalog.pg_type'::pg_catalog.regclass AND t.oid = u.objid
WHERE u.deptype <> 'i'
  AND u.classid NOT IN ('pg_catalog.pg_cast'::pg_catalog.regclass, 'pg_catalog.pg_operator'::pg_catalog.regclass,
                        'pg_catalog.pg_opclass'::pg_catalog.regclass, 'pg_catalog.pg_opfamily'::pg_catalog.regclass,
                        'pg_catalog.pg_amop'::pg_catalog.regclass, 'pg_catalog.pg_amproc'::pg_catalog.regclass)
  AND COALESCE(p.pronamespace, 0) NOT IN ('pg_catalog'::pg_catalog.regnamespace,
                                          COALESCE(pg_catalog.to_regnamespace('toastrack'), 0))
  AND COALESCE(t.typnamespace, 0) IS DISTINCT FROM pg_catalog.to_regnamespace('toastrack')::pg_catalog.oid
ORDER BY 1";

const RECORD: &str = "INSERT INTO toastrack.migrations (version, name) VALUES ($1, $2)";

/// Is there a table of migrations? Asks the catalog itself: `to_regclass` may answer from a cache that has not
/// heard of what was committed while this session waited for the lock.
const RECORDED: &str = "
SELECT EXISTS (SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
               WHERE n.nspname = 'toastrack' AND c.relname = 'migrations')";

const OLDEST_SERVER: i32 = 140_000;
