//! Durable puts and warm reads of the store, next to raw appends with `fdatasync` on the same file
//! system.
//!
//! `cargo run --release -p toastrack-offload --example throughput -- [DIRECTORY] [VALUE_LEN]`

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toastrack_offload::{Compression, Kind, Put, Store, StoreError, StoreOptions, ValueKind};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let directory = args
        .next()
        .map_or_else(std::env::temp_dir, PathBuf::from)
        .join(format!("toastrack-throughput-{}", std::process::id()));
    let len = args.next().map_or(Ok(8192), |len| len.parse::<usize>())?;
    std::fs::create_dir_all(&directory)?;
    let runtime = tokio::runtime::Runtime::new()?;
    raw(&directory.join("raw"), len)?;
    for (name, compression) in [("none", Compression::None), ("lz4", Compression::default())] {
        for clients in [1, 8, 64] {
            let options = StoreOptions {
                directory: directory.join(format!("{name}-{clients}")),
                compression,
                ..StoreOptions::default()
            };
            runtime.block_on(measure(options, name, clients, len))?;
        }
    }
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

/// One writer that appends and syncs, to a file that grows and to one that was written before.
fn raw(path: &Path, len: usize) -> Result<(), Failure> {
    const ROUNDS: usize = 500;
    let value = document(len, 1);
    for (name, zeroed) in [("growing file", false), ("written before", true)] {
        let mut file = std::fs::File::create(path)?;
        if zeroed {
            file.write_all(&vec![0u8; len * ROUNDS])?;
            file.sync_all()?;
            file = std::fs::OpenOptions::new().write(true).open(path)?;
        }
        let began = Instant::now();
        for _ in 0..ROUNDS {
            file.write_all(&value)?;
            file.sync_data()?;
        }
        println!(
            "raw append and fdatasync, {name}: {:.0} us each",
            began.elapsed().as_secs_f64() * 1e6 / ROUNDS as f64
        );
    }
    Ok(())
}

async fn measure(
    options: StoreOptions,
    name: &str,
    clients: usize,
    len: usize,
) -> Result<(), Failure> {
    const RUN: Duration = Duration::from_secs(2);
    let store = Store::open(options)?;
    let began = Instant::now();
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut value = document(len, client as u64);
                let mut puts: Vec<Put> = Vec::new();
                while began.elapsed() < RUN {
                    // Different every time, so that nothing is deduplicated.
                    let mark = format!("{client:04} {:010}", puts.len());
                    let room = mark.len().min(value.len());
                    value[..room].copy_from_slice(&mark.as_bytes()[..room]);
                    puts.push(durable_put(&store, &value).await?);
                }
                Ok::<_, StoreError>(puts)
            })
        })
        .collect();
    let mut puts = Vec::new();
    for task in tasks {
        puts.extend(task.await??);
    }
    let seconds = began.elapsed().as_secs_f64();
    let stats = store.stats();
    println!(
        "{name}, {clients} clients: {:.0} durable puts/s of {len} bytes, {:.0} MB/s, {:.1} puts a \
         sync, {:.0} us a sync",
        puts.len() as f64 / seconds,
        puts.len() as f64 * len as f64 / seconds / 1e6,
        puts.len() as f64 / stats.syncs as f64,
        stats.sync_micros as f64 / stats.syncs as f64,
    );
    let began = Instant::now();
    let mut read = 0;
    for put in puts.iter().cycle().take(50_000) {
        read += store
            .get_now(&put.reference)?
            .map_or(0, |value| value.len());
    }
    println!(
        "{name}: warm get_now {:.2} us each, {:.0} MB/s",
        began.elapsed().as_secs_f64() * 1e6 / 50_000.0,
        read as f64 / began.elapsed().as_secs_f64() / 1e6
    );
    let references: Vec<_> = puts.iter().map(|put| put.reference).collect();
    let began = Instant::now();
    let mut read = 0;
    for batch in references.chunks(500) {
        for value in store.get_many(batch).await {
            read += value?.len();
        }
    }
    println!(
        "{name}: warm get_many of 500 {:.2} us each, {:.0} MB/s",
        began.elapsed().as_secs_f64() * 1e6 / references.len() as f64,
        read as f64 / began.elapsed().as_secs_f64() / 1e6
    );
    Ok(())
}

async fn durable_put(store: &Store, value: &[u8]) -> Result<Put, StoreError> {
    loop {
        match store.put(ValueKind::Bytea, value.len() as u32, value) {
            Ok(put) => {
                store.durable(put.ticket).await?;
                return Ok(put);
            }
            Err(error) if error.kind() == Kind::Retry => store.room().await?,
            Err(error) => return Err(error),
        }
    }
}

/// Text that compresses about as JSON documents do.
fn document(len: usize, seed: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(len + 64);
    let mut n = seed;
    while out.len() < len {
        n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let piece = format!("{{\"id\": {}, \"name\": \"n{}\"}}, ", n >> 40, n >> 54);
        out.extend_from_slice(piece.as_bytes());
    }
    out.truncate(len);
    out
}
