//! Encodings against pg_encoding_to_char and convert_to.

use toastrack_value::encoding::{ClientEncoding, encode_for_client};

use crate::server::ask;

/// Every encoding of the server is known by its name.
#[test]
fn every_encoding_is_known() {
    ask(async |client, _| {
        let rows = client
            .query(
                "select pg_encoding_to_char(n) from generate_series(0, 60) n \
                 where pg_encoding_to_char(n) <> ''",
                &[],
            )
            .await
            .expect("an answer");
        assert!(rows.len() >= 42);
        for row in rows {
            let name: &str = row.get(0);
            assert_eq!(ClientEncoding::from_name(name.as_bytes()).name(), name);
        }
    });
}

/// LATIN1 gets the bytes, or the error, that Postgres gives.
#[test]
fn latin1_is_converted_as_postgres_converts_it() {
    ask(async |client, _| {
        let texts: Vec<String> = (1..0x3000)
            .chain(0xff00..=0xffff)
            .chain(0x1f600..0x1f610)
            .filter_map(char::from_u32)
            .map(|c| format!("a{c}\u{e9}"))
            .collect();
        let rows = client
            .query(
                "select t.value, t.error from unnest($1::text[]) with ordinality i(input, n), \
                 try_latin1(input) t order by n",
                &[&texts],
            )
            .await
            .expect("an answer");
        for (text, row) in texts.iter().zip(rows) {
            let expected: Option<Vec<u8>> = row.get(0);
            let error: Option<String> = row.get(1);
            match encode_for_client(text.as_bytes(), ClientEncoding::Latin1) {
                Ok(ours) => assert_eq!(Some(ours.into_owned()), expected),
                Err(ours) => assert_eq!(Some(ours.to_string()), error),
            }
        }
    });
}
