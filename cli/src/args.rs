//! The command line.

use clap::{Parser, Subcommand};

use crate::commands::{
    CompletionsArgs, ConfigArgs, DemoArgs, InstallArgs, LoadArgs, OffloadArgs, RestoreArgs,
    ServeArgs, UninstallArgs,
};
use crate::store::StoreArgs;

/// Keeps large column values out of PostgreSQL's rows, and gives them back on every read.
///
/// Toastrack stands between an application and an unmodified PostgreSQL server.
#[derive(Debug, Parser)]
#[command(name = "toastrack", version, propagate_version = true)]
#[command(after_help = "\
Examples:
  toastrack demo                                        see it work, on a private server
  toastrack install --database postgres://localhost/app
  toastrack offload docs.body --database postgres://localhost/app
  toastrack serve --config /etc/toastrack.toml

Exit codes: 0 done, 1 failed, 2 used wrongly.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the proxy, the store, the resolver and the admin API
    #[command(after_help = "\
Examples:
  toastrack serve --config /etc/toastrack.toml

Stops on SIGTERM and SIGINT: sessions may finish what they are in the middle of,
until limits.drain_timeout. A second signal ends it at once.")]
    Serve(ServeArgs),
    /// Show the main job on a private server: load, read back, compare, measure
    #[command(after_help = "\
Examples:
  toastrack demo
  toastrack demo --from ./pages --rows 500
  toastrack demo --keep                              then connect with psql
  toastrack demo --keep --empty --env-file demo.env  for tests of applications

Needs the PostgreSQL server binaries (apt-get install postgresql), and leaves
nothing behind.")]
    Demo(DemoArgs),
    /// Report every problem of a configuration file
    #[command(after_help = "\
Examples:
  toastrack check-config /etc/toastrack.toml")]
    CheckConfig(ConfigArgs),
    /// Print the configuration that `serve` would use, defaults included, secrets hidden
    #[command(after_help = "\
Examples:
  toastrack print-config                     the defaults
  toastrack print-config /etc/toastrack.toml")]
    PrintConfig(ConfigArgs),
    /// Install the types and functions of the schema `toastrack` into a database
    #[command(after_help = "\
Examples:
  toastrack install --database postgres://localhost/app
  toastrack install --database postgres://localhost/app --config /etc/toastrack.toml

Needs a superuser, and PostgreSQL 14 or newer. Installing again is harmless.
With --config the server also learns where the store and the resolver are, which
SQL functions need to read values that are in the store.")]
    Install(InstallArgs),
    /// Remove the schema `toastrack` from a database
    #[command(after_help = "\
Examples:
  toastrack uninstall --database postgres://localhost/app

Refuses while a column still uses one of the types: `toastrack restore` it first.")]
    Uninstall(UninstallArgs),
    /// Let the large values of a column leave the row
    #[command(after_help = "\
Examples:
  toastrack offload docs.body --database postgres://localhost/app --dry-run
  toastrack offload docs.body --database postgres://localhost/app --threshold 4KiB
  toastrack offload 'app.\"Docs\".data' --database postgres://localhost/app --yes

Changes the type of the column without rewriting the table, in one transaction
that gives up when it does not get its lock in time. Values that are there stay
in their rows.")]
    Offload(OffloadArgs),
    /// Give a column its plain type back
    #[command(after_help = "\
Examples:
  toastrack restore docs.body --database postgres://localhost/app

Refuses while a value of the column is in the store.")]
    Restore(RestoreArgs),
    /// Load documents from files into a table
    #[command(after_help = "\
Examples:
  toastrack load --database postgres://localhost/app --table docs --from ./pages
  toastrack load --database postgres://localhost:6432/app --table docs --from feed.jsonl

Makes the table if there is none: path, kind, and one of body (text), data (jsonb)
and raw (bytea) by what the file is. A directory is taken with all below it; a .jsonl
file gives one row a line, a .json file that holds an array one row an element.
Everything is loaded in one transaction, unless --batch is given.")]
    Load(LoadArgs),
    /// Look into the chunk store, verify it, repair it, take a snapshot of it
    #[command(after_help = "\
Examples:
  toastrack store stat --config /etc/toastrack.toml
  toastrack store verify --config /etc/toastrack.toml --database postgres://localhost/app
  toastrack store snapshot /backup/store --config /etc/toastrack.toml

`toastrack store COMMAND --help` has more.")]
    Store(StoreArgs),
    /// Print the completions of a shell
    #[command(after_help = "\
Examples:
  toastrack completions bash > /etc/bash_completion.d/toastrack
  toastrack completions zsh > ~/.zfunc/_toastrack")]
    Completions(CompletionsArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// The definitions hold together, by clap's own checks.
    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    /// The help names every command, and each command has a description and at least
    /// one example that calls it by its name.
    #[test]
    fn every_command_has_examples() {
        let mut cli = Cli::command();
        let help = cli.render_long_help().to_string();
        let own = cli
            .get_subcommands()
            .filter(|command| command.get_name() != "help");
        for command in own {
            let name = command.get_name();
            assert!(
                help.contains(&format!("\n  {name} ")),
                "{name} is not in the help"
            );
            assert!(command.get_about().is_some(), "{name} has no description");
            let after = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            let call = format!("\n  toastrack {name}");
            assert!(
                after.contains("Examples:") && after.contains(&call),
                "{name}: {after}"
            );
        }
    }

    /// Every example on the help pages is a command line that clap accepts.
    #[test]
    fn examples_parse() {
        let cli = Cli::command();
        let pages = cli
            .get_subcommands()
            .chain([&cli])
            .filter_map(|command| command.get_after_help());
        let mut seen = 0;
        for page in pages.map(ToString::to_string) {
            for line in page.lines().filter(|line| line.starts_with("  toastrack ")) {
                // What stands behind two blanks is a remark, behind `>` for the shell.
                let line = line.trim_start();
                let line = line.split("  ").next().unwrap_or(line);
                let line = line.split(" > ").next().unwrap_or(line);
                let words = line.split_whitespace().map(|word| word.trim_matches('\''));
                if let Err(error) = Cli::try_parse_from(words) {
                    panic!("{line}: {error}");
                }
                seen += 1;
            }
        }
        assert!(seen >= 10, "{seen}");
    }
}
