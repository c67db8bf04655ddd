//! Values from nothing to more than the store takes in one piece, around every length that decides.

use crate::common::THRESHOLD;
use crate::common::raw;
use crate::common::values::hex;
use crate::pair::{Databases, Tally};

/// Proves S5 for lengths around the threshold, around those of references and of messages that are
/// passed on in pieces, in text and in bytes, with literals and with parameters of both formats.
#[test]
fn lengths() {
    let databases = Databases::create("lengths");
    let mut pair = databases.connect();
    let mut tally = Tally::new("lengths");
    let threshold = THRESHOLD as usize;
    let mut lengths = vec![0, 1, 49, 50, 51, 61, 62, 63, 64, 65];
    for around in [threshold, 8 * 1024, 64 * 1024, 256 * 1024, 1 << 20] {
        lengths.extend(around - 1..=around + 1);
    }
    lengths.push(3 << 20);
    for (at, len) in lengths.into_iter().enumerate() {
        let text: String = ('a'..='z').cycle().take(len).collect();
        let bytes: Vec<u8> = (0..len).map(|byte| (byte % 251) as u8).collect();
        let what = format!("{len} bytes");
        let sql = format!(
            "insert into docs(id, body, b) values (1000, '{text}', '{}') returning body, b",
            hex(&bytes)
        );
        pair.same(&mut tally, &what, &raw::query(&sql), 1);
        let binary = (at % 2) as i16;
        let parameters = [
            raw::parse(
                "",
                "insert into docs(id, body, b) values (1001, $1, $2) returning b, body",
                &[],
            ),
            raw::bind(
                "",
                "",
                &[0, 1],
                &[Some(text.as_bytes()), Some(&bytes)],
                &[binary],
            ),
            raw::execute("", 0),
            raw::sync(),
        ];
        pair.same(&mut tally, &what, &parameters.concat(), 1);
        for check in [
            "select body, b, length(body), length(b), md5(body), md5(b) from docs where id >= 1000 order by id",
            "copy (select body, b from docs where id >= 1000 order by id) to stdout",
            "copy (select body, b from docs where id >= 1000 order by id) to stdout binary",
            "select array_agg(body), array_agg(b) from docs where id >= 1000",
            "delete from docs where id >= 1000",
        ] {
            pair.same(
                &mut tally,
                &format!("{what}: {check}"),
                &raw::query(check),
                1,
            );
        }
    }
    tally.finish();
}

/// Proves S5 for messages longer than the proxy holds at once: they stream through (C11, C12, C32).
#[test]
fn long_messages() {
    let databases = Databases::create("long");
    let mut pair = databases.connect();
    let mut tally = Tally::new("long");
    let text = "0123456789abcdef".repeat(20 << 16);
    let check = "select length(body), md5(body) from docs where id >= 1000 order by id";
    let sql = format!("insert into docs(id, body) values (1000, '{text}'); {check}");
    pair.same(&mut tally, "a long Query", &raw::query(&sql), 1);
    let long_text = format!("insert into docs(id, body) values (1001, '{text}')");
    let insert = "insert into docs(id, body) values ($1, $2)";
    let name = "n".repeat(200);
    let messages = [
        raw::parse(&name, &long_text, &[]),
        raw::bind("", &name, &[], &[], &[]),
        raw::execute("", 0),
        raw::parse("s", insert, &[]),
        raw::bind("", "s", &[], &[Some(b"1002"), Some(text.as_bytes())], &[]),
        raw::execute("", 0),
        raw::sync(),
    ];
    pair.same(
        &mut tally,
        "a long Parse, a long Bind",
        &messages.concat(),
        1,
    );
    pair.query(&mut tally, check);
    let copy = [
        raw::query("copy docs(id, body) from stdin"),
        raw::frame(b'd', format!("1003\t{text}\n").as_bytes()),
        raw::frame(b'c', b""),
    ];
    pair.same(&mut tally, "a long CopyData", &copy.concat(), 1);
    pair.query(&mut tally, check);
    pair.query(&mut tally, "select body from docs where id = 1002");
    pair.query(
        &mut tally,
        "copy (select body from docs where id = 1003) to stdout",
    );
    pair.query(
        &mut tally,
        "select repeat('x', 30000000), body from docs where id = 1",
    );
    tally.finish();
}
