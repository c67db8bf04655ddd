//! Arrays against array_in, array_out, array_send and array_replace.

use std::borrow::Cow;
use std::convert::Infallible;
use std::error::Error;

use rand::Rng;
use rand::rngs::StdRng;
use toastrack_value::array::{
    binary_element_oid, binary_elements, replace_binary_elements, replace_text_elements,
    text_elements,
};
use tokio_postgres::types::{FromSql, Type};

use crate::generate;
use crate::server::ask;

const PARTS: &[&str] = &[
    "a",
    "b",
    "NULL",
    "null",
    "\"",
    "\\",
    "{",
    "}",
    ",",
    " ",
    "\t",
    "\n",
    "\r",
    "\u{b}",
    "\u{c}",
    "\u{e9}",
    "\u{a0}",
    ";",
    "'",
    "1",
    "toast:Ab-_",
];

/// A value exactly as it came.
struct Raw(Vec<u8>);

impl<'a> FromSql<'a> for Raw {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Raw, Box<dyn Error + Sync + Send>> {
        Ok(Raw(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

fn element(rng: &mut StdRng) -> Option<String> {
    match rng.random_range(0..10) {
        0 => None,
        1 => Some("x".to_owned()),
        2 => Some("NuLl".to_owned()),
        3 => Some(String::new()),
        _ => Some(generate::mix(rng, PARTS, 4)),
    }
}

/// Elements are listed and replaced in both formats as `array_replace` does it, in
/// one and two dimensions, with other bounds than 1.
#[test]
fn elements_are_replaced_as_postgres_replaces_them() {
    ask(async |client, mut rng| {
        let shapes = [
            "$1::text[]",
            "array[$1::text[], $1::text[]]",
            "array_fill('x'::text, array[2, 3], array[-1, 1]) || array['x', ($1::text[])[1], 'y']",
        ];
        let mut statements = Vec::new();
        for shape in shapes {
            let sql = format!(
                "select a::text, a, r::text, r, array(select unnest(a)) from (select a, \
                 array_replace(a, 'x', $2) r from (select {shape} a) s) s"
            );
            statements.push(client.prepare(&sql).await.expect("prepared"));
        }
        for round in 0..3000 {
            let elements: Vec<_> = (0..rng.random_range(0..6))
                .map(|_| element(&mut rng))
                .collect();
            let new = generate::mix(&mut rng, PARTS, 4);
            let row = client
                .query_one(&statements[round % shapes.len()], &[&elements, &new])
                .await
                .expect("an answer");
            let text: &str = row.get(0);
            let Raw(binary) = row.get(1);
            let (text_replaced, Raw(binary_replaced)) = (row.get::<_, &str>(2), row.get(3));
            let listed: Vec<Option<String>> = row.get(4);

            let ours: Vec<Option<String>> = text_elements(text.as_bytes())
                .map(|element| element.expect(text).value.map(string))
                .collect();
            assert_eq!(ours, listed, "{text}");
            let ours: Vec<Option<String>> = binary_elements(&binary)
                .map(|element| {
                    element
                        .expect(text)
                        .map(|bytes| string(Cow::Borrowed(bytes)))
                })
                .collect();
            assert_eq!(ours, listed, "{text}");
            assert_eq!(binary_element_oid(&binary), Some(25));

            let replace =
                |old: &[u8]| Ok::<_, Infallible>((old == b"x").then(|| new.as_bytes().to_vec()));
            let ours = replace_text_elements(text.as_bytes(), replace).expect(text);
            assert_eq!(
                ours.map_or(text.to_owned(), |bytes| string(Cow::Owned(bytes))),
                text_replaced,
                "{text} {new}"
            );
            let ours = replace_binary_elements(&binary, Some(25), replace).expect(text);
            assert_eq!(ours.unwrap_or(binary), binary_replaced, "{text} {new}");
        }
    });
}

fn string(bytes: Cow<'_, [u8]>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What clients write, in any spelling, is read as Postgres reads it or refused.
#[test]
fn arrays_are_read_as_postgres_reads_them() {
    ask(async |client, mut rng| {
        let parts = &[
            "{", "}", "{", "}", ",", ",", "a", "\"b c\"", "\"\\\"\"", "\"", "\\", " ", "NULL",
            "\n", "\"\"", "x y", "[1:2]=",
        ];
        let mut arrays: Vec<String> = Vec::new();
        for _ in 0..4000 {
            let inner = generate::mix(&mut rng, parts, 6);
            arrays.push(format!("{{{inner}}}"));
            let items: Vec<_> = (0..rng.random_range(1..4))
                .map(|_| {
                    generate::pick(
                        &mut rng,
                        &[
                            "a", " \"b,\" ", " x  y ", "null", "\"\\}\"", "\"nUll\"", "\u{e9}",
                        ],
                    )
                })
                .collect();
            arrays.push(format!("[0:{}]={{{}}}", items.len() - 1, items.join(",")));
        }
        let rows = client
            .query(
                "select t.value from unnest($1::text[]) with ordinality i(input, n), \
                 try_array(input) t order by n",
                &[&arrays],
            )
            .await
            .expect("an answer");
        let mut compared = 0;
        for (array, row) in arrays.iter().zip(rows) {
            let expected: Option<Vec<Option<String>>> = row.get(0);
            let ours: Result<Vec<_>, _> = text_elements(array.as_bytes())
                .map(|element| element.map(|element| element.value.map(string)))
                .collect();
            if let (Ok(ours), Some(expected)) = (ours, expected) {
                compared += 1;
                assert_eq!(ours, expected, "{array}");
            }
        }
        assert!(compared > 3500, "{compared}");
    });
}
