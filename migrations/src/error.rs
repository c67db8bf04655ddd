//! What can go wrong, in words that say what to do.

/// What the caller can do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Try again later: a lock was not to be had, the connection was lost.
    Retry,
    /// What was asked for cannot be done as things stand; the message says why.
    Refused,
    /// The server or the role is not fit for it.
    BadConfig,
    /// The server said something that was not expected.
    Server,
}

/// Why an operation of this crate failed. Nothing was changed, unless its function says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server answered with an error, or the connection failed.
    #[error("{}", describe(.0))]
    Postgres(#[from] tokio_postgres::Error),
    /// The role may not create base types and functions in the server's internal language.
    #[error(
        "role \"{role}\" is not a superuser: installing the types needs one, once; run this with a superuser's connection string"
    )]
    NotSuperuser {
        /// The role that is connected.
        role: String,
    },
    /// The server is older than 14.
    #[error("the server is PostgreSQL {found}: 14 or newer is needed")]
    ServerTooOld {
        /// The server's `server_version`.
        found: String,
    },
    /// The database is in an encoding other than UTF8, in which segment files hold their text.
    #[error(
        "the database's encoding is {found}: values are kept in UTF8, and only a UTF8 database can read them back; create the database with ENCODING 'UTF8'"
    )]
    NotUtf8 {
        /// The database's `server_encoding`.
        found: String,
    },
    /// The server passes 8-byte values by reference, as 32-bit servers do.
    #[error("the server is a 32-bit one: a 64-bit server is needed")]
    Not64Bit,
    /// The extension dblink, which the server calls the resolver with, cannot be created.
    #[error(
        "the extension dblink is not available in the server: install its contrib package (Debian: postgresql-contrib)"
    )]
    NoDblink,
    /// A newer program installed the schema.
    #[error(
        "the schema toastrack has version {found}, this program knows {known}: use the newer program"
    )]
    TooNew {
        /// The version in the database.
        found: i32,
        /// The newest that this program knows.
        known: i32,
    },
    /// A migration that is not ours is recorded under one of our numbers.
    #[error(
        "migration {version} of the schema toastrack is \"{found}\", and this program's is \"{expected}\""
    )]
    ForeignMigration {
        /// The migration's number.
        version: i32,
        /// The name in the database.
        found: String,
        /// The name it should have.
        expected: &'static str,
    },
    /// The schema toastrack is not there, or not whole.
    #[error(
        "the schema toastrack is not installed in this database, or not whole: run \"toastrack install\" (missing: {missing})"
    )]
    NotInstalled {
        /// What is missing, separated by commas.
        missing: String,
    },
    /// Columns, domains or other objects still use a toastrack type.
    #[error("still in use: {}; restore the columns first", .users.join(", "))]
    InUse {
        /// The objects, as Postgres describes them.
        users: Vec<String>,
    },
    /// A `TABLE.COLUMN` that does not parse.
    #[error("\"{given}\" is not a column: {reason}; write table.column or schema.table.column")]
    BadTarget {
        /// What was given.
        given: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The table or the column does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The plan has refusals, or differences that were not accepted.
    #[error("refused: {}", .0.join("; "))]
    Refused(Vec<String>),
    /// What was planned for is not what is there any more.
    #[error("the table changed since the plan was made: plan again")]
    Stale,
    /// The server would have rewritten the table.
    #[error("the server rewrote {relation} instead of changing its description alone; rolled back")]
    Rewritten {
        /// The table or partition.
        relation: String,
    },
}

impl Error {
    /// What the caller can do about it.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Postgres(error) if error.is_closed() => Kind::Retry,
            Error::Postgres(error) => match error.code().map(|code| code.code()) {
                // lock_not_available, deadlock_detected, query_canceled
                Some("55P03" | "40P01" | "57014") => Kind::Retry,
                _ => Kind::Server,
            },
            Error::NotSuperuser { .. }
            | Error::ServerTooOld { .. }
            | Error::NotUtf8 { .. }
            | Error::Not64Bit
            | Error::NoDblink
            | Error::TooNew { .. }
            | Error::ForeignMigration { .. }
            | Error::NotInstalled { .. } => Kind::BadConfig,
            Error::InUse { .. }
            | Error::BadTarget { .. }
            | Error::NotFound(_)
            | Error::Refused(_)
            | Error::Rewritten { .. } => Kind::Refused,
            Error::Stale => Kind::Retry,
        }
    }
}

/// The server's own message with its SQLSTATE, detail and hint; the driver's text otherwise.
fn describe(error: &tokio_postgres::Error) -> String {
    let Some(server) = error.as_db_error() else {
        return error.to_string();
    };
    let mut text = format!("{} (SQLSTATE {})", server.message(), server.code().code());
    for more in [server.detail(), server.hint()].into_iter().flatten() {
        text.push_str("; ");
        text.push_str(more);
    }
    text
}
