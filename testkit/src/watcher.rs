//! Stops a cluster whose owner was killed.
//!
//! A small shell process waits on a pipe that only this process holds open for
//! writing. When the pipe closes without a word, this process has died: the
//! watcher stops the server and removes the directory. (A parent-death signal
//! would not do: it fires when the *thread* that started the server ends, and
//! tests start clusters on short-lived threads.)

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::error::TestkitError;

/// `$1` is the data directory, the others are the directories to remove.
const SCRIPT: &str = r#"
read -r word
[ "$word" = released ] && exit 0
pid=$(head -n 1 "$1/postmaster.pid" 2>/dev/null)
shift
is_server() { [ -n "$pid" ] && grep -q '^postgres' "/proc/$pid/comm" 2>/dev/null; }
if is_server; then
    kill -QUIT "$pid"
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        is_server || break
        sleep 0.25
    done
    is_server && kill -KILL "$pid"
fi
rm -rf -- "$@"
"#;

/// The watcher process of one cluster.
#[derive(Debug)]
pub(crate) struct Watcher {
    child: Child,
}

impl Watcher {
    /// Starts watching this process.
    pub(crate) fn start<'a>(
        data_dir: &Path,
        remove: impl Iterator<Item = &'a Path>,
    ) -> Result<Watcher, TestkitError> {
        let child = Command::new("/bin/sh")
            .arg("-c")
            .arg(SCRIPT)
            .arg("toastrack-testkit-watcher")
            .arg(data_dir)
            .args(remove)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A Ctrl-C at the terminal must not end the watcher before its owner.
            .process_group(0)
            .spawn()
            .map_err(TestkitError::io("run", "/bin/sh"))?;
        Ok(Watcher { child })
    }

    /// Ends the watcher; the owner cleans up by itself.
    pub(crate) fn release(&mut self) {
        if let Some(mut pipe) = self.child.stdin.take() {
            // A watcher that is gone already has nothing left to release.
            let _ = pipe.write_all(b"released\n");
        }
        let _ = self.child.wait();
    }
}
