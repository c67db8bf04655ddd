//! Toastrack as a child process: found or built, installed, configured, started, stopped.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use toastrack_testkit::Cluster;

use crate::args::Args;
use crate::endpoint::Endpoint;
use crate::error::BenchError;

/// A running sidecar; stopped when dropped.
#[derive(Debug)]
pub(crate) struct Sidecar {
    child: Child,
    endpoint: Endpoint,
    store: PathBuf,
}

impl Sidecar {
    /// Starts `toastrack serve` in front of the cluster and waits until it takes connections.
    ///
    /// Blocks for some seconds; for longer when the binary has to be built.
    ///
    /// # Errors
    /// `Sidecar` with the end of its log, or `Io`.
    pub(crate) fn start(
        args: &Args,
        cluster: &Cluster,
        directory: &Path,
        database: &str,
    ) -> Result<Sidecar, BenchError> {
        let binary = match &args.toastrack {
            Some(binary) => binary.clone(),
            None => find_or_build()?,
        };
        let address = free_address()?;
        let store = directory.join("store");
        let config = directory.join("toastrack.toml");
        let text = configuration(args, cluster, directory, address)?;
        fs::write(&config, text).map_err(BenchError::io(format!("write {}", config.display())))?;
        let log_path = directory.join("toastrack.log");
        let log = File::create(&log_path)
            .map_err(BenchError::io(format!("create {}", log_path.display())))?;

        run_install(&binary, cluster, &config, database)?;
        let mut child = Command::new(&binary)
            .arg("serve")
            .arg("--config")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(BenchError::io(format!("run {}", binary.display())))?;
        if let Err(reason) = wait_until_listening(&mut child, address) {
            stop(&mut child);
            let log = fs::read_to_string(&log_path).unwrap_or_default();
            let lines: Vec<&str> = log.lines().rev().take(10).collect();
            let end: Vec<&str> = lines.into_iter().rev().collect();
            return Err(BenchError::Sidecar {
                binary,
                reason: format!("{reason}\n{}", end.join("\n")),
            });
        }
        Ok(Sidecar {
            child,
            endpoint: Endpoint::new(address.port(), directory),
            store,
        })
    }

    /// Where clients connect.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The sidecar's process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Bytes of the files of the store, with what is set aside ahead of writes.
    pub(crate) fn store_bytes(&self) -> u64 {
        directory_bytes(&self.store)
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        stop(&mut self.child);
    }
}

/// Asks the sidecar to end, and ends it when it does not.
pub(crate) fn stop(child: &mut Child) {
    // `Child::kill` sends SIGKILL; the clean way out is SIGTERM.
    let asked = rustix::process::kill_process(Pid::from_child(child), Signal::TERM);
    let deadline = Instant::now() + Duration::from_secs(10);
    while asked.is_ok() && Instant::now() < deadline {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(Duration::from_millis(20)),
            Ok(Some(_)) | Err(_) => return,
        }
    }
    // Already ended is the only way these fail, and then there is nothing left to do.
    let _ = child.kill();
    let _ = child.wait();
}

/// The binary next to this one; built with the same profile when there is none.
fn find_or_build() -> Result<PathBuf, BenchError> {
    let own = std::env::current_exe().map_err(BenchError::io("find this binary"))?;
    let binary = own.with_file_name("toastrack");
    if binary.is_file() {
        return Ok(binary);
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--package", "toastrack-cli"]);
    if own
        .parent()
        .is_some_and(|folder| folder.ends_with("release"))
    {
        cargo.arg("--release");
    }
    if let Some(workspace) = workspace {
        cargo.current_dir(workspace);
    }
    let built = cargo.status().map_err(BenchError::io("run cargo build"))?;
    if built.success() && binary.is_file() {
        return Ok(binary);
    }
    Err(BenchError::Sidecar {
        binary,
        reason: "not found, and building it failed; give it with --toastrack".into(),
    })
}

/// A loopback port that nobody listens on.
pub(crate) fn free_address() -> Result<SocketAddr, BenchError> {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map_err(BenchError::io("find a free port"))
}

/// The configuration file of a run.
fn configuration(
    args: &Args,
    cluster: &Cluster,
    directory: &Path,
    address: SocketAddr,
) -> Result<String, BenchError> {
    let resolver = free_address()?;
    let admin = free_address()?;
    let quoted = |path: &Path| toml_string(&path.display().to_string());
    Ok(format!(
        "[listen]\n\
         address = \"{address}\"\n\
         unix_socket = {socket}\n\
         [server]\n\
         address = {server}\n\
         [control]\n\
         user = {user}\n\
         [store]\n\
         directory = {store}\n\
         [offload]\n\
         threshold = \"{threshold} B\"\n\
         [cache]\n\
         size = \"{cache} B\"\n\
         [resolver]\n\
         listen = \"{resolver}\"\n\
         secret_file = {secret}\n\
         [admin]\n\
         address = \"{admin}\"\n\
         token_file = {token}\n\
         [limits]\n\
         max_sessions = 300\n\
         drain_timeout = \"2s\"\n\
         [log]\n\
         level = \"warn\"\n",
        socket = quoted(directory),
        server = quoted(&cluster.socket_path()),
        user = toml_string(cluster.superuser()),
        store = quoted(&directory.join("store")),
        threshold = args.threshold_bytes(),
        cache = args.cache,
        secret = quoted(&directory.join("resolver-secret")),
        token = quoted(&directory.join("admin-token")),
    ))
}

/// A TOML basic string; paths and role names hold no control characters.
fn toml_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Creates the schema `toastrack` in the database.
fn run_install(
    binary: &Path,
    cluster: &Cluster,
    config: &Path,
    database: &str,
) -> Result<(), BenchError> {
    let output = Command::new(binary)
        .arg("install")
        .arg("--database")
        .arg(cluster.connection_string(database))
        .arg("--config")
        .arg(config)
        .stdin(Stdio::null())
        .output()
        .map_err(BenchError::io(format!("run {}", binary.display())))?;
    if output.status.success() {
        return Ok(());
    }
    Err(BenchError::Sidecar {
        binary: binary.to_owned(),
        reason: format!(
            "install failed: {}",
            String::from_utf8_lossy(&output.stderr).trim_end()
        ),
    })
}

const START_DEADLINE: Duration = Duration::from_secs(30);

fn wait_until_listening(child: &mut Child, address: SocketAddr) -> Result<(), String> {
    let deadline = Instant::now() + START_DEADLINE;
    while Instant::now() < deadline {
        if let Ok(Some(status)) = child.try_wait() {
            return Err(format!("serve ended with {status}"));
        }
        if std::net::TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(format!("serve does not listen on {address}"))
}

/// Bytes of all files beneath a directory; 0 where it cannot be read.
fn directory_bytes(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => directory_bytes(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_toml() {
        assert_eq!(toml_string(r#"/a "b"\c"#), r#""/a \"b\"\\c""#);
    }

    #[test]
    fn files_of_all_levels_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("inner")).unwrap();
        fs::write(directory.path().join("a"), [0; 10]).unwrap();
        fs::write(directory.path().join("inner/b"), [0; 5]).unwrap();
        assert_eq!(directory_bytes(directory.path()), 15);
        assert_eq!(directory_bytes(Path::new("/nonexistent")), 0);
    }
}
