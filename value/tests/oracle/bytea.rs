//! bytea text against byteain and byteaout.

use rand::Rng;
use toastrack_value::bytea::{NotBytea, decode, encode_escape, encode_hex};

use crate::generate;
use crate::server::ask;

/// Both output styles print what Postgres prints.
#[test]
fn bytea_is_printed_as_postgres_prints_it() {
    ask(async |client, mut rng| {
        let mut values: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        values.push((0..=255).collect());
        values.extend((0..2000).map(|_| generate::bytes(&mut rng, 60)));
        type Encode = fn(&[u8]) -> Vec<u8>;
        for (style, encode) in [("hex", encode_hex as Encode), ("escape", encode_escape)] {
            client
                .batch_execute(&format!("set bytea_output = {style}"))
                .await
                .expect("set");
            let printed: Vec<String> = client
                .query_one(
                    "select array(select v::text from unnest($1::bytea[]) \
                     with ordinality i(v, n) order by n)",
                    &[&values],
                )
                .await
                .expect("an answer")
                .get(0);
            for (value, printed) in values.iter().zip(printed) {
                assert_eq!(String::from_utf8_lossy(&encode(value)), printed);
            }
        }
    });
}

/// Every spelling is read as Postgres reads it.
#[test]
fn bytea_is_read_as_postgres_reads_it() {
    ask(async |client, mut rng| {
        let mut texts: Vec<Vec<u8>> = Vec::new();
        for _ in 0..4000 {
            let value = generate::bytes(&mut rng, 12);
            let mut text = match rng.random_range(0..4) {
                0 => encode_hex(&value),
                1 => encode_escape(&value),
                2 => {
                    let parts = &["00", "fF", "a0", " ", "\n", "\t", "\r", "7"];
                    format!("\\x{}", generate::mix(&mut rng, parts, 8)).into_bytes()
                }
                _ => {
                    let parts = &[
                        "\\\\", "\\000", "\\377", "\\12", "\\400", "a", "\\x", "\u{e9}", "'",
                    ];
                    generate::mix(&mut rng, parts, 5).into_bytes()
                }
            };
            if rng.random_bool(0.2) {
                generate::damage(&mut rng, &mut text);
            }
            texts.push(text);
        }
        let rows = client
            .query(
                "select t.value from unnest($1::bytea[]) with ordinality i(input, n), \
                 try_bytea(input) t order by n",
                &[&texts],
            )
            .await
            .expect("an answer");
        let mut decoded = 0;
        for (text, row) in texts.iter().zip(rows) {
            let expected: Option<Vec<u8>> = row.get(0);
            match decode(text) {
                Err(NotBytea::NotAscii { .. }) => {}
                ours => assert_eq!(ours.ok(), expected, "{}", String::from_utf8_lossy(text)),
            }
            decoded += usize::from(decode(text).is_ok());
        }
        assert!(decoded > 2000, "{decoded}");
    });
}
