//! Connections to a database, from a URL and what libpq's environment adds to it.

use std::collections::HashMap;
use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls};

use crate::error::{CommandError, Server};

const DEFAULT_PORT: u16 = 5432;
const DEFAULT_SOCKET_DIR: &str = "/var/run/postgresql";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How a command is told which database to use.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct DatabaseArgs {
    /// The database: a postgres:// URL, or settings such as "host=... dbname=...".
    ///
    /// What it leaves out comes from PGHOST, PGPORT, PGUSER, PGDATABASE, PGPASSWORD
    /// and the password file, as with psql. Without TLS.
    #[arg(
        long,
        short,
        value_name = "URL",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) database: String,
}

impl DatabaseArgs {
    /// Connects, with a name that shows up in `pg_stat_activity`.
    ///
    /// # Errors
    /// `Usage` for a URL that cannot be read, `Connect` when the server refuses.
    pub(crate) async fn connect(&self) -> Result<Client, CommandError> {
        connect(&resolve(&self.database, &Environment::of_process())?).await
    }
}

/// Connects with complete settings.
///
/// # Errors
/// `Connect` with the server's reason.
pub(crate) async fn connect(config: &Config) -> Result<Client, CommandError> {
    let (client, connection) =
        config
            .connect(NoTls)
            .await
            .map_err(|error| CommandError::Connect {
                target: describe(config),
                message: Server(&error).to_string(),
            })?;
    tokio::spawn(async move {
        // The command sees the failure too, as that of its own statement.
        if let Err(error) = connection.await {
            tracing::debug!(%error, "connection ended");
        }
    });
    Ok(client)
}

/// What libpq reads besides the connection string.
struct Environment {
    /// Without those that are empty.
    variables: HashMap<String, String>,
    /// The text of the password file, when there is one that only its owner can read.
    password_file: Option<String>,
    socket_dir_exists: bool,
}

impl Environment {
    fn of_process() -> Environment {
        let mut environment = Environment {
            variables: env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .filter(|(_, value)| !value.is_empty())
                .collect(),
            password_file: None,
            socket_dir_exists: Path::new(DEFAULT_SOCKET_DIR).is_dir(),
        };
        let file = match environment.variable("PGPASSFILE") {
            Some(file) => Some(PathBuf::from(file)),
            None => environment
                .variable("HOME")
                .map(|home| Path::new(&home).join(".pgpass")),
        };
        environment.password_file = file.and_then(|path| private_text(&path));
        environment
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }
}

/// A file that others can read is not used, as libpq does not use it.
fn private_text(path: &Path) -> Option<String> {
    let mode = std::fs::metadata(path).ok()?.permissions().mode();
    if mode & 0o077 != 0 {
        eprintln!(
            "toastrack: password file {} is readable by others and is not used",
            path.display()
        );
        return None;
    }
    std::fs::read_to_string(path).ok()
}

/// Completes the settings of a URL.
fn resolve(url: &str, environment: &Environment) -> Result<Config, CommandError> {
    let mut config = if url.trim().is_empty() {
        Config::new()
    } else {
        url.parse::<Config>()
            .map_err(|error| CommandError::Usage(format!("--database: {}", Server(&error))))?
    };
    let variable = |name| environment.variable(name);
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        match variable("PGHOST") {
            Some(host) => config.host(&host),
            None if environment.socket_dir_exists => config.host(DEFAULT_SOCKET_DIR),
            None => config.host("localhost"),
        };
    }
    if config.get_ports().is_empty() {
        let port = match variable("PGPORT") {
            Some(port) => port
                .parse()
                .map_err(|_| CommandError::Usage(format!("PGPORT: `{port}` is no port")))?,
            None => DEFAULT_PORT,
        };
        config.port(port);
    }
    if config.get_user().is_none() {
        let user = variable("PGUSER")
            .or_else(|| variable("USER"))
            .or_else(|| variable("LOGNAME"))
            .ok_or_else(|| {
                CommandError::Usage("no user: name one in --database or PGUSER".to_owned())
            })?;
        config.user(user);
    }
    if config.get_dbname().is_none() {
        let name = variable("PGDATABASE").or_else(|| config.get_user().map(str::to_owned));
        config.dbname(name.unwrap_or_default());
    }
    if config.get_password().is_none() {
        let password = variable("PGPASSWORD").or_else(|| {
            let text = environment.password_file.as_deref()?;
            text.lines().find_map(|line| password_of(line, &config))
        });
        if let Some(password) = password {
            config.password(password);
        }
    }
    if config.get_application_name().is_none() {
        config.application_name("toastrack");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    Ok(config)
}

/// The password of a `.pgpass` line, if the line is for these settings.
fn password_of(line: &str, config: &Config) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let fields = split_pgpass(line);
    let [host, port, database, user, password] = fields.as_slice() else {
        return None;
    };
    let matches = |field: &str, value: &str| field == "*" || field == value;
    let config_port = config.get_ports().first().copied().unwrap_or(DEFAULT_PORT);
    (matches(host, &host_of(config))
        && matches(port, &config_port.to_string())
        && matches(database, config.get_dbname()?)
        && matches(user, config.get_user()?))
    .then(|| password.clone())
}

/// Fields are separated by colons; a backslash keeps the next character as it is.
fn split_pgpass(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let last = fields.len() - 1;
        match character {
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => fields[last].extend(characters.next()),
            other => fields[last].push(other),
        }
    }
    fields
}

/// The first host; the default socket directory counts as `localhost`, as for libpq.
fn host_of(config: &Config) -> String {
    match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(path)) if path == Path::new(DEFAULT_SOCKET_DIR) => "localhost".to_owned(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => config
            .get_hostaddrs()
            .first()
            .map_or_else(|| "localhost".to_owned(), ToString::to_string),
    }
}

/// Host, port and database, without the password.
pub(crate) fn describe(config: &Config) -> String {
    format!(
        "database {:?} on {}:{} as {:?}",
        config.get_dbname().unwrap_or_default(),
        host_of(config),
        config.get_ports().first().copied().unwrap_or(DEFAULT_PORT),
        config.get_user().unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(url: &str, variables: &[(&str, &str)], pgpass: &str) -> Result<Config, String> {
        let given = [("USER", "me")].iter().chain(variables);
        let environment = Environment {
            variables: given
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            password_file: Some(pgpass.to_owned()),
            socket_dir_exists: true,
        };
        resolve(url, &environment).map_err(|error| error.to_string())
    }

    /// The URL comes first, then the environment, then libpq's defaults.
    #[test]
    fn settings_are_completed() {
        let config = resolved("", &[], "").unwrap();
        assert_eq!(config.get_hosts(), [Host::Unix(DEFAULT_SOCKET_DIR.into())]);
        assert_eq!(config.get_user(), Some("me"));
        assert_eq!(config.get_dbname(), Some("me"));

        let variables = [
            ("PGHOST", "db"),
            ("PGPORT", "6000"),
            ("PGUSER", "u"),
            ("PGDATABASE", "d"),
            ("PGPASSWORD", "p"),
        ];
        let config = resolved("", &variables, "").unwrap();
        assert_eq!(describe(&config), "database \"d\" on db:6000 as \"u\"");
        assert_eq!(config.get_password(), Some(&b"p"[..]));

        let config = resolved("postgres://a:b@h:1/c", &variables, "").unwrap();
        assert_eq!(describe(&config), "database \"c\" on h:1 as \"a\"");
        assert_eq!(config.get_password(), Some(&b"b"[..]));

        assert!(resolved("postgres://h:port/", &[], "").is_err());
        assert!(resolved("", &[("PGPORT", "x")], "").is_err());
    }

    /// The first matching line of the password file counts, escapes included.
    #[test]
    fn password_file() {
        let pgpass = "# h:1:c:a:comment\nh:2:c:a:other port\nshort:line\n*:1:c:a:p\\:w\\\\:x\nh:1:c:a:late\n";
        let config = resolved("postgres://a@h:1/c", &[], pgpass).unwrap();
        assert_eq!(config.get_password(), Some(&b"p:w\\:x"[..]));
        let config = resolved("postgres://b@h:1/c", &[], pgpass).unwrap();
        assert_eq!(config.get_password(), None);
        let config = resolved("", &[("PGUSER", "a")], "localhost:5432:a:a:s").unwrap();
        assert_eq!(config.get_password(), Some(&b"s"[..]));
    }
}
