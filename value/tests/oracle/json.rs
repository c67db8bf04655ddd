//! canonical_jsonb, valid_json and utf8_chars against jsonb_in, jsonb_out, json_in
//! and length.

use toastrack_value::json::{
    MAX_JSON_DEPTH, NotCanonical, canonical_jsonb, utf8_chars, valid_json,
};
use tokio_postgres::Client;

use crate::generate;
use crate::server::ask;
use rand::Rng;

/// Numbers and texts that once were somebody's trouble.
const PICKED: &[&str] = &[
    "2.561422288066971e+16",
    "1.50",
    "1.5e1",
    "1e-3",
    "-0",
    "-0.0",
    "-0e10",
    "0e-7",
    "1e1000",
    "1E+2",
    "1e-1000",
    "0.1e-1",
    "100e-2",
    "1.000e2",
    "123.456e-5",
    "-1e0",
    "1e00",
    "9007199254740993",
    "1.7976931348623157e308",
    "5e-324",
    "0.000000000000000000001",
    r#"{"b":1,"a":2,"b":3}"#,
    r#"{"a":{"a":{"a":1}}}"#,
    r#"[[],{},[{}],{"a":[]}]"#,
    r#""\u0000""#,
    r#""\ud83d\ude00""#,
    r#""\ud83d""#,
    r#""\ude00""#,
    "",
    " ",
    "nul",
    "NaN",
    "[1,]",
    "01",
    "1.",
    "\u{feff}{}",
    "{\"a\":1}x",
    "'a'",
    "\"\u{7f}\u{85}\u{2028}\"",
    "1e131071",
    "1e131072",
    "1e-16383",
    "1e-16384",
    "1e99999999999",
];

/// Valid JSON, damaged JSON and picked texts give what Postgres gives.
#[test]
fn json_is_read_as_postgres_reads_it() {
    ask(async |client, mut rng| {
        let mut inputs: Vec<Vec<u8>> = PICKED.iter().map(|s| s.as_bytes().to_vec()).collect();
        for _ in 0..4000 {
            inputs.push(generate::number(&mut rng).into_bytes());
        }
        for _ in 0..6000 {
            let depth = rng.random_range(0..5);
            let mut input = generate::json(&mut rng, depth, true).into_bytes();
            if rng.random_bool(0.3) {
                generate::damage(&mut rng, &mut input);
            }
            inputs.push(input);
        }
        inputs.extend(nested());
        let canonical = compare_jsonb(&client, &inputs).await;
        let valid = compare_json(&client, &inputs).await;
        println!(
            "{} inputs, {canonical} canonical, {valid} valid",
            inputs.len()
        );
        assert!(canonical > 7000 && valid > 7000);
    });
}

/// The deepest nesting that is accepted, in several shapes.
fn nested() -> Vec<Vec<u8>> {
    [
        ("[", "1", "]"),
        ("{\"a\":", "1", "}"),
        ("[{\"b\":0,\"a\":", "[]", "}]"),
    ]
    .into_iter()
    .flat_map(|(open, inner, close)| {
        let levels = MAX_JSON_DEPTH / open.matches(['[', '{']).count();
        [10, levels - 1].map(|n| (open.repeat(n) + inner + &close.repeat(n)).into_bytes())
    })
    .collect()
}

async fn compare_jsonb(client: &Client, inputs: &[Vec<u8>]) -> usize {
    let mut compared = 0;
    for batch in inputs.chunks(500) {
        let rows = client
            .query(
                "select t.value, t.error from unnest($1::bytea[]) with ordinality i(input, n), \
                 try_jsonb(input) t order by n",
                &[&batch],
            )
            .await
            .expect("an answer");
        for (input, row) in batch.iter().zip(rows) {
            let expected: Option<&str> = row.get(0);
            let shown = String::from_utf8_lossy(input);
            match canonical_jsonb(input) {
                Ok(ours) => {
                    compared += 1;
                    assert_eq!(
                        Some(String::from_utf8_lossy(&ours).as_ref()),
                        expected,
                        "{shown}"
                    );
                }
                // These two claim that Postgres refuses it as well.
                Err(NotCanonical::Syntax { .. } | NotCanonical::NotUtf8) => {
                    assert_eq!(expected, None, "{shown}");
                }
                Err(other) => println!("declined ({other}): {shown:.60}"),
            }
        }
    }
    compared
}

async fn compare_json(client: &Client, inputs: &[Vec<u8>]) -> usize {
    let mut valid = 0;
    for batch in inputs.chunks(500) {
        let rows = client
            .query(
                "select t.value, length(t.value) from unnest($1::bytea[]) with ordinality \
                 i(input, n), try_json(input) t order by n",
                &[&batch],
            )
            .await
            .expect("an answer");
        for (input, row) in batch.iter().zip(rows) {
            let value: Option<&str> = row.get(0);
            let shown = String::from_utf8_lossy(input);
            assert_eq!(valid_json(input), value.is_some(), "{shown}");
            if let Some(value) = value {
                valid += 1;
                assert_eq!(value.as_bytes(), input);
                let chars: i32 = row.get(1);
                assert_eq!(utf8_chars(input), u32::try_from(chars).ok(), "{shown}");
            }
        }
    }
    valid
}

/// Documents that clients send are canonical or become so, however large.
#[test]
fn large_documents() {
    ask(async |client, mut rng| {
        let mut inputs = Vec::new();
        for _ in 0..30 {
            let parts: Vec<_> = (0..300)
                .map(|_| generate::json(&mut rng, 3, false))
                .collect();
            inputs.push(format!("[{}]", parts.join(",")).into_bytes());
            let members: Vec<_> = parts
                .iter()
                .enumerate()
                .map(|(n, part)| format!("\"{}\":{part}", n * 7919 % 1000))
                .collect();
            inputs.push(format!("{{{}}}", members.join(",")).into_bytes());
        }
        for _ in 0..20 {
            // Twice in canonical form: read, and read again.
            let text = generate::json(&mut rng, 5, false).into_bytes();
            inputs.extend(canonical_jsonb(&text).ok());
        }
        let compared = compare_jsonb(&client, &inputs).await;
        println!("{} inputs, {compared} canonical", inputs.len());
        assert!(compared > inputs.len() / 2);
    });
}
