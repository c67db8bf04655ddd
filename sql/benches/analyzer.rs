//! What the analysis of a statement costs. Run with `cargo bench -p toastrack-sql`.
//!
//! Each line is the median of several rounds. The baseline of everything here
//! is a round trip to Postgres, some 50 to 100 microseconds.

use std::hint::black_box;
use std::time::{Duration, Instant};

use toastrack_sql::{Analyzer, ColumnDef, Kind, OffloadedColumn, TableDef, Tables, apply_edits};

fn main() {
    mentions();
    statements();
    queries();
}

fn mentions() {
    let json = documents(1 << 20);
    let short = "SELECT id, name, created_at FROM accounts WHERE id = $1 AND active LIMIT 1";
    for count in [1, 3, 10, 100] {
        let tables = tables(count);
        let time = median(|| tables.mentions(black_box(json.as_bytes())));
        let rate = json.len() as f64 / time.as_secs_f64() / 1e9;
        let found = if tables.mentions(json.as_bytes()) {
            " (found)"
        } else {
            ""
        };
        println!("mentions, {count} tables, 1 MiB of JSON: {rate:.1} GB/s{found}");
        report(&format!("mentions, {count} tables, 74 bytes"), || {
            tables.mentions(black_box(short.as_bytes()))
        });
    }
}

fn statements() {
    let tables = tables(3);
    let insert = "INSERT INTO documents (id, body, data) VALUES ($1, $2, $3::jsonb) RETURNING id";
    let other = "SELECT id, name, created_at FROM accounts WHERE id = $1 AND active LIMIT 1";
    let select = "SELECT id, body FROM documents WHERE id = $1";
    let cached = Analyzer::new(1024);
    let uncached = Analyzer::new(0);
    report("statement, other table", || {
        cached.statement(&tables, black_box(other))
    });
    report("statement, SELECT", || {
        cached.statement(&tables, black_box(select))
    });
    report("statement, INSERT, cached", || {
        cached.statement(&tables, black_box(insert))
    });
    report("statement, INSERT, uncached", || {
        uncached.statement(&tables, black_box(insert))
    });
    let plan = cached.statement(&tables, insert);
    report("apply_edits", || {
        apply_edits(black_box(insert), &plan.edits)
    });
    let rows: Vec<String> = (0..1000)
        .map(|i| format!("(${}, ${}, ${}::jsonb)", i * 3 + 1, i * 3 + 2, i * 3 + 3))
        .collect();
    let many = format!(
        "INSERT INTO documents (id, body, data) VALUES {}",
        rows.join(", ")
    );
    report("statement, 1000 rows, cached", || {
        cached.statement(&tables, black_box(&many))
    });
    report("statement, 1000 rows, uncached", || {
        uncached.statement(&tables, black_box(&many))
    });
}

fn queries() {
    let tables = tables(3);
    let cached = Analyzer::new(1024);
    let uncached = Analyzer::new(0);
    let body = |len: usize| documents(len).replace('\'', "''");
    let large = format!(
        "INSERT INTO documents (id, body) VALUES (1, '{}')",
        body(1 << 20)
    );
    let four = format!(
        "INSERT INTO documents (id, body, data, note, more) VALUES (1, '{0}', '{0}'::jsonb, '{0}', '{0}')",
        body(8192)
    );
    let small = "UPDATE documents SET body = 'short', title = 'other' WHERE id = 12345";
    for (name, text) in [
        ("one 1 MiB literal", &large),
        ("four 8 KiB literals", &four),
    ] {
        assert!(!cached.query(&tables, text, 2048).literals.is_empty());
        report(&format!("query, {name}, cached"), || {
            cached.query(&tables, black_box(text), 2048)
        });
        report(&format!("query, {name}, uncached"), || {
            uncached.query(&tables, black_box(text), 2048)
        });
    }
    report("query, short literals only", || {
        cached.query(&tables, black_box(small), 2048)
    });
}

fn report<T>(name: &str, run: impl FnMut() -> T) {
    let time = median(run);
    println!("{name}: {:.2} us", time.as_secs_f64() * 1e6);
}

fn median<T>(mut run: impl FnMut() -> T) -> Duration {
    let start = Instant::now();
    black_box(run());
    let once = start.elapsed().max(Duration::from_nanos(20));
    let repeats = (Duration::from_millis(5).as_nanos() / once.as_nanos()).clamp(1, 100_000) as u32;
    let mut rounds: Vec<Duration> = (0..21)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..repeats {
                black_box(run());
            }
            start.elapsed() / repeats
        })
        .collect();
    rounds.sort();
    rounds[rounds.len() / 2]
}

/// About `len` bytes of JSON that mention no table.
fn documents(len: usize) -> String {
    let mut text = String::with_capacity(len + 256);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    while text.len() < len {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let n = state >> 40;
        text.push_str(&format!(
            "{{\"id\": {n}, \"name\": \"user {n}\", \"description\": \"The order was placed on day {} \
             and it's been processed\", \"tags\": [\"a\", \"color\"], \"price\": {}.5}}\n",
            n % 365,
            n % 1000
        ));
    }
    text.truncate(len);
    text
}

fn tables(count: usize) -> Tables {
    let names = [
        "documents",
        "messages",
        "articles",
        "invoices",
        "blobs",
        "payloads",
        "attachments",
        "comments_archive",
        "webhook_events",
        "revisions",
    ];
    let column = |(id, (name, kind)): (u32, (&str, Option<Kind>))| ColumnDef {
        name: name.to_owned(),
        offloaded: kind.map(|kind| OffloadedColumn { id, kind }),
        generated: false,
    };
    let columns = [
        ("id", None),
        ("body", Some(Kind::Text)),
        ("data", Some(Kind::Jsonb)),
        ("note", Some(Kind::Varchar)),
        ("more", Some(Kind::Text)),
    ];
    let tables = (0..count).map(|i| TableDef {
        schema: "public".to_owned(),
        name: match names.get(i) {
            Some(name) => (*name).to_owned(),
            None => format!("{}_{i}", names[i % names.len()]),
        },
        columns: (0..).zip(columns).map(column).collect(),
    });
    Tables::new(tables.collect())
}
