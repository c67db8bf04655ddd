//! The machine that a result belongs to.

use std::fs;
use std::path::Path;

use serde::Serialize;

/// What a reader needs to judge the figures.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Facts {
    /// Always `machine`, to tell the JSON lines apart.
    pub(crate) kind: &'static str,
    /// The command line.
    pub(crate) command: String,
    /// Logical processors this process may use.
    pub(crate) cores: usize,
    /// The processor's own name.
    pub(crate) processor: String,
    /// MB of memory.
    pub(crate) memory_mb: u64,
    /// Kernel release.
    pub(crate) kernel: String,
    /// File system type below the data.
    pub(crate) filesystem: String,
    /// `select version()`.
    pub(crate) postgres: String,
    /// Settings of Postgres that differ from its defaults.
    pub(crate) settings: Vec<String>,
    /// Version of this benchmark and of Toastrack.
    pub(crate) version: &'static str,
}

impl Facts {
    /// Reads them; what cannot be read is empty.
    pub(crate) fn gather(data: &Path, postgres: String, settings: Vec<String>) -> Facts {
        Facts {
            kind: "machine",
            command: command(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            processor: field("/proc/cpuinfo", "model name"),
            memory_mb: field("/proc/meminfo", "MemTotal")
                .trim_end_matches(" kB")
                .parse()
                .map_or(0, |kb: u64| kb / 1024),
            kernel: read("/proc/sys/kernel/osrelease"),
            filesystem: filesystem(&read("/proc/mounts"), data),
            postgres,
            settings,
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// The program's name without its directory, then the arguments.
fn command() -> String {
    let mut arguments = std::env::args();
    let program = arguments.next().unwrap_or_default();
    let name = Path::new(&program).file_name();
    let mut words = vec![name.map_or(program.clone(), |name| name.to_string_lossy().into_owned())];
    words.extend(arguments);
    words.join(" ")
}

fn read(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.trim_end().to_owned()
}

/// The value of the first `name : value` line of a file.
fn field(path: &str, name: &str) -> String {
    read(path)
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map_or(String::new(), |(_, value)| value.trim().to_owned())
}

/// The type of the file system that is mounted nearest above a path.
fn filesystem(mounts: &str, path: &Path) -> String {
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((fields.next()?, fields.next()?))
        })
        .filter(|(mount, _)| path.starts_with(mount))
        .max_by_key(|(mount, _)| mount.len())
        .map_or(String::new(), |(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_names_the_file_system() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /tmp2 xfs rw 0 0";
        assert_eq!(filesystem(mounts, Path::new("/tmp/x")), "tmpfs");
        assert_eq!(filesystem(mounts, Path::new("/tmp2/x")), "xfs");
        assert_eq!(filesystem(mounts, Path::new("/var")), "ext4");
    }
}
