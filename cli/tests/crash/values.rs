//! Values that are made from a few numbers, so that a failure can name them.

use std::fmt;
use std::sync::Arc;

use crate::random::Random;

/// The column a value is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Body,
    Data,
    Raw,
}

impl Column {
    pub(crate) const ALL: [Column; 3] = [Column::Body, Column::Data, Column::Raw];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Column::Body => "body",
            Column::Data => "data",
            Column::Raw => "raw",
        }
    }
}

/// A value as a client reads it back: text, canonical jsonb text, or raw bytes.
#[derive(Clone)]
pub(crate) struct Value {
    pub(crate) bytes: Arc<[u8]>,
    column: Column,
    seed: u64,
    len: usize,
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}(seed {}, len {})", self.column, self.seed, self.len)
    }
}

const LEAST: f64 = 100.0;
const MOST: f64 = 200_000.0;
/// Values that many rows have in common.
const SHARED: u64 = 6;
const SHARED_PERCENT: u64 = 25;

impl Value {
    /// From 100 bytes to 200 kB, one in four among those that others write as well.
    pub(crate) fn any(column: Column, random: &mut Random) -> Value {
        let seed = if random.percent(SHARED_PERCENT) {
            random.below(SHARED)
        } else {
            random.next()
        };
        let len = Random::new(seed, 1).size(LEAST, MOST);
        Value::made(column, seed, len)
    }

    /// The value that `seed` and `len` stand for.
    pub(crate) fn made(column: Column, seed: u64, len: usize) -> Value {
        let mut random = Random::new(seed, 2);
        let bytes = match column {
            Column::Body => words(&mut random, len),
            // As Postgres prints it: shorter keys first, a space behind each comma and colon.
            Column::Data => format!(
                "{{\"id\": {seed}, \"list\": [1, 2.50, null], \"text\": \"{}\"}}",
                String::from_utf8_lossy(&words(&mut random, len))
            )
            .into_bytes(),
            Column::Raw => {
                let mut bytes = vec![0; len];
                // Half of them compress.
                let own = if seed.is_multiple_of(2) { len } else { len / 8 };
                random.fill(&mut bytes[..own]);
                bytes
            }
        };
        Value {
            bytes: bytes.into(),
            column,
            seed,
            len,
        }
    }

    /// The same document in another spelling, for jsonb; else the value.
    pub(crate) fn as_sent(&self) -> Vec<u8> {
        let (Column::Data, Ok(text)) = (self.column, std::str::from_utf8(&self.bytes)) else {
            return self.bytes.to_vec();
        };
        let (_, words) = text.split_once("\"text\": ").unwrap();
        format!(
            "{{\"text\":{},\"list\":[1,2.50,null],\"id\":{}}}",
            &words[..words.len() - 1],
            self.seed
        )
        .into_bytes()
    }

    /// The value as a literal of SQL.
    pub(crate) fn literal(&self) -> String {
        match self.column {
            Column::Raw => {
                let digits: String = self.bytes.iter().map(|b| format!("{b:02x}")).collect();
                format!("'\\x{digits}'")
            }
            _ => format!(
                "'{}'",
                String::from_utf8(self.as_sent())
                    .unwrap()
                    .replace('\'', "''")
            ),
        }
    }
}

/// Text of about `len` bytes, never fewer than 90 of 100; half of it compresses well.
fn words(random: &mut Random, len: usize) -> Vec<u8> {
    const WORDS: [&str; 8] = [
        "row ",
        "caf\u{e9} ",
        "it's ",
        "\u{1f418} ",
        "a ",
        "value ",
        "of ",
        "x ",
    ];
    let dense = random.percent(50);
    let mut text = String::with_capacity(len + 16);
    while text.len() + 8 <= len {
        if dense {
            text.push_str(&format!("{:08x}", random.next() as u32));
        } else {
            text.push_str(WORDS[random.below(8) as usize]);
        }
    }
    text.into_bytes()
}
