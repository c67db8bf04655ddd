//! The operating-system user that a cluster's server runs as.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::error::TestkitError;

/// A user and its primary group, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OsUser {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Whether the process must change to this user before it runs the server.
    switch: bool,
}

impl OsUser {
    /// `postgres`, or else `nobody`, when this process is root; otherwise this
    /// process' own user.
    pub(crate) fn for_server() -> Result<OsUser, TestkitError> {
        let own = rustix::process::geteuid();
        if !own.is_root() {
            return Ok(OsUser {
                uid: own.as_raw(),
                gid: rustix::process::getegid().as_raw(),
                switch: false,
            });
        }
        let passwd =
            fs::read_to_string("/etc/passwd").map_err(TestkitError::io("read", "/etc/passwd"))?;
        ["postgres", "nobody"]
            .iter()
            .find_map(|name| lookup(&passwd, name))
            .map(|(uid, gid)| OsUser {
                uid,
                gid,
                switch: true,
            })
            .ok_or(TestkitError::NoServerUser)
    }

    /// Makes `command` run as this user, without the supplementary groups of root.
    pub(crate) fn apply(self, command: &mut Command) {
        if self.switch {
            command.uid(self.uid).gid(self.gid);
        }
    }

    /// Hands a file or directory over to this user.
    pub(crate) fn own(self, path: &Path) -> Result<(), TestkitError> {
        if self.switch {
            std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid))
                .map_err(TestkitError::io("change the owner of", path))?;
        }
        Ok(())
    }
}

/// The uid and gid of `name` in the text of a passwd file.
fn lookup(passwd: &str, name: &str) -> Option<(u32, u32)> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next()? != name {
            return None;
        }
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        Some((uid, gid))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names are matched whole, and broken lines are passed over.
    #[test]
    fn passwd_lines() {
        let passwd = "root:x:0:0::/root:/bin/sh\nbroken\npostgres2:x:7:8::/:/\npostgres:x:101:104:a,,,:/v:/b\n";
        assert_eq!(lookup(passwd, "postgres"), Some((101, 104)));
        assert_eq!(lookup(passwd, "nobody"), None);
        assert_eq!(lookup("postgres:x:many:104:::", "postgres"), None);
    }
}
