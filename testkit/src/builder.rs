//! Settings of a private cluster, and how one is made from them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::binaries::ServerBinaries;
use crate::cluster::{Cluster, Layout};
use crate::error::TestkitError;
use crate::os_user::OsUser;
use crate::watcher::Watcher;

/// The longest path of a Unix socket that Linux takes, without its final NUL.
const SOCKET_PATH_MAX: usize = 107;
/// What the server puts behind the socket directory.
const SOCKET_NAME: &str = "/.s.PGSQL.65535.lock";

/// Settings of a private cluster; [`start`](ClusterBuilder::start) makes it.
#[derive(Clone, Debug, Default)]
pub struct ClusterBuilder {
    settings: Vec<(String, String)>,
    hba_lines: Vec<String>,
    data_files: Vec<(String, Vec<u8>)>,
    superuser_password: Option<String>,
    initdb_args: Vec<String>,
    parent: Option<PathBuf>,
    durable: bool,
    bin_dir: Option<PathBuf>,
    /// Connection settings of the primary.
    primary: Option<String>,
}

impl ClusterBuilder {
    /// Adds a line to `postgresql.conf`; a later one for the same name wins.
    ///
    /// The value is quoted here, so it is given bare: `setting("wal_level", "logical")`.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> ClusterBuilder {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Puts a line before those of `pg_hba.conf` that trust every local connection.
    #[must_use]
    pub fn hba_line(mut self, line: &str) -> ClusterBuilder {
        self.hba_lines.push(line.to_owned());
        self
    }

    /// Puts a file that only the server's user can read, a certificate say, into the data directory,
    /// where settings name it without a path.
    #[must_use]
    pub fn data_file(mut self, name: &str, content: impl Into<Vec<u8>>) -> ClusterBuilder {
        self.data_files.push((name.to_owned(), content.into()));
        self
    }

    /// Gives the superuser a password, which [`Cluster::connection_string`] then holds.
    #[must_use]
    pub fn superuser_password(mut self, password: &str) -> ClusterBuilder {
        self.superuser_password = Some(password.to_owned());
        self
    }

    /// Adds an argument of `initdb`, after the defaults `-E UTF8 --locale=C.UTF-8`.
    #[must_use]
    pub fn initdb_arg(mut self, argument: &str) -> ClusterBuilder {
        self.initdb_args.push(argument.to_owned());
        self
    }

    /// Makes the cluster's own directory beneath `parent` instead of the system's
    /// directory for temporary files. The server's user must be able to reach it.
    #[must_use]
    pub fn directory(mut self, parent: impl Into<PathBuf>) -> ClusterBuilder {
        self.parent = Some(parent.into());
        self
    }

    /// Whether commits reach the disk. Off by default: a test's cluster outlives
    /// a crash of the server, not of the machine. Benchmarks and the demo turn
    /// it on, and then run with the server's own defaults.
    #[must_use]
    pub fn durable(mut self, durable: bool) -> ClusterBuilder {
        self.durable = durable;
        self
    }

    /// Uses the binaries of this directory instead of searching for some.
    #[must_use]
    pub fn bin_dir(mut self, directory: impl Into<PathBuf>) -> ClusterBuilder {
        self.bin_dir = Some(directory.into());
        self
    }

    /// Makes a standby that follows `primary`, which must be running, with the settings of `primary`
    /// and those given here.
    #[must_use]
    pub fn standby_of(mut self, primary: &Cluster) -> ClusterBuilder {
        self.primary = Some(primary.socket_connection_string("replication"));
        self
    }

    /// Makes the cluster and waits until it accepts connections.
    ///
    /// Blocks the calling thread, for about two seconds on a small machine.
    ///
    /// # Errors
    /// Any [`TestkitError`]; nothing is left behind then.
    pub fn start(self) -> Result<Cluster, TestkitError> {
        let binaries = match &self.bin_dir {
            Some(directory) => ServerBinaries::in_directory(directory)?,
            None => ServerBinaries::find()?,
        };
        let user = OsUser::for_server()?;
        let layout = self.lay_out(user)?;
        let watcher = Watcher::start(&layout.data_dir, layout.directories())?;
        // From here on dropping the cluster releases the watcher and removes the directory.
        let mut cluster = Cluster::assemble(
            binaries,
            user,
            layout,
            watcher,
            self.superuser_password.clone(),
        );
        match &self.primary {
            Some(primary) => copy_primary(primary, &cluster)?,
            None => self.initdb(&cluster)?,
        }
        self.configure(&cluster)?;
        cluster.start_server()?;
        Ok(cluster)
    }

    /// Makes the directories, owned by the server's user.
    fn lay_out(&self, user: OsUser) -> Result<Layout, TestkitError> {
        let parent = self.parent.clone().unwrap_or_else(std::env::temp_dir);
        let base = make_directory(&parent, user)?;
        let beside = base.path().join("socket");
        let (socket_dir, socket_base) =
            if beside.as_os_str().len() + SOCKET_NAME.len() <= SOCKET_PATH_MAX {
                fs::create_dir(&beside).map_err(TestkitError::io("create", &beside))?;
                user.own(&beside)?;
                (beside, None)
            } else {
                let short = make_directory(Path::new("/tmp"), user)?;
                (short.path().to_path_buf(), Some(short))
            };
        Ok(Layout {
            data_dir: base.path().join("data"),
            log_path: base.path().join("server.log"),
            socket_dir,
            base,
            socket_base,
        })
    }

    fn initdb(&self, cluster: &Cluster) -> Result<(), TestkitError> {
        let initdb = cluster.binaries().path("initdb");
        let mut command = Command::new(&initdb);
        command
            .arg("--pgdata")
            .arg(cluster.data_dir())
            .args(["--username", cluster.superuser(), "--auth", "trust"])
            .args(["--encoding", "UTF8", "--locale", "C.UTF-8"])
            .args(&self.initdb_args)
            .current_dir("/")
            .stdin(Stdio::null());
        if !self.durable {
            command.arg("--no-sync");
        }
        cluster.as_server_user(&mut command);
        let password_file = cluster.base_dir().join("password");
        if let Some(password) = &self.superuser_password {
            fs::write(&password_file, format!("{password}\n"))
                .and_then(|()| {
                    fs::set_permissions(&password_file, fs::Permissions::from_mode(0o600))
                })
                .map_err(TestkitError::io("write", &password_file))?;
            cluster.give_to_server(&password_file)?;
            command.arg("--pwfile").arg(&password_file);
        }
        let output = command.output().map_err(TestkitError::io("run", &initdb))?;
        if self.superuser_password.is_some() {
            fs::remove_file(&password_file).map_err(TestkitError::io("remove", &password_file))?;
        }
        if output.status.success() {
            return Ok(());
        }
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        Err(TestkitError::InitdbFailed {
            status: output.status.to_string(),
            output: text.trim().to_owned(),
        })
    }

    /// Appends to the configuration that `initdb` wrote; its files keep their owner.
    fn configure(&self, cluster: &Cluster) -> Result<(), TestkitError> {
        let mut lines = vec![
            ("listen_addresses", cluster.host().to_owned()),
            (
                "unix_socket_directories",
                cluster.socket_dir().display().to_string(),
            ),
            ("max_connections", "200".to_owned()),
        ];
        if !self.durable {
            lines.push(("fsync", "off".to_owned()));
            lines.push(("full_page_writes", "off".to_owned()));
        }
        let given = self.settings.iter().map(|(n, v)| (n.as_str(), v.clone()));
        let conf = cluster.data_dir().join("postgresql.conf");
        let mut text = fs::read_to_string(&conf).map_err(TestkitError::io("read", &conf))?;
        for (name, value) in lines.into_iter().chain(given) {
            text.push_str(&format!("{name} = '{}'\n", value.replace('\'', "''")));
        }
        fs::write(&conf, text).map_err(TestkitError::io("write", &conf))?;

        for (name, content) in &self.data_files {
            let file = cluster.data_dir().join(name);
            fs::write(&file, content)
                .and_then(|()| fs::set_permissions(&file, fs::Permissions::from_mode(0o600)))
                .map_err(TestkitError::io("write", &file))?;
            cluster.give_to_server(&file)?;
        }
        if !self.hba_lines.is_empty() {
            let hba = cluster.data_dir().join("pg_hba.conf");
            let trusting = fs::read_to_string(&hba).map_err(TestkitError::io("read", &hba))?;
            let text = format!("{}\n{trusting}", self.hba_lines.join("\n"));
            fs::write(&hba, text).map_err(TestkitError::io("write", &hba))?;
        }
        Ok(())
    }
}

/// Copies a running primary, with what makes the copy follow it.
fn copy_primary(conninfo: &str, cluster: &Cluster) -> Result<(), TestkitError> {
    // Beside the server itself: a directory of links may have only some of the programs.
    let postgres = cluster.binaries().path("postgres");
    let basebackup = fs::canonicalize(&postgres)
        .map_err(TestkitError::io("find", &postgres))?
        .with_file_name("pg_basebackup");
    let mut command = Command::new(&basebackup);
    command
        .arg("--pgdata")
        .arg(cluster.data_dir())
        .args(["--write-recovery-conf", "--checkpoint", "fast", "--no-sync"])
        .args(["--dbname", conninfo])
        .current_dir("/")
        .stdin(Stdio::null());
    cluster.as_server_user(&mut command);
    let output = command
        .output()
        .map_err(TestkitError::io("run", &basebackup))?;
    if output.status.success() {
        return Ok(());
    }
    Err(TestkitError::InitdbFailed {
        status: output.status.to_string(),
        output: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

/// A new directory that the server's user owns and everybody may enter.
fn make_directory(parent: &Path, user: OsUser) -> Result<tempfile::TempDir, TestkitError> {
    let directory = tempfile::Builder::new()
        .prefix("toastrack-pg-")
        .permissions(fs::Permissions::from_mode(0o755))
        .tempdir_in(parent)
        .map_err(TestkitError::io("create a directory in", parent))?;
    user.own(directory.path())?;
    Ok(directory)
}
