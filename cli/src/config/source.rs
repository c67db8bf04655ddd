//! Where a configuration's files come from; a map in tests.

use std::io;
use std::path::Path;

/// Reads the configuration file and the files it names.
pub(crate) trait Source {
    /// The whole text of one file.
    ///
    /// # Errors
    /// As reading a file does; `InvalidData` when it is not UTF-8.
    fn read(&self, path: &Path) -> io::Result<String>;
}

/// The file system.
pub(crate) struct Disk;

impl Source for Disk {
    fn read(&self, path: &Path) -> io::Result<String> {
        std::fs::read_to_string(path)
    }
}

/// Files that exist only in a test.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct MapSource(std::collections::HashMap<std::path::PathBuf, String>);

#[cfg(test)]
impl MapSource {
    pub(crate) fn with(mut self, path: &str, text: &str) -> MapSource {
        self.0.insert(path.into(), text.to_owned());
        self
    }
}

#[cfg(test)]
impl Source for MapSource {
    fn read(&self, path: &Path) -> io::Result<String> {
        self.0
            .get(path)
            .cloned()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
