//! Why a command failed, and the exit code that says so.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::config::ConfigError;
use crate::load::LoadError;

/// The failure of a command, in words for the person who typed it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// Something was asked for in a way that cannot be meant.
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Config(#[from] ConfigError),
    #[error("cannot connect to {target}: {message}")]
    Connect { target: String, message: String },
    #[error("{action}: {}", Server(.source))]
    Database {
        action: String,
        source: tokio_postgres::Error,
    },
    #[error("{0}")]
    Load(#[from] LoadError),
    #[error("{action} {path}: {source}", path = .path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// Another part of Toastrack failed, or refused; its message says enough.
    #[error("{0}")]
    Failed(String),
}

impl CommandError {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            CommandError::Usage(_) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }

    /// Wraps a failed file operation.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> CommandError {
        let path = path.into();
        move |source| CommandError::Io {
            action,
            path,
            source,
        }
    }

    /// Wraps a failed statement.
    pub(crate) fn database(
        action: impl Into<String>,
    ) -> impl FnOnce(tokio_postgres::Error) -> CommandError {
        let action = action.into();
        move |source| CommandError::Database { action, source }
    }

    /// Wraps the error of another crate, whose message is complete.
    pub(crate) fn failed(error: impl fmt::Display) -> CommandError {
        CommandError::Failed(error.to_string())
    }
}

/// Shows a server's error with what a person needs: message, detail, hint, SQLSTATE.
pub(crate) struct Server<'a>(pub(crate) &'a tokio_postgres::Error);

impl fmt::Display for Server<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(error) = self.0.as_db_error() else {
            write!(f, "{}", self.0)?;
            let source = std::error::Error::source(self.0);
            return match source.map(ToString::to_string) {
                Some(source) if !self.0.to_string().contains(&source) => write!(f, ": {source}"),
                _ => Ok(()),
            };
        };
        write!(f, "{} (SQLSTATE {})", error.message(), error.code().code())?;
        if let Some(detail) = error.detail() {
            write!(f, "\ndetail: {detail}")?;
        }
        if let Some(hint) = error.hint() {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}
