//! Finds the server binaries of an installed PostgreSQL.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::TestkitError;

/// The oldest major version that a cluster is made with.
const OLDEST_MAJOR: u32 = 14;
/// Where Debian and Ubuntu install one directory for each major version.
const DEBIAN_ROOT: &str = "/usr/lib/postgresql";

/// A directory with `initdb` and `postgres`, and the version they report.
#[derive(Clone, Debug)]
pub struct ServerBinaries {
    directory: PathBuf,
    version_num: u32,
}

impl ServerBinaries {
    /// Finds binaries of version 14 or newer.
    ///
    /// Searched in this order: `$TOASTRACK_PG_BIN`, `$PATH`, then the newest of
    /// `/usr/lib/postgresql/*/bin`. A directory named by `$TOASTRACK_PG_BIN` is
    /// used whatever the others hold.
    ///
    /// # Errors
    /// `NoServerBinaries` names the places and the package to install.
    pub fn find() -> Result<ServerBinaries, TestkitError> {
        if let Some(directory) = env::var_os("TOASTRACK_PG_BIN") {
            return ServerBinaries::in_directory(Path::new(&directory));
        }
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path)
            .chain(debian_directories())
            .filter_map(|directory| ServerBinaries::in_directory(&directory).ok())
            .next()
            .ok_or_else(|| TestkitError::NoServerBinaries {
                searched: format!("$TOASTRACK_PG_BIN, $PATH, {DEBIAN_ROOT}/*/bin"),
            })
    }

    /// Takes the binaries of one directory.
    ///
    /// # Errors
    /// `NoServerBinaries` when `initdb` or `postgres` is missing or older than 14;
    /// `UnknownVersion` when `postgres --version` cannot be read.
    pub fn in_directory(directory: &Path) -> Result<ServerBinaries, TestkitError> {
        let missing = || TestkitError::NoServerBinaries {
            searched: directory.display().to_string(),
        };
        let postgres = directory.join("postgres");
        if !postgres.is_file() || !directory.join("initdb").is_file() {
            return Err(missing());
        }
        let output = Command::new(&postgres)
            .arg("--version")
            .output()
            .map_err(TestkitError::io("run", &postgres))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let Some(version_num) = parse_version(&text) else {
            return Err(TestkitError::UnknownVersion {
                path: postgres,
                output: text,
            });
        };
        if version_num / 10_000 < OLDEST_MAJOR {
            return Err(missing());
        }
        Ok(ServerBinaries {
            directory: directory.to_path_buf(),
            version_num,
        })
    }

    /// The directory that holds the binaries.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The version as `server_version_num` gives it: 150018 for 15.18.
    pub fn version_num(&self) -> u32 {
        self.version_num
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// The `bin` directories of Debian's layout, newest major version first.
fn debian_directories() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(DEBIAN_ROOT) else {
        return Vec::new();
    };
    let mut majors: Vec<u32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    majors.sort_unstable_by(|a, b| b.cmp(a));
    majors
        .into_iter()
        .map(|major| Path::new(DEBIAN_ROOT).join(major.to_string()).join("bin"))
        .collect()
}

/// Reads `postgres (PostgreSQL) 15.18 (Debian ...)`; betas count as minor 0.
fn parse_version(output: &str) -> Option<u32> {
    let version = output
        .split_once("(PostgreSQL)")?
        .1
        .split_whitespace()
        .next()?;
    let digits = |text: &str| -> Option<u32> {
        let end = text
            .find(|character: char| !character.is_ascii_digit())
            .unwrap_or(text.len());
        text[..end].parse().ok()
    };
    let major = digits(version)?;
    let minor = match version.split_once('.') {
        Some((_, rest)) => digits(rest)?,
        None => 0,
    };
    major.checked_mul(10_000)?.checked_add(minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each form of version line that a build prints gives the number the server reports.
    #[test]
    fn version_lines() {
        for (line, expected) in [
            (
                "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)",
                Some(150_018),
            ),
            ("postgres (PostgreSQL) 18beta1", Some(180_000)),
            ("postgres (PostgreSQL) 14.23", Some(140_023)),
            ("postgres (EnterpriseDB) 14.23", None),
            ("", None),
        ] {
            assert_eq!(parse_version(line), expected, "{line}");
        }
    }

    /// An empty directory is refused, and the message names the package.
    #[test]
    fn empty_directory_names_the_package() {
        let directory = tempfile::tempdir().unwrap();
        let error = ServerBinaries::in_directory(directory.path()).unwrap_err();
        assert!(error.to_string().contains("apt-get install postgresql"));
    }
}
