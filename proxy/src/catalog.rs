//! What the proxy knows of each database: the `toastrack.*` types and the columns that use them.
//!
//! Owns:       one control connection for each database in use, and the catalog last read over it.
//! Promises:   a type OID is called plain only after the server has said so (S4, S5); what columns
//!             there are is a hint that may be some seconds old (S1).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::{Mutex, RwLock};
use toastrack_migrations::{ColumnKind, InstallState};
use toastrack_offload::ValueKind;
use toastrack_sql::{ColumnDef, Kind, OffloadedColumn, TableDef, Tables};
use tokio::time::{Instant, timeout};
use tokio_postgres::Client;

use crate::metrics::{ColumnCounters, ColumnKey, Metrics};
use crate::namesakes::Namesakes;
use crate::options::ControlOptions;
use crate::upstream::{ServerNumber, Upstream};

/// Why the catalog of a database could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The control connection failed.
    #[error("cannot read the catalog of database \"{database}\" as role \"{user}\": {reason}")]
    Control {
        /// The database.
        database: String,
        /// The control role.
        user: String,
        /// What the server or the system said.
        reason: String,
    },
}

/// The catalogs of all databases in use.
pub(crate) struct Catalogs {
    shared: Arc<Shared>,
    databases: Mutex<HashMap<(String, ServerNumber), Arc<Database>>>,
}

struct Shared {
    server: Arc<Upstream>,
    control: ControlOptions,
    threshold: u32,
    metrics: Arc<Metrics>,
}

/// The catalog of one database.
pub(crate) struct Database {
    name: String,
    /// The server that is asked, and whose sessions the answers are for.
    server: ServerNumber,
    shared: Arc<Shared>,
    current: RwLock<Arc<Snapshot>>,
    /// OIDs that the server says are no `toastrack.*` types.
    plain: RwLock<HashSet<u32>>,
    control: tokio::sync::Mutex<Option<Client>>,
    reads: AtomicU64,
    last_read: Mutex<Option<Instant>>,
}

/// The catalog at one moment.
#[derive(Default)]
pub(crate) struct Snapshot {
    /// What it was built from.
    parts: Parts,
    types: BTreeMap<u32, CatalogType>,
    /// The columns to offload; empty while the install is not whole.
    pub(crate) tables: Tables,
    columns: Vec<Arc<Column>>,
    by_number: HashMap<(u32, i16), Arc<Column>>,
    /// Of all columns; values and literals up to it are not looked at.
    pub(crate) smallest_threshold: u32,
}

/// A `toastrack.*` type or the array of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CatalogType {
    pub(crate) kind: ValueKind,
    pub(crate) array: bool,
    pub(crate) plain_oid: u32,
}

/// An offloaded column.
pub(crate) struct Column {
    pub(crate) kind: ValueKind,
    /// Values of more bytes leave the row.
    pub(crate) threshold: u32,
    /// The n of `varchar(n)`.
    pub(crate) max_chars: Option<u32>,
    pub(crate) counters: Arc<ColumnCounters>,
}

/// OIDs below are of objects that come with Postgres.
const FIRST_NORMAL_OID: u32 = 16384;
/// A catalog older than this is read again in the background when a session uses it.
const FRESH: Duration = Duration::from_secs(2);
const CONTROL_TIMEOUT: Duration = Duration::from_secs(10);

impl Catalogs {
    pub(crate) fn new(
        server: Arc<Upstream>,
        control: ControlOptions,
        threshold: u32,
        metrics: Arc<Metrics>,
    ) -> Catalogs {
        let shared = Arc::new(Shared {
            server,
            control,
            threshold,
            metrics,
        });
        Catalogs {
            shared,
            databases: Mutex::default(),
        }
    }

    /// The catalog of a database of a server, read at its first use.
    pub(crate) async fn open(
        &self,
        name: &str,
        server: ServerNumber,
    ) -> Result<Arc<Database>, CatalogError> {
        let database = {
            let mut databases = self.databases.lock();
            let database = databases
                .entry((name.to_owned(), server))
                .or_insert_with(|| {
                    let shared = Arc::clone(&self.shared);
                    Arc::new(Database::new(name.to_owned(), server, shared))
                });
            Arc::clone(database)
        };
        if database.reads.load(Ordering::Acquire) == 0 {
            database.refresh().await?;
        } else {
            database.refresh_if_stale();
        }
        Ok(database)
    }
}

impl Database {
    fn new(name: String, server: ServerNumber, shared: Arc<Shared>) -> Database {
        Database {
            name,
            server,
            shared,
            current: RwLock::default(),
            plain: RwLock::default(),
            control: tokio::sync::Mutex::new(None),
            reads: AtomicU64::new(0),
            last_read: Mutex::new(None),
        }
    }

    /// The catalog as last read.
    pub(crate) fn current(&self) -> Arc<Snapshot> {
        Arc::clone(&self.current.read())
    }

    /// Reads the catalog again in the background if it is old.
    pub(crate) fn refresh_if_stale(self: &Arc<Self>) {
        {
            let mut last_read = self.last_read.lock();
            if last_read.is_some_and(|at| at.elapsed() < FRESH) {
                return;
            }
            // Set before the read, so that one reader goes at a time.
            *last_read = Some(Instant::now());
        }
        let database = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = database.refresh().await {
                tracing::warn!(%error, "catalog not refreshed");
            }
        });
    }

    /// Reads the catalog again.
    pub(crate) async fn refresh(&self) -> Result<(), CatalogError> {
        let read_before = self.reads.load(Ordering::Acquire);
        let mut control = self.control.lock().await;
        if read_before == 0 && self.reads.load(Ordering::Acquire) > 0 {
            return Ok(());
        }
        let parts = self
            .with_control(&mut control, |client| Snapshot::read_parts(client).boxed())
            .await?;
        // Plans are cached by table set: one that says the same stays.
        if self.current.read().parts != parts {
            // A type that an open transaction made was called plain; once it is seen, nothing is.
            self.plain.write().clear();
            *self.current.write() = Arc::new(self.build(parts));
        }
        *self.last_read.lock() = Some(Instant::now());
        self.reads.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Tells the `toastrack.*` types among `oids`; the server is asked for those not seen before.
    pub(crate) async fn types_of(
        &self,
        oids: impl Iterator<Item = u32>,
    ) -> Result<Arc<Snapshot>, CatalogError> {
        let current = self.current();
        let unknown: Vec<u32> = {
            let plain = self.plain.read();
            oids.filter(|oid| {
                *oid >= FIRST_NORMAL_OID && !current.types.contains_key(oid) && !plain.contains(oid)
            })
            .collect()
        };
        if unknown.is_empty() {
            return Ok(current);
        }
        self.refresh().await?;
        let current = self.current();
        let mut plain = self.plain.write();
        plain.extend(
            unknown
                .into_iter()
                .filter(|oid| !current.types.contains_key(oid)),
        );
        drop(plain);
        Ok(current)
    }

    /// Reads something else over the control connection.
    pub(crate) async fn read_with_control<T>(
        &self,
        read: impl for<'c> Fn(&'c Client) -> BoxFuture<'c, Result<T, String>>,
    ) -> Result<T, CatalogError> {
        let mut control = self.control.lock().await;
        self.with_control(&mut control, read).await
    }

    /// Runs a read over the control connection, connecting first where there is none. A failed
    /// connection is opened once more, since servers restart.
    async fn with_control<T>(
        &self,
        control: &mut Option<Client>,
        read: impl for<'c> Fn(&'c Client) -> BoxFuture<'c, Result<T, String>>,
    ) -> Result<T, CatalogError> {
        let mut last = String::new();
        for _ in 0..2 {
            if control.as_ref().is_none_or(Client::is_closed) {
                match timeout(CONTROL_TIMEOUT, self.connect()).await {
                    Ok(Ok(client)) => *control = Some(client),
                    Ok(Err(error)) => {
                        last = error;
                        continue;
                    }
                    Err(_) => {
                        last = "timed out".to_owned();
                        continue;
                    }
                }
            }
            let Some(client) = control.as_ref() else {
                continue;
            };
            match timeout(CONTROL_TIMEOUT, read(client)).await {
                Ok(Ok(read)) => return Ok(read),
                Ok(Err(error)) => last = error,
                Err(_) => last = "timed out".to_owned(),
            }
            *control = None;
        }
        Err(CatalogError::Control {
            database: self.name.clone(),
            user: self.shared.control.user.clone(),
            reason: last,
        })
    }

    async fn connect(&self) -> Result<Client, String> {
        let mut config = tokio_postgres::Config::new();
        config
            .user(&self.shared.control.user)
            .dbname(&self.name)
            .application_name("toastrack control")
            // Names in catalog queries are qualified; this keeps operators from being shadowed.
            .options("-c search_path=pg_catalog");
        if let Some(password) = &self.shared.control.password {
            config.password(password);
        }
        self.shared.server.client_of(self.server, &config).await
    }

    fn build(&self, parts: Parts) -> Snapshot {
        let mut snapshot = Snapshot {
            smallest_threshold: u32::MAX,
            ..Snapshot::default()
        };
        for entry in &parts.catalog.types {
            let (kind, array, plain_oid) = (of_column(entry.kind), entry.is_array, entry.plain_oid);
            snapshot.types.insert(
                entry.oid,
                CatalogType {
                    kind,
                    array,
                    plain_oid,
                },
            );
        }
        let mut tables = Vec::new();
        for table in &parts.catalog.tables {
            let mut columns = Vec::new();
            for (position, column) in table.columns.iter().enumerate() {
                let kind = column.offloaded.map(of_column);
                let offloaded = kind.map(|kind| {
                    let id = snapshot.columns.len() as u32;
                    let known = Arc::new(Column {
                        kind,
                        threshold: column.threshold.unwrap_or(self.shared.threshold),
                        max_chars: max_chars(kind, column.type_modifier),
                        counters: self.shared.metrics.column(ColumnKey {
                            database: self.name.clone(),
                            schema: table.schema.clone(),
                            table: table.name.clone(),
                            column: column.name.clone(),
                            kind: sql_kind(kind).plain_name(),
                        }),
                    });
                    snapshot.smallest_threshold = snapshot.smallest_threshold.min(known.threshold);
                    snapshot
                        .by_number
                        .insert((table.oid, column.number), Arc::clone(&known));
                    snapshot.columns.push(known);
                    let fits = |type_oid| snapshot.fits(type_oid, kind);
                    let all_fit =
                        parts
                            .namesakes
                            .all_fit(&table.name, &column.name, position, fits);
                    if !all_fit {
                        tracing::warn!(
                            table = table.name,
                            column = column.name,
                            "not offloaded: has another type in another relation of the same name"
                        );
                    }
                    all_fit.then_some(OffloadedColumn {
                        id,
                        kind: sql_kind(kind),
                    })
                });
                let offloaded = offloaded.flatten();
                columns.push(ColumnDef {
                    name: column.name.clone(),
                    offloaded,
                    generated: column.is_generated,
                });
            }
            let (schema, name) = (table.schema.clone(), table.name.clone());
            tables.push(TableDef {
                schema,
                name,
                columns,
            });
        }
        if parts.whole {
            snapshot.tables = Tables::new(tables);
        } else if !snapshot.types.is_empty() {
            tracing::warn!(
                database = self.name,
                "install is not whole: nothing is offloaded"
            );
        }
        snapshot.parts = parts;
        snapshot
    }
}

impl Snapshot {
    /// Whether the database has any `toastrack.*` type.
    pub(crate) fn has_types(&self) -> bool {
        !self.types.is_empty()
    }

    pub(crate) fn type_of(&self, oid: u32) -> Option<CatalogType> {
        self.types.get(&oid).copied()
    }

    /// The OID of the type that stands for `kind`.
    pub(crate) fn oid_of(&self, kind: ValueKind) -> Option<u32> {
        let of_kind = |(_, known): &(&u32, &CatalogType)| known.kind == kind && !known.array;
        self.types.iter().find(of_kind).map(|(oid, _)| *oid)
    }

    /// The OID of the plain type of `kind`.
    pub(crate) fn plain_oid_of(&self, kind: ValueKind) -> Option<u32> {
        self.oid_of(kind)
            .and_then(|oid| self.type_of(oid))
            .map(|known| known.plain_oid)
    }

    /// Whether a parameter that the client declared as `declared` may be declared as `kind`'s
    /// `toastrack.*` type instead: drivers say varchar for text and the other way round.
    pub(crate) fn is_plain_of(&self, declared: u32, kind: Kind) -> bool {
        let plain = |kind| self.plain_oid_of(kind) == Some(declared);
        match value_kind(kind) {
            ValueKind::Text | ValueKind::Varchar => {
                plain(ValueKind::Text) || plain(ValueKind::Varchar)
            }
            other => plain(other),
        }
    }

    /// Whether a value of `kind` may be written to a column of this type without a change of meaning.
    fn fits(&self, type_oid: u32, kind: ValueKind) -> bool {
        let is_text = |kind| matches!(kind, ValueKind::Text | ValueKind::Varchar);
        let same = |other| other == kind || (is_text(other) && is_text(kind));
        self.types.iter().any(|(oid, known)| {
            !known.array && same(known.kind) && (*oid == type_oid || known.plain_oid == type_oid)
        })
    }

    /// A column by the number that `tables` gives it.
    pub(crate) fn column(&self, id: u32) -> Option<&Arc<Column>> {
        self.columns.get(id as usize)
    }

    /// A column by its relation's OID and its number there.
    pub(crate) fn column_at(&self, relation: u32, number: i16) -> Option<Arc<Column>> {
        self.by_number.get(&(relation, number)).cloned()
    }

    async fn read_parts(client: &Client) -> Result<Parts, String> {
        let state = toastrack_migrations::state(client)
            .await
            .map_err(|error| error.to_string())?;
        if matches!(state, InstallState::Absent) {
            return Ok(Parts::default());
        }
        let catalog = toastrack_migrations::catalog(client)
            .await
            .map_err(|e| e.to_string())?;
        let mut names: Vec<&str> = catalog.tables.iter().map(|table| &*table.name).collect();
        names.dedup();
        let namesakes = Namesakes::read(client, &names)
            .await
            .map_err(|error| error.to_string())?;
        Ok(Parts {
            namesakes,
            whole: state.is_ready(),
            catalog,
        })
    }
}

/// What the server says.
#[derive(Default, PartialEq, Eq)]
struct Parts {
    /// The install is whole and of this version.
    whole: bool,
    namesakes: Namesakes,
    catalog: toastrack_migrations::Catalog,
}

/// The store's word for a kind that the catalog names.
fn of_column(kind: ColumnKind) -> ValueKind {
    match kind {
        ColumnKind::Text => ValueKind::Text,
        ColumnKind::Varchar => ValueKind::Varchar,
        ColumnKind::Json => ValueKind::Json,
        ColumnKind::Jsonb => ValueKind::Jsonb,
        ColumnKind::Bytea => ValueKind::Bytea,
    }
}

/// The sql crate's word for a kind.
pub(crate) fn sql_kind(kind: ValueKind) -> Kind {
    match kind {
        ValueKind::Text => Kind::Text,
        ValueKind::Varchar => Kind::Varchar,
        ValueKind::Json => Kind::Json,
        ValueKind::Jsonb => Kind::Jsonb,
        ValueKind::Bytea => Kind::Bytea,
    }
}

/// The store's word for a kind.
pub(crate) fn value_kind(kind: Kind) -> ValueKind {
    match kind {
        Kind::Text => ValueKind::Text,
        Kind::Varchar => ValueKind::Varchar,
        Kind::Json => ValueKind::Json,
        Kind::Jsonb => ValueKind::Jsonb,
        Kind::Bytea => ValueKind::Bytea,
    }
}

/// A type modifier of varchar is the length and the 4 bytes of a header.
pub(crate) fn max_chars(kind: ValueKind, type_modifier: i32) -> Option<u32> {
    let length = type_modifier
        .checked_sub(4)
        .and_then(|length| u32::try_from(length).ok());
    length.filter(|_| kind == ValueKind::Varchar)
}
