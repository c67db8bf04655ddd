//! Measures the functions that see every offloaded value.
//!
//! `cargo run --release -p toastrack-value --example throughput [LEN]`, with the
//! length of the documents in bytes (default 8192).

use std::hint::black_box;
use std::time::{Duration, Instant};

use toastrack_value::json::{canonical_jsonb_cow, utf8_chars, valid_json};
use toastrack_value::literal::{decode_literal, long_literals};
use toastrack_value::{array, bytea, copy};

fn main() {
    let len = std::env::args()
        .nth(1)
        .and_then(|len| len.parse().ok())
        .unwrap_or(8192);
    let compact = document(len, ",", ":");
    let spaced = document(len, ", ", ": ");
    let pretty = document(len, ",\n        ", ": ");
    let canonical = canonical_jsonb_cow(&compact).expect("valid").into_owned();
    for (name, text) in [
        ("compact", &compact),
        ("spaced", &spaced),
        ("pretty", &pretty),
        ("canonical", &canonical),
    ] {
        measure(&format!("canonical_jsonb, {name}"), text.len(), || {
            canonical_jsonb_cow(text).expect("valid").len()
        });
    }
    let prose = format!(
        "{{\"body\":\"{}\"}}",
        "All work and no play \\n".repeat(len / 23)
    );
    measure(
        "canonical_jsonb, one string with escapes",
        prose.len(),
        || canonical_jsonb_cow(prose.as_bytes()).expect("valid").len(),
    );
    let numbers = format!("[{}1]", "1234.5678,-17,".repeat(len / 14));
    measure("canonical_jsonb, numbers", numbers.len(), || {
        canonical_jsonb_cow(numbers.as_bytes())
            .expect("valid")
            .len()
    });
    measure("valid_json, compact", compact.len(), || {
        valid_json(&compact)
    });
    measure("utf8_chars, ascii", compact.len(), || utf8_chars(&compact));
    let greek = "\u{3b1}\u{3b2} \u{3b3}".repeat(len / 7);
    measure("utf8_chars, greek", greek.len(), || {
        utf8_chars(greek.as_bytes())
    });

    let hex = bytea::encode_hex(&compact);
    measure("bytea, encode_hex", compact.len(), || {
        bytea::encode_hex(&compact)
    });
    measure("bytea, decode hex", hex.len(), || bytea::decode(&hex));
    measure("bytea, encode_escape", compact.len(), || {
        bytea::encode_escape(&compact)
    });

    let mut row = Vec::new();
    measure("copy, write_text", compact.len(), || {
        row.clear();
        copy::write_text(&compact, b'\t', &mut row);
        row.len()
    });
    let mut element = Vec::new();
    array::write_text_element(&compact, &mut element);
    let elements = [&b"{"[..], &element, b",short,", &element, b"}"].concat();
    measure("array, text_elements", elements.len(), || {
        array::text_elements(&elements).count()
    });

    let literal = format!("'{}'", "it''s a long line of text; ".repeat(len / 27));
    let query = format!("insert into docs (id, body) values (17, {literal}) -- it's");
    measure("long_literals", query.len(), || {
        long_literals(query.as_bytes(), 2048, &[b"toast:"]).count()
    });
    measure("decode_literal", literal.len(), || {
        decode_literal(literal.as_bytes()).map(|value| value.len())
    });
    let plain = "select a.id, b.name from accounts a join b on a.id = b.id where b.kind = 'x' ";
    let plain = plain.repeat(len / plain.len());
    measure("long_literals, no long ones", plain.len(), || {
        long_literals(plain.as_bytes(), 2048, &[b"toast:"]).count()
    });
}

/// An array of records, as an application's serialiser writes them.
fn document(len: usize, comma: &str, colon: &str) -> Vec<u8> {
    let mut out = String::from("[");
    for n in 0u32.. {
        let record = format!(
            "{{\"id\"{colon}{n}{comma}\"name\"{colon}\"customer {n} of many\"{comma}\
             \"email\"{colon}\"c{n}@example.org\"{comma}\"active\"{colon}true{comma}\
             \"balance\"{colon}{}.{:02}{comma}\"tags\"{colon}[\"new\"{comma}\"caf\u{e9}\"{comma}null]{comma}\
             \"address\"{colon}{{\"street\"{colon}\"{n} Main Street\"{comma}\"zip\"{colon}\"{:05}\"}}}}",
            n * 7919 % 10_000,
            n % 100,
            n * 104_729 % 100_000,
        );
        if n > 0 {
            out.push_str(comma);
        }
        out.push_str(&record);
        if out.len() >= len {
            break;
        }
    }
    out.push(']');
    out.into_bytes()
}

/// Prints the fastest and the median of some rounds of calls of `work`.
fn measure<T>(name: &str, len: usize, mut work: impl FnMut() -> T) {
    let calls = (4 << 20) / len.max(1) + 1;
    let mut rounds: Vec<Duration> = (0..31)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..calls {
                black_box(work());
            }
            start.elapsed()
        })
        .collect();
    rounds.sort();
    let [fastest, median] =
        [0, rounds.len() / 2].map(|at| rounds[at].as_secs_f64() / calls as f64 * 1e6);
    println!(
        "{name:<42} {len:>8} bytes, fastest {fastest:>8.2} us {:>6.0} MB/s, median {median:>8.2} us {:>6.0} MB/s",
        len as f64 / fastest,
        len as f64 / median,
    );
}
