//! Makes the values: from a seed, all different, with nothing built inside the timed loop.
//!
//! A pool of bodies is generated beforehand. A value is a body with 16 hexadecimal digits of its
//! own written at a fixed place, so that no two values are equal (a store that shares equal
//! values gains nothing) and any value can be recomputed to check what was read.
//!
//! JSON bodies are in the canonical text of Postgres' jsonb (keys by length, then bytes; one blank
//! after `,` and `:`), so text and jsonb columns hold and return the same bytes.

use std::error::Error;

use clap::ValueEnum;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// The type of the value columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ValueType {
    /// `text`
    Text,
    /// `jsonb`
    Jsonb,
    /// `bytea`
    Bytea,
}

impl ValueType {
    /// The name of the type in SQL, without a schema.
    pub(crate) fn sql_name(self) -> &'static str {
        match self {
            ValueType::Text => "text",
            ValueType::Jsonb => "jsonb",
            ValueType::Bytea => "bytea",
        }
    }
}

/// What the values contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DataKind {
    /// Documents that compress about 2.7 times with lz4 at 8 kB.
    Json,
    /// Noise that does not compress (in jsonb, one long string).
    Random,
}

/// The size of the smallest value that has room for the frame of a document.
pub(crate) const MIN_VALUE_BYTES: usize = 64;

/// Bytes of a reference in a row, by type: what the bound stores instead of a value.
fn reference_bytes(value_type: ValueType) -> usize {
    match value_type {
        ValueType::Text => 62,
        ValueType::Jsonb => 64,
        ValueType::Bytea => 50,
    }
}

const STAMP_BYTES: usize = 16;
const POOL_BYTES: usize = 64 << 20;
const POOL_BODIES: usize = 1024;
const MIN_POOL_BODIES: usize = 16;

/// Which value: unique for a table, a run, a row and a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValueId {
    /// Counts the writing runs of the whole benchmark.
    pub(crate) generation: u16,
    /// The row's `id`.
    pub(crate) row: u32,
    /// Column, from 0.
    pub(crate) column: u8,
}

impl ValueId {
    fn key(self) -> u64 {
        (u64::from(self.generation) << 40) | (u64::from(self.row) << 8) | u64::from(self.column)
    }
}

/// The bodies of one table's values.
#[derive(Debug)]
pub(crate) struct Pool {
    bodies: Vec<Vec<u8>>,
    stamp_at: usize,
    value_type: ValueType,
}

impl Pool {
    /// Values of `size` bytes each.
    pub(crate) fn values(value_type: ValueType, data: DataKind, size: usize, seed: u64) -> Pool {
        let mut rng = SmallRng::seed_from_u64(seed);
        let count = (POOL_BYTES / size).clamp(MIN_POOL_BODIES, POOL_BODIES);
        let bodies = (0..count).map(|_| document(&mut rng, data, value_type, size));
        Pool {
            bodies: bodies.collect(),
            stamp_at: DOCUMENT_START.len(),
            value_type,
        }
    }

    /// Random strings of a reference's size.
    pub(crate) fn references(value_type: ValueType, seed: u64) -> Pool {
        let mut rng = SmallRng::seed_from_u64(seed);
        let size = reference_bytes(value_type);
        let bodies = (0..POOL_BODIES * 4).map(|_| {
            let mut body = noise(&mut rng, size);
            if value_type == ValueType::Jsonb {
                body[0] = b'"';
                body[size - 1] = b'"';
            }
            body
        });
        Pool {
            bodies: bodies.collect(),
            stamp_at: 1,
            value_type,
        }
    }

    /// Bytes of each value.
    pub(crate) fn value_bytes(&self) -> usize {
        self.bodies[0].len()
    }

    /// The value with this identity.
    pub(crate) fn value(&self, id: ValueId) -> Value<'_> {
        let key = id.key();
        // Fibonacci hashing spreads neighbouring keys over the pool.
        let spread = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
        let body = &self.bodies[spread as usize % self.bodies.len()];
        Value {
            before: &body[..self.stamp_at],
            stamp: stamp(key),
            after: &body[self.stamp_at + STAMP_BYTES..],
            value_type: self.value_type,
        }
    }
}

fn stamp(key: u64) -> [u8; STAMP_BYTES] {
    // An odd multiplier is a bijection: different keys stay different, with no zeros in common.
    let mixed = key.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    let mut digits = [0; STAMP_BYTES];
    for (at, digit) in digits.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(mixed >> (60 - 4 * at)) as usize & 15];
    }
    digits
}

/// One value, ready to be sent or compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value<'a> {
    before: &'a [u8],
    stamp: [u8; STAMP_BYTES],
    after: &'a [u8],
    value_type: ValueType,
}

impl Value<'_> {
    /// Whether these are the bytes of the value.
    pub(crate) fn equals(&self, bytes: &[u8]) -> bool {
        bytes
            .strip_prefix(self.before)
            .and_then(|rest| rest.strip_prefix(&self.stamp))
            .is_some_and(|rest| rest == self.after)
    }
}

/// A parameter of the benchmark's statements.
#[derive(Debug)]
pub(crate) enum Param<'a> {
    /// The primary key.
    Id(i64),
    /// A value column.
    Value(Value<'a>),
}

impl ToSql for Param<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Param::Id(id) => id.to_sql(ty, out),
            Param::Value(value) => {
                if value.value_type == ValueType::Jsonb {
                    out.extend_from_slice(&[JSONB_VERSION]);
                }
                out.extend_from_slice(value.before);
                out.extend_from_slice(&value.stamp);
                out.extend_from_slice(value.after);
                Ok(IsNull::No)
            }
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// The bytes of a value column as they arrived, without a copy or a check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received<'a>(pub(crate) &'a [u8]);

impl<'a> FromSql<'a> for Received<'a> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        if *ty == Type::JSONB {
            let text = raw.strip_prefix(&[JSONB_VERSION]);
            return text
                .map(Received)
                .ok_or_else(|| "unknown jsonb version".into());
        }
        Ok(Received(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

const JSONB_VERSION: u8 = 1;

const DOCUMENT_START: &str = r#"{"id": ""#;
const ITEMS_START: &str = r#"", "items": ["#;
const PADDING_START: &str = r#"], "padding": ""#;
const DOCUMENT_END: &str = r#""}"#;

/// One body of exactly `size` bytes, with room for the stamp behind `DOCUMENT_START`.
fn document(rng: &mut SmallRng, data: DataKind, value_type: ValueType, size: usize) -> Vec<u8> {
    if data == DataKind::Random && value_type == ValueType::Bytea {
        return (0..size).map(|_| rng.random()).collect();
    }
    let mut text = String::with_capacity(size + 512);
    text.push_str(DOCUMENT_START);
    text.push_str(&"0".repeat(STAMP_BYTES));
    text.push_str(ITEMS_START);
    let tail = PADDING_START.len() + DOCUMENT_END.len();
    if data == DataKind::Json {
        let mut first = true;
        loop {
            let item = item(rng);
            let separator = if first { "" } else { ", " };
            if text.len() + separator.len() + item.len() + tail > size {
                break;
            }
            text.push_str(separator);
            text.push_str(&item);
            first = false;
        }
    }
    text.push_str(PADDING_START);
    let padding = size - DOCUMENT_END.len() - text.len();
    let mut body = text.into_bytes();
    body.extend(noise(rng, padding));
    body.extend_from_slice(DOCUMENT_END.as_bytes());
    body
}

/// One element of a document: what an order, an event or a profile looks like.
fn item(rng: &mut SmallRng) -> String {
    let mut pick = |words: &[&'static str]| words[rng.random_range(0..words.len())];
    let (name, surname, city, state) = (pick(NAMES), pick(SURNAMES), pick(CITIES), pick(STATES));
    let note: Vec<&str> = (0..3).map(|_| pick(WORDS)).collect();
    let note = note.join(" ");
    format!(
        r#"{{"id": {}, "city": "{city}", "name": "{name} {surname}", "note": "{note}", "email": "{}.{}@example.com", "price": {}.{:02}, "state": "{state}", "active": {}, "created": "2024-{:02}-{:02}T{:02}:{:02}+02:00", "currency": "EUR"}}"#,
        rng.random_range(100_000..9_999_999),
        name.to_ascii_lowercase(),
        surname.to_ascii_lowercase(),
        rng.random_range(1..2000),
        rng.random_range(0..100),
        rng.random::<bool>(),
        rng.random_range(1..13),
        rng.random_range(1..29),
        rng.random_range(0..24),
        rng.random_range(0..60),
    )
}

/// `size` characters that need no escape anywhere and do not compress with lz4.
fn noise(rng: &mut SmallRng, size: usize) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    (0..size)
        .map(|_| ALPHABET[rng.random_range(0..ALPHABET.len())])
        .collect()
}

const NAMES: &[&str] = &[
    "Ada", "Bela", "Chen", "Dora", "Emil", "Farid", "Grete", "Hugo", "Ines", "Jamal", "Kaya",
    "Linus", "Mei", "Nadia", "Otto", "Priya", "Quentin", "Rosa", "Sven", "Tomasz", "Uma", "Victor",
    "Wanda", "Xenia", "Yusuf", "Zoe",
];
const SURNAMES: &[&str] = &[
    "Almeida",
    "Brandt",
    "Castillo",
    "Dubois",
    "Eriksson",
    "Fischer",
    "Garcia",
    "Horvat",
    "Ivanova",
    "Jansen",
    "Kowalski",
    "Lindqvist",
    "Moreau",
    "Novak",
    "Okafor",
    "Petrov",
    "Rossi",
    "Schmidt",
    "Tanaka",
    "Weber",
];
const CITIES: &[&str] = &[
    "Amsterdam",
    "Bologna",
    "Cologne",
    "Dakar",
    "Edinburgh",
    "Freiburg",
    "Ghent",
    "Helsinki",
    "Istanbul",
    "Jakarta",
    "Kyoto",
    "Lisbon",
    "Montreal",
    "Nairobi",
    "Oslo",
    "Porto",
    "Riga",
    "Seville",
    "Toulouse",
    "Utrecht",
    "Vienna",
    "Warsaw",
    "Zagreb",
];
const STATES: &[&str] = &["open", "paid", "packed", "shipped", "returned"];
const WORDS: &[&str] = &[
    "after", "amber", "basket", "before", "bridge", "candle", "copper", "delivery", "early",
    "engine", "fabric", "garden", "gravel", "handle", "harbour", "island", "jacket", "kettle",
    "ladder", "lantern", "marble", "meadow", "needle", "orange", "paper", "pencil", "quiet",
    "ribbon", "river", "saddle", "silver", "table", "thunder", "timber", "umbrella", "valley",
    "velvet", "window", "winter", "yellow",
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn bytes(value: Value<'_>) -> Vec<u8> {
        [value.before, &value.stamp, value.after].concat()
    }

    fn id(row: u32) -> ValueId {
        ValueId {
            generation: 3,
            row,
            column: 1,
        }
    }

    #[test]
    fn values_have_the_asked_size_and_are_all_different() {
        for (value_type, data) in [
            (ValueType::Text, DataKind::Json),
            (ValueType::Jsonb, DataKind::Random),
            (ValueType::Bytea, DataKind::Random),
        ] {
            for size in [MIN_VALUE_BYTES, 500, 8192] {
                let pool = Pool::values(value_type, data, size, 7);
                let all: HashSet<Vec<u8>> =
                    (0..2000).map(|row| bytes(pool.value(id(row)))).collect();
                assert_eq!(all.len(), 2000);
                assert!(all.iter().all(|value| value.len() == size));
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_values_and_another_seed_others() {
        let value =
            |seed| bytes(Pool::values(ValueType::Text, DataKind::Json, 8192, seed).value(id(1)));
        assert_eq!(value(1), value(1));
        assert_ne!(value(1), value(2));
    }

    /// The seed data must compress as real documents do, or the comparison means nothing.
    #[test]
    fn json_compresses_about_2_7_times_and_noise_not_at_all() {
        let ratio = |data, value_type| {
            let pool = Pool::values(value_type, data, 8192, 1);
            let compressed: usize = (0..100)
                .map(|row| lz4_flex::block::compress(&bytes(pool.value(id(row)))).len())
                .sum();
            (100 * 8192) as f64 / compressed as f64
        };
        let json = ratio(DataKind::Json, ValueType::Text);
        assert!((2.5..2.9).contains(&json), "json compresses {json} times");
        assert!(ratio(DataKind::Random, ValueType::Text) < 1.02);
        assert!(ratio(DataKind::Random, ValueType::Bytea) < 1.02);
    }

    #[test]
    fn a_value_equals_its_own_bytes_only() {
        let pool = Pool::values(ValueType::Text, DataKind::Json, 500, 1);
        let mine = bytes(pool.value(id(1)));
        assert!(pool.value(id(1)).equals(&mine));
        assert!(!pool.value(id(2)).equals(&mine));
        assert!(!pool.value(id(1)).equals(&mine[..499]));
        let mut longer = mine.clone();
        longer.push(b' ');
        assert!(!pool.value(id(1)).equals(&longer));
    }

    #[test]
    fn references_have_the_size_of_a_reference() {
        assert_eq!(Pool::references(ValueType::Text, 1).value_bytes(), 62);
        let jsonb = Pool::references(ValueType::Jsonb, 1);
        let text = String::from_utf8(bytes(jsonb.value(id(5)))).unwrap();
        assert_eq!(text.len(), 64);
        let string: String = serde_json::from_str(&text).unwrap();
        assert_eq!(string.len(), 62);
    }

    #[test]
    fn documents_are_json_without_duplicate_keys() {
        let pool = Pool::values(ValueType::Jsonb, DataKind::Json, 8192, 1);
        let text = String::from_utf8(bytes(pool.value(id(9)))).unwrap();
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(parsed["items"].as_array().unwrap().len() > 20);
    }
}
