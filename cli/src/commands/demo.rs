//! `toastrack demo`

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use crate::config::{Log, LogFormat};
use crate::demo::documents::collect;
use crate::demo::environment::Environment;
use crate::demo::run::run;
use crate::error::CommandError;
use crate::logging;
use crate::output::say;
use crate::secret::write_private;
use crate::signals::shutdown_on_signal;

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Stay up afterwards, to play with, until Ctrl-C or SIGTERM
    #[arg(long)]
    keep: bool,
    /// Documents to load: a directory, a .jsonl file or a .json file
    #[arg(long, value_name = "PATH")]
    from: Option<PathBuf>,
    /// Load at most this many documents
    #[arg(long, value_name = "N", default_value = "5000")]
    rows: NonZeroUsize,
    /// Load nothing: only the server with the schema, and Toastrack in front of it
    #[arg(long, requires = "keep", conflicts_with_all = ["from", "rows"])]
    empty: bool,
    /// Write how to connect to FILE, as NAME=VALUE lines, once everything is ready
    #[arg(long, value_name = "FILE", requires = "keep")]
    env_file: Option<PathBuf>,
}

/// Starts, runs, and cleans up whatever happens.
pub(crate) async fn demo(args: DemoArgs) -> Result<(), CommandError> {
    logging::start(&Log {
        level: "warn".to_owned(),
        format: LogFormat::Text,
    })?;
    let shutdown = shutdown_on_signal()?;
    say("starting a private PostgreSQL server, and Toastrack in front of it ...");
    let environment = Environment::start().await?;
    introduce(&environment);
    let mut outcome = tokio::select! {
        () = shutdown.cancelled() => Err(CommandError::Failed("interrupted".to_owned())),
        outcome = show(&environment, &args) => outcome,
    };
    if args.keep && outcome.is_ok() {
        outcome = keep(&environment, args.env_file.as_deref(), &shutdown).await;
    }
    let stopped = environment.stop().await;
    outcome.and(stopped)
}

/// Says how to connect, while it is up.
fn introduce(environment: &Environment) {
    say(format!("  Toastrack  {}", environment.toastrack_url()));
    say(format!("  direct     {}", environment.direct_url()));
    say(format!(
        "  admin      {} (token in {})",
        environment.admin_url(),
        environment.token_file().display()
    ));
}

/// Runs the main job and prints its figures.
async fn show(environment: &Environment, args: &DemoArgs) -> Result<(), CommandError> {
    if args.empty {
        return Ok(());
    }
    let (from, rows) = (args.from.clone(), args.rows.get());
    let documents = tokio::task::spawn_blocking(move || collect(from.as_deref(), rows))
        .await
        .map_err(CommandError::failed)??;
    let figures = run(environment, documents).await?;
    say(format!("\n{figures}\n"));
    if figures.different() > 0 {
        let message = "what came back through Toastrack differs from the plain table";
        return Err(CommandError::Failed(message.to_owned()));
    }
    Ok(())
}

/// Writes how to connect, and waits for a signal.
async fn keep(
    environment: &Environment,
    env_file: Option<&Path>,
    shutdown: &CancellationToken,
) -> Result<(), CommandError> {
    if let Some(file) = env_file {
        let text = format!(
            "DIRECT_URL={}\nTOASTRACK_URL={}\nADMIN_URL={}\nADMIN_TOKEN_FILE={}\n",
            environment.direct_url(),
            environment.toastrack_url(),
            environment.admin_url(),
            environment.token_file().display()
        );
        write_private(file, &text).map_err(CommandError::io("write", file))?;
    }
    say("staying up until Ctrl-C");
    shutdown.cancelled().await;
    match env_file {
        Some(file) => std::fs::remove_file(file).map_err(CommandError::io("remove", file)),
        None => Ok(()),
    }
}
