//! Secrets: never printed, kept in files of mode 0600.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Bytes of randomness in a secret that is made here.
const RANDOM_LEN: usize = 32;

/// A password or token, shown as `***`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The secret itself; for the one place that needs it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Reads the first line of `path`; makes the file, with mode 0600 and a random
    /// secret of 64 hexadecimal digits, when there is none.
    ///
    /// # Errors
    /// Those of the file operations; `InvalidData` when the first line is empty.
    pub(crate) fn read_or_create(path: &Path) -> io::Result<Secret> {
        match fs::read_to_string(path) {
            Ok(text) => return Secret::first_line(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut random = [0_u8; RANDOM_LEN];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let text: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let made = private_file(path, &format!("{text}\n"))?.persist_noclobber(path);
        match made.map_err(|error| error.error) {
            Ok(_) => {}
            // Another process was faster: its secret counts.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Secret::first_line(&fs::read_to_string(path)?);
            }
            Err(error) => return Err(error),
        }
        sync_directory(path)?;
        Ok(Secret(text))
    }

    /// # Errors
    /// `InvalidData` when the first line is empty.
    pub(crate) fn first_line(text: &str) -> io::Result<Secret> {
        match text.lines().next().map(str::trim_end) {
            Some(line) if !line.is_empty() => Ok(Secret(line.to_owned())),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the first line is empty",
            )),
        }
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Puts a file of mode 0600 in place as a whole: a reader sees all of it or none.
///
/// # Errors
/// Those of the file operations.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    private_file(path, text)?
        .persist(path)
        .map_err(|error| error.error)?;
    sync_directory(path)
}

/// Whether anybody but the owner may read the file.
///
/// # Errors
/// Those of the file operations.
pub(crate) fn readable_by_others(path: &Path) -> io::Result<bool> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o077 != 0)
}

/// A file beside `path` that is to be renamed to it, durable, with mode 0600 whatever the umask.
fn private_file(path: &Path, text: &str) -> io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new()
        .prefix(".toastrack-")
        .permissions(fs::Permissions::from_mode(0o600))
        .tempfile_in(parent(path))?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    Ok(file)
}

fn sync_directory(path: &Path) -> io::Result<()> {
    fs::File::open(parent(path))?.sync_all()
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first call makes the file, private; the second reads the same secret.
    #[test]
    fn created_once_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let first = Secret::read_or_create(&path).unwrap();
        assert_eq!(first.reveal().len(), 2 * RANDOM_LEN);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!readable_by_others(&path).unwrap());
        assert_eq!(Secret::read_or_create(&path).unwrap(), first);
        fs::write(&path, "\n").unwrap();
        assert!(Secret::read_or_create(&path).is_err());
    }

    /// Neither way of printing shows the secret.
    #[test]
    fn printed_as_stars() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?}"), "*** ***");
    }
}
