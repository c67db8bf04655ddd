//! `toastrack completions`

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::error::CommandError;
use crate::output::say;

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "toastrack", &mut script);
    say(String::from_utf8_lossy(&script).trim_end());
    Ok(())
}
