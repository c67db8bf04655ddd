//! One client connection and its backend connection.
//!
//! Owns:       both sockets, in one task with two loops: [`frontend`] carries what the client sends,
//!             [`backend`] what the server answers.
//! Promises:   the end of the server's loop, or an error, ends both; when the client stops sending, the
//!             server is told so and its last answers are passed on. Neither loop waits for the other but
//!             through the sockets, so what one side does not read is not read from the other (S7).
//! Invariants: S2 to S6 of docs/invariants.md; L1 and L2 of [`ledger`].

mod asked;
mod backend;
mod copy_answers;
mod copy_in;
mod copy_out;
mod copy_target;
mod describe;
mod errors;
mod frontend;
mod inbox;
mod ledger;
mod outbox;
mod sasl;
mod statements;

#[cfg(test)]
mod ledger_tests;

pub(crate) use statements::{ParamSite, Shape, ShapeColumn};

use std::io;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use toastrack_cache::DetoastCache;
use toastrack_offload::Store;
use toastrack_sql::Analyzer;
use toastrack_value::encoding::ClientEncoding;
use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::catalog::{Catalogs, Database, Snapshot};
use crate::detoast::Detoaster;
use crate::intercept::{CopyTarget, Sink};
use crate::metrics::Metrics;
use crate::options::ProxyOptions;
use crate::server::Socket;
use crate::startup::{self, SessionStart};
use crate::tls::Acceptor;
use crate::upstream::{ServerNumber, Upstream};
use ledger::Ledger;

/// What all sessions of a proxy share.
pub(crate) struct Context {
    pub(crate) options: ProxyOptions,
    /// TLS with clients, if there may be any.
    pub(crate) acceptor: Option<Acceptor>,
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) store: Store,
    pub(crate) cache: DetoastCache,
    pub(crate) detoaster: Detoaster,
    pub(crate) catalogs: Catalogs,
    pub(crate) analyzer: Analyzer,
    /// The proxy is stopping: sessions end as soon as they are idle.
    pub(crate) draining: CancellationToken,
}

/// What the two loops of a session share.
pub(crate) struct Session {
    pub(crate) context: Arc<Context>,
    database_name: String,
    /// The server that the session is with.
    server: ServerNumber,
    /// Set at the first ReadyForQuery.
    database: OnceLock<Arc<Database>>,
    pub(crate) ledger: Mutex<Ledger>,
    pub(crate) settings: Mutex<Settings>,
    /// The session's open transaction has changed the schema, as no catalog can show yet.
    schema_pending: AtomicBool,
    /// The frontend loop is to send [`ABORT`]; its entry is in the ledger already.
    abort: Mutex<bool>,
    abort_wanted: Notify,
    /// A client that binds its authentication to the TLS channel binds it to the server's own.
    channel_binding: bool,
    /// A COPY ... FROM STDIN has begun whose rows the frontend loop is to look into.
    copy_in: Mutex<Option<Arc<CopyTarget>>>,
    /// CopyData has passed without a look since a copy was asked for, or ended.
    rows_passed: AtomicBool,
    /// Questions of our own are under way.
    asking: AtomicBool,
}

/// What the server last reported of itself.
pub(crate) struct Settings {
    pub(crate) client_encoding: ClientEncoding,
    pub(crate) server_utf8: bool,
    pub(crate) standard_conforming_strings: bool,
}

impl Session {
    /// The catalog of the session's database as last read; None before the session is ready.
    pub(crate) fn catalog(&self) -> Option<Arc<Snapshot>> {
        self.database.get().map(|database| database.current())
    }

    /// The catalog, if values may leave the row in this session now: the install is whole, the catalog
    /// shows the schema that the session sees, both encodings are UTF-8, so that the bytes of a value
    /// mean the same everywhere, and a backslash in a literal is one.
    pub(crate) fn offloading(&self) -> Option<Arc<Snapshot>> {
        let catalog = self.catalog()?;
        if catalog.tables.is_empty() || self.schema_pending.load(Ordering::Relaxed) {
            return None;
        }
        let settings = self.settings.lock();
        let utf8 = settings.server_utf8 && matches!(settings.client_encoding, ClientEncoding::Utf8);
        (utf8 && settings.standard_conforming_strings).then_some(catalog)
    }

    fn sink(&self) -> Sink<'_> {
        Sink {
            store: &self.context.store,
            cache: &self.context.cache,
            metrics: &self.context.metrics,
        }
    }

    /// To be called when questions were sent, answered or dropped.
    fn note_questions(&self, ledger: &Ledger) {
        self.asking.store(ledger.is_asking(), Ordering::Relaxed);
    }

    /// From now on, until the catalog has been read again, it may not show the schema that the session
    /// sees.
    pub(crate) fn schema_changes(&self) {
        self.schema_pending.store(true, Ordering::Relaxed);
    }

    /// Asks the frontend loop to abort the transaction in the backend.
    pub(crate) fn request_abort(&self) {
        *self.abort.lock() = true;
        self.abort_wanted.notify_one();
    }
}

/// Fails in the server, which aborts the open transaction there, after the proxy itself has told
/// the client of an error.
const ABORT: &[u8] = b"do $toastrack$ begin raise exception 'a value could not be read from \
    the chunk store' using errcode = 'XX001'; end $toastrack$";

/// Serves one session to its end.
pub(crate) async fn run(
    client: &mut Socket,
    start: SessionStart,
    context: &Arc<Context>,
) -> io::Result<()> {
    let (mut server, number) = match context.upstream.connect().await {
        Ok(server) => server,
        Err(error) => {
            crate::metrics::add(&context.metrics.sessions_refused, 1);
            let message = format!("could not connect to the server: {error}");
            startup::refuse(client, "08006", message).await?;
            return Ok(());
        }
    };
    server.write_all(&start.packet).await?;
    server.flush().await?;
    let certificate = server.peer_certificate();
    let channel_binding = start.shown.is_some() && start.shown.as_ref() == certificate;
    if start.replication {
        server.write_all(&start.rest).await?;
        server.flush().await?;
        if !channel_binding {
            sasl::pass_offer(client, &mut server).await?;
        }
        tokio::io::copy_bidirectional(client, &mut server).await?;
        return Ok(());
    }
    tracing::debug!(
        user = start.user,
        database = start.database,
        "session starts"
    );
    let session = Session {
        context: Arc::clone(context),
        database_name: start.database,
        server: number,
        database: OnceLock::new(),
        ledger: Mutex::new(Ledger::new()),
        settings: Mutex::new(Settings {
            client_encoding: ClientEncoding::SqlAscii,
            server_utf8: false,
            standard_conforming_strings: true,
        }),
        schema_pending: AtomicBool::new(false),
        abort: Mutex::new(false),
        abort_wanted: Notify::new(),
        channel_binding,
        copy_in: Mutex::default(),
        rows_passed: AtomicBool::new(false),
        asking: AtomicBool::new(false),
    };
    let (client_reader, client_writer) = client.split();
    let (server_reader, server_writer) = server.split();
    let mut frontend = frontend::Frontend::new(&session, client_reader, server_writer, &start.rest);
    let mut backend = backend::Backend::new(&session, server_reader, client_writer);
    let answers = backend.run();
    tokio::pin!(answers);
    // Dropping the loop that has not ended is what ends it: the sockets close behind both.
    tokio::select! {
        ended = frontend.run() => ended?,
        ended = &mut answers => return ended,
    }
    // The client will say no more, but may still listen for what it has asked.
    answers.await
}
