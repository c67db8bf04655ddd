//! Side-by-side benchmarks: direct, through Toastrack, and the bound.
//!
//! The method and how to read the output: docs/benchmarks.md.

mod args;
mod bench;
mod cpu;
mod data;
mod endpoint;
mod error;
mod facts;
mod phase;
mod pooler;
mod relay;
mod report;
mod servers;
mod side;
mod sidecar;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

use clap::Parser;
use serde::Serialize;

use crate::args::Args;
use crate::bench::Bench;
use crate::error::BenchError;
use crate::facts::Facts;
use crate::report::{summarize, table};

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: start the runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<(), BenchError> {
    let directory = match &args.directory {
        Some(parent) => tempfile::Builder::new()
            .prefix("toastrack-bench")
            .tempdir_in(parent),
        None => tempfile::Builder::new().prefix("toastrack-bench").tempdir(),
    }
    .map_err(BenchError::io("make a directory for the data"))?;
    make_enterable(directory.path())?;
    let mut json = JsonLines::create(&args)?;
    if args.relay {
        let runs = relay::run(&args, directory.path(), |run| json.line(run))?;
        print!("{}", relay::table(&runs));
        return json.finish();
    }

    let settings = servers::settings(&args)
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let phases = args.phases.clone();
    let mut bench = Bench::start(args, directory.path()).await?;
    let facts = Facts::gather(directory.path(), bench.postgres_version().await?, settings);
    json.line(&facts)?;
    println!(
        "{}\n{}, {} cores, {} MB, Linux {}, {}\n{}\n{}\n",
        facts.command,
        facts.processor,
        facts.cores,
        facts.memory_mb,
        facts.kernel,
        facts.filesystem,
        facts.postgres,
        facts.settings.join(" ")
    );

    let mut runs = Vec::new();
    for phase in phases {
        bench
            .phase(phase, |run| {
                json.line(&run)?;
                eprintln!(
                    "{} {} round {}: {:.0} rows/s",
                    run.phase, run.side, run.round, run.rows_per_second
                );
                runs.push(run);
                Ok(())
            })
            .await?;
    }
    let summaries = summarize(&runs);
    for summary in &summaries {
        json.line(summary)?;
    }
    print!("{}", table(&summaries));
    for space in bench.space().await? {
        json.line(&space)?;
        println!(
            "{}: {} MB in Postgres, {} MB in the store",
            space.side,
            space.postgres_bytes / 1_000_000,
            space.store_bytes / 1_000_000
        );
    }
    json.finish()
}

/// Postgres runs as another user when this process is root, and must reach its own directory.
fn make_enterable(directory: &std::path::Path) -> Result<(), BenchError> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o755))
        .map_err(BenchError::io(format!("open up {}", directory.display())))
}

/// The file of `--json`, or nothing.
struct JsonLines(Option<BufWriter<File>>);

impl JsonLines {
    fn create(args: &Args) -> Result<JsonLines, BenchError> {
        let Some(path) = &args.json else {
            return Ok(JsonLines(None));
        };
        let file =
            File::create(path).map_err(BenchError::io(format!("create {}", path.display())))?;
        Ok(JsonLines(Some(BufWriter::new(file))))
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), BenchError> {
        let Some(file) = &mut self.0 else {
            return Ok(());
        };
        serde_json::to_writer(&mut *file, value)
            .map_err(std::io::Error::from)
            .and_then(|()| file.write_all(b"\n"))
            .map_err(BenchError::io("write the JSON lines"))
    }

    fn finish(self) -> Result<(), BenchError> {
        self.0.map_or(Ok(()), |mut file| {
            file.flush().map_err(BenchError::io("write the JSON lines"))
        })
    }
}
