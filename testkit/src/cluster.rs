//! A running private cluster.
//!
//! Owns:     the server process, its directories, and the watcher of both.
//! Promises: after a drop neither the process nor the directories are left.
//! Proof:    tests/cluster.rs

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::binaries::ServerBinaries;
use crate::builder::ClusterBuilder;
use crate::error::TestkitError;
use crate::os_user::OsUser;
use crate::port::free_port;
use crate::watcher::Watcher;

const POLL: Duration = Duration::from_millis(10);
/// Generous, since many clusters may start at once on a small machine.
const START_TIMEOUT: Duration = Duration::from_secs(120);
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
const PORT_TRIES: u32 = 20;
const LOG_TAIL_BYTES: usize = 4096;

/// A private Postgres cluster, stopped and removed when dropped.
#[derive(Debug)]
pub struct Cluster {
    binaries: ServerBinaries,
    user: OsUser,
    layout: Layout,
    watcher: Watcher,
    password: Option<String>,
    server: Option<Child>,
    /// Zero until the first start; kept over restarts.
    port: u16,
}

/// The places of one cluster.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) data_dir: PathBuf,
    pub(crate) log_path: PathBuf,
    pub(crate) socket_dir: PathBuf,
    pub(crate) base: TempDir,
    /// Set when `base` is too deep for a socket beneath it.
    pub(crate) socket_base: Option<TempDir>,
}

impl Layout {
    /// The directories to remove with the cluster.
    pub(crate) fn directories(&self) -> impl Iterator<Item = &Path> {
        [Some(&self.base), self.socket_base.as_ref()]
            .into_iter()
            .flatten()
            .map(TempDir::path)
    }
}

/// How a start ended that did not fail for good.
enum Start {
    Ready,
    PortTaken,
}

impl Cluster {
    /// Starts a cluster with the default settings: not durable, everybody local trusted.
    ///
    /// # Errors
    /// See [`ClusterBuilder::start`].
    pub fn start() -> Result<Cluster, TestkitError> {
        Cluster::builder().start()
    }

    /// The settings of a cluster that is yet to be started.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder::default()
    }

    pub(crate) fn assemble(
        binaries: ServerBinaries,
        user: OsUser,
        layout: Layout,
        watcher: Watcher,
        password: Option<String>,
    ) -> Cluster {
        Cluster {
            binaries,
            user,
            layout,
            watcher,
            password,
            server: None,
            port: 0,
        }
    }

    /// The TCP port, the same over restarts.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address that the server listens on.
    pub fn host(&self) -> &'static str {
        "127.0.0.1"
    }

    /// The directory that holds the server's Unix socket.
    pub fn socket_dir(&self) -> &Path {
        &self.layout.socket_dir
    }

    /// The server's Unix socket itself.
    pub fn socket_path(&self) -> PathBuf {
        self.socket_dir().join(format!(".s.PGSQL.{}", self.port))
    }

    /// The role that owns the cluster.
    pub fn superuser(&self) -> &'static str {
        "postgres"
    }

    /// The server's data directory.
    pub fn data_dir(&self) -> &Path {
        &self.layout.data_dir
    }

    /// The directory that holds all of the cluster; what a test puts here is removed with it.
    pub fn base_dir(&self) -> &Path {
        self.layout.base.path()
    }

    /// The file that the server logs to.
    pub fn log_path(&self) -> &Path {
        &self.layout.log_path
    }

    /// The version as `server_version_num` gives it: 150018 for 15.18.
    pub fn version_num(&self) -> u32 {
        self.binaries.version_num()
    }

    /// The binaries that the cluster runs.
    pub fn binaries(&self) -> &ServerBinaries {
        &self.binaries
    }

    /// The uid and gid of the operating-system user that the server runs as.
    pub fn server_uid_gid(&self) -> (u32, u32) {
        (self.user.uid, self.user.gid)
    }

    /// The process id of the postmaster, or `None` while stopped.
    pub fn server_pid(&self) -> Option<u32> {
        self.server.as_ref().map(Child::id)
    }

    /// Connection settings of the superuser over TCP, in libpq's keyword form.
    pub fn connection_string(&self, database: &str) -> String {
        self.conninfo(self.host(), database)
    }

    /// Connection settings of the superuser over the Unix socket, in libpq's keyword form.
    pub fn socket_connection_string(&self, database: &str) -> String {
        self.conninfo(&self.socket_dir().display().to_string(), database)
    }

    fn conninfo(&self, host: &str, database: &str) -> String {
        let mut text = format!(
            "host={} port={} user={} dbname={}",
            quote_conninfo(host),
            self.port,
            self.superuser(),
            quote_conninfo(database)
        );
        if let Some(password) = &self.password {
            text.push_str(&format!(" password={}", quote_conninfo(password)));
        }
        text
    }

    /// Creates a database.
    ///
    /// Blocking; may be called from inside an async runtime.
    ///
    /// # Errors
    /// `Statement` with the server's message.
    pub fn create_database(&self, name: &str) -> Result<(), TestkitError> {
        let quoted = name.replace('"', "\"\"");
        self.execute("postgres", &format!("CREATE DATABASE \"{quoted}\""))
    }

    /// Runs statements as the superuser, over the Unix socket.
    ///
    /// Blocking; may be called from inside an async runtime.
    ///
    /// # Errors
    /// `Statement` with the server's message.
    pub fn execute(&self, database: &str, sql: &str) -> Result<(), TestkitError> {
        let conninfo = self.socket_connection_string(database);
        // A thread of its own, since a runtime may not be started inside another.
        let outcome = thread::scope(|scope| {
            scope
                .spawn(|| execute_blocking(&conninfo, sql))
                .join()
                .unwrap_or_else(|_| Err("the connection's thread panicked".to_owned()))
        });
        outcome.map_err(|message| TestkitError::Statement {
            database: database.to_owned(),
            message,
        })
    }

    /// Stops the server if it runs (fast shutdown), and starts it again on the same port.
    ///
    /// # Errors
    /// `ServerEnded`, `NotReady`, or `Io`.
    pub fn restart(&mut self) -> Result<(), TestkitError> {
        self.stop()?;
        self.start_server()
    }

    /// Fast shutdown: sessions are ended, a checkpoint is written.
    ///
    /// Does nothing when the server is stopped already.
    ///
    /// # Errors
    /// `Io` when the process cannot be waited for.
    pub fn stop(&mut self) -> Result<(), TestkitError> {
        self.stop_with(Signal::INT)
    }

    /// Immediate shutdown: what a crash of the server leaves, without a checkpoint.
    ///
    /// Does nothing when the server is stopped already.
    ///
    /// # Errors
    /// `Io` when the process cannot be waited for.
    pub fn stop_immediate(&mut self) -> Result<(), TestkitError> {
        self.stop_with(Signal::QUIT)
    }

    fn stop_with(&mut self, signal: Signal) -> Result<(), TestkitError> {
        let Some(mut server) = self.server.take() else {
            return Ok(());
        };
        let waiting = || TestkitError::io("wait for the server of", &self.layout.data_dir);
        for signal in [signal, Signal::QUIT, Signal::KILL] {
            // The child is not reaped yet, so its id cannot belong to another process.
            if let Some(pid) = Pid::from_raw(server.id() as i32) {
                let _ = kill_process(pid, signal);
            }
            if wait_timeout(&mut server, STOP_TIMEOUT)
                .map_err(waiting())?
                .is_some()
            {
                return Ok(());
            }
        }
        server.wait().map(drop).map_err(waiting())
    }

    /// Starts the server on its port, or on the first start on a free one.
    pub(crate) fn start_server(&mut self) -> Result<(), TestkitError> {
        let chosen_before = self.port != 0;
        for _ in 0..PORT_TRIES {
            if !chosen_before {
                self.port = free_port()?;
            }
            match self.try_start()? {
                Start::Ready => return Ok(()),
                Start::PortTaken => thread::sleep(POLL),
            }
        }
        Err(TestkitError::NoFreePort { tries: PORT_TRIES })
    }

    fn try_start(&mut self) -> Result<Start, TestkitError> {
        let log_before = log_len(&self.layout.log_path);
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.layout.log_path)
            .map_err(TestkitError::io("open", &self.layout.log_path))?;
        let log_again = log
            .try_clone()
            .map_err(TestkitError::io("open", &self.layout.log_path))?;
        let postgres = self.binaries.path("postgres");
        let mut command = Command::new(&postgres);
        command
            .arg("-D")
            .arg(&self.layout.data_dir)
            .arg("-p")
            .arg(self.port.to_string())
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(log_again)
            // A Ctrl-C at the terminal is for the owner, who stops the server in order.
            .process_group(0);
        self.as_server_user(&mut command);
        let server = command
            .spawn()
            .map_err(TestkitError::io("run", &postgres))?;
        let server = self.server.insert(server);

        let mut waited = Duration::ZERO;
        while waited < START_TIMEOUT {
            let status = server
                .try_wait()
                .map_err(TestkitError::io("wait for", &postgres))?;
            if let Some(status) = status {
                self.server = None;
                let log = log_tail(&self.layout.log_path, log_before);
                if log.contains("could not bind") {
                    return Ok(Start::PortTaken);
                }
                return Err(TestkitError::ServerEnded {
                    status: status.to_string(),
                    log,
                });
            }
            if is_ready(&self.layout.data_dir, server.id()) {
                return Ok(Start::Ready);
            }
            thread::sleep(POLL);
            waited += POLL;
        }
        Err(TestkitError::NotReady {
            seconds: START_TIMEOUT.as_secs(),
            log: log_tail(&self.layout.log_path, log_before),
        })
    }

    /// Makes a command run as the server's user, free of this process' libpq settings.
    pub(crate) fn as_server_user(&self, command: &mut Command) {
        self.user.apply(command);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(&name);
            }
        }
    }

    pub(crate) fn give_to_server(&self, path: &Path) -> Result<(), TestkitError> {
        self.user.own(path)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Nothing can be done about a server that survives SIGKILL.
        let _ = self.stop_immediate();
        self.watcher.release();
        // The directories go with `layout`.
    }
}

/// Whether the server wrote into its lock file that it takes connections.
fn is_ready(data_dir: &Path, pid: u32) -> bool {
    let Ok(text) = fs::read_to_string(data_dir.join("postmaster.pid")) else {
        return false;
    };
    let mut lines = text.lines();
    // The lock file of an earlier run may still be there: its pid tells them apart.
    let same = lines.next().and_then(|line| line.trim().parse().ok()) == Some(pid);
    // Line 8 is the status; the first one is gone already.
    same && lines.nth(6).map(str::trim) == Some("ready")
}

fn wait_timeout(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if waited >= limit {
            return Ok(None);
        }
        thread::sleep(POLL);
        waited += POLL;
    }
}

fn log_len(path: &Path) -> usize {
    fs::metadata(path).map_or(0, |metadata| metadata.len() as usize)
}

/// The end of what the log holds behind byte `from`.
fn log_tail(path: &Path, from: usize) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    let start = from.max(bytes.len().saturating_sub(LOG_TAIL_BYTES));
    let tail = bytes.get(start..).unwrap_or_default();
    String::from_utf8_lossy(tail).trim().to_owned()
}

/// Quotes a value for libpq's `keyword=value` form.
fn quote_conninfo(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@+".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn execute_blocking(conninfo: &str, sql: &str) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(conninfo, tokio_postgres::NoTls)
            .await
            .map_err(|error| describe(&error))?;
        let driver = tokio::spawn(connection);
        let outcome = client
            .batch_execute(sql)
            .await
            .map_err(|error| describe(&error));
        drop(client);
        // Wait for the session to be gone, so that its database can be dropped or copied.
        let _ = driver.await;
        outcome
    })
}

/// The server's message, which the driver's own `Display` leaves out.
fn describe(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(server) => format!("{} ({})", server.message(), server.code().code()),
        None => error.to_string(),
    }
}
