//! Cases of large values, by their numbers.

use crate::common::raw::{self, error_field, rows, sqlstate, tags};
use crate::{RIG, big, database};

fn bind_one(statement: &str, binary: bool, value: &[u8], binary_result: bool) -> Vec<u8> {
    [
        raw::bind(
            "",
            statement,
            &[i16::from(binary)],
            &[Some(value)],
            &[i16::from(binary_result)],
        ),
        raw::execute("", 0),
        raw::sync(),
    ]
    .concat()
}

/// C12: one simple query of 300 MB is taken.
#[test]
fn case_c12_a_query_of_300_mb() {
    let name = database("c12");
    let mut session = RIG.raw_through(&name);
    let sql = format!("select length('{}')", "x".repeat(300 << 20));
    let answer = session.query(&sql);
    assert_eq!(raw::first_text(&answer), (300 << 20).to_string());
}

/// COPY rows cut at every byte offset, in text, CSV and binary: the stored rows are the same.
#[test]
fn wire_bug_16_copy_rows_span_messages() {
    let name = database("w16");
    let mut session = RIG.raw_through(&name);
    session.query("insert into docs values (1, E'a\\tb\\\\ \"q\"\\n', '{\"k\": [1, \"\\u00e9\"]}', '\\x00ff5c'), (2, null, null, null), (3, '', '[]', '')");
    let all = "select * from docs order by id";
    let expected = rows(&session.query(all));
    for options in ["", "csv", "binary"] {
        let out = session.query(&format!("copy docs to stdout {options}"));
        let bytes: Vec<u8> = out
            .iter()
            .filter(|message| message.tag == b'd')
            .flat_map(|message| message.body.clone())
            .collect();
        for cut in 0..=bytes.len() {
            let messages = [
                raw::query(&format!("truncate docs; copy docs from stdin {options}")),
                raw::frame(b'd', &bytes[..cut]),
                raw::frame(b'd', &bytes[cut..]),
                raw::frame(b'c', b""),
                raw::query(all),
            ];
            session.send(&messages.concat());
            assert_eq!(
                sqlstate(&session.until_ready(1)),
                "none",
                "{options} cut at {cut}"
            );
            assert_eq!(
                rows(&session.until_ready(1)),
                expected,
                "{options} cut at {cut}"
            );
        }
    }
}

/// A Bind whose inner lengths exceed its frame does not read on into what stands behind it.
#[test]
fn wire_bug_17_a_bind_that_lies() {
    let name = database("w17");
    let mut session = RIG.raw_through(&name);
    session.send(
        &[
            raw::parse("s", "insert into docs(id, body) values (1, $1)", &[]),
            raw::sync(),
        ]
        .concat(),
    );
    assert_eq!(tags(&session.until_ready(1)), "1Z");
    let lie = raw::frame(b'B', b"\0s\0\0\0\0\x01\0\0\x10\0short");
    session.send(&[lie, raw::execute("", 0), raw::sync()].concat());
    assert_eq!(sqlstate(&session.until_ready(1)), "08P01");
    let count = session.query("select count(*) from docs");
    assert_eq!(raw::first_text(&count), "0");
}

/// C19: the version byte of jsonb in binary comes in and goes out, by parameters and by COPY, alone
/// and in arrays.
#[test]
fn case_c19_jsonb_in_binary() {
    let name = database("c19");
    let mut session = RIG.raw_through(&name);
    let json = format!("{{\"k\": \"{}\"}}", big());
    let binary = [&[1], json.as_bytes()].concat();
    session.send(&raw::parse(
        "s",
        "insert into docs(id, d) values (1, $1) returning d",
        &[],
    ));
    session.send(&bind_one("s", true, &binary, true));
    assert_eq!(rows(&session.until_ready(1))[0][0], Some(binary.clone()));
    let mut wrong = binary.clone();
    wrong[0] = 2;
    session.send(&bind_one("s", true, &wrong, true));
    assert_eq!(sqlstate(&session.until_ready(1)), "XX000");
    let copied = session.query("copy docs(d) to stdout binary");
    let row = copied
        .iter()
        .find(|message| message.tag == b'd')
        .expect("a row");
    assert!(row.body.ends_with(&binary));
    session.send(
        &[
            raw::parse("a", "select array_agg(d) from docs", &[]),
            raw::bind("", "a", &[], &[], &[1]),
            raw::execute("", 0),
            raw::sync(),
        ]
        .concat(),
    );
    let array = rows(&session.until_ready(1))[0][0]
        .clone()
        .expect("an array");
    assert!(array.ends_with(&binary));
    // The element type is jsonb, 3802.
    assert_eq!(array[8..12], 3802_u32.to_be_bytes());
}

/// C28: a statement timeout ends a large result; the session goes on.
#[test]
fn case_c28_statement_timeout() {
    let name = database("c28");
    let mut session = RIG.raw_through(&name);
    session.query(&format!(
        "insert into docs(id, body) values (1, '{}')",
        big()
    ));
    session.query("set statement_timeout = 50");
    let answer = session.query("select body from docs, generate_series(1, 1000000)");
    assert_eq!(sqlstate(&answer), "57014");
    assert_eq!(
        raw::first_text(&session.query("select body from docs")),
        big()
    );
}

/// C30: the style of bytea by role and by database.
#[test]
fn case_c30_bytea_output() {
    let name = database("c30");
    let mut session = RIG.raw_through(&name);
    let bytes = "00ff5c41".repeat(1000);
    session.query(&format!("insert into docs(id, b) values (1, '\\x{bytes}')"));
    assert_eq!(
        raw::first_text(&session.query("select b from docs")),
        format!("\\x{bytes}")
    );
    session.query(&format!("alter database {name} set bytea_output = escape"));
    let mut escaped = RIG.raw_through(&name);
    let expected = "\\000\\377\\\\A".repeat(1000);
    assert_eq!(
        raw::first_text(&escaped.query("select b from docs")),
        expected
    );
    session
        .query("create role with_hex login superuser; alter role with_hex set bytea_output = hex");
    let mut hex = raw::Raw::connect_with(RIG.port, &[("user", "with_hex"), ("database", &name)]);
    assert_eq!(
        raw::first_text(&hex.query("select b from docs")),
        format!("\\x{bytes}")
    );
}

/// C32: a parameter of 100 MB, as bytes.
#[test]
fn case_c32_a_parameter_of_100_mb() {
    let name = database("c32");
    let mut session = RIG.raw_through(&name);
    let bytes: Vec<u8> = (0..100 << 20).map(|at: u32| (at % 251) as u8).collect();
    session.send(&raw::parse(
        "s",
        "insert into docs(id, b) values (1, $1) returning length(b), md5(b) = md5($1)",
        &[17],
    ));
    session.send(&bind_one("s", true, &bytes, false));
    let answer = session.until_ready(1);
    assert_eq!(
        rows(&answer)[0],
        [
            Some((100 << 20).to_string().into_bytes()),
            Some(b"t".to_vec())
        ]
    );
}

/// C34: bulk insert by unnest, elements that need every kind of quoting, arrays in text and binary.
#[test]
fn case_c34_unnest() {
    let name = database("c34");
    let mut session = RIG.raw_through(&name);
    let odd = format!("{{ }} , \" \\ NULL {}", big());
    let elements = [Some(odd.as_str()), None, Some("NULL"), Some(""), Some("{}")];
    let text: Vec<String> = elements
        .iter()
        .map(|one| {
            one.map_or("NULL".to_owned(), |one| {
                format!("\"{}\"", one.replace('\\', "\\\\").replace('"', "\\\""))
            })
        })
        .collect();
    let text = format!("{{{}}}", text.join(","));
    let mut binary = [1_u32, 1, 25, elements.len() as u32, 1]
        .map(u32::to_be_bytes)
        .concat();
    for element in elements {
        match element {
            Some(element) => {
                binary.extend((element.len() as u32).to_be_bytes());
                binary.extend(element.as_bytes());
            }
            None => binary.extend((-1_i32).to_be_bytes()),
        }
    }
    session.send(&raw::parse(
        "s",
        "insert into docs(id, body) select n, v from unnest($1::text[]) with ordinality u(v, n)",
        &[],
    ));
    let expected: Vec<Vec<Option<Vec<u8>>>> = elements
        .iter()
        .map(|one| vec![one.map(|one| one.as_bytes().to_vec())])
        .collect();
    for (value, is_binary) in [(text.as_bytes(), false), (&binary, true)] {
        session.send(&bind_one("s", is_binary, value, false));
        assert_eq!(sqlstate(&session.until_ready(1)), "none");
        // Once more by the proxy, as references.
        session.query(&format!(
            "update docs set body = '{}' where id = 1",
            odd.replace('\'', "''")
        ));
        assert_eq!(
            rows(&session.query("select body from docs order by id")),
            expected
        );
        let array = session.query("select array_agg(body order by id) from docs");
        assert_eq!(raw::first_text(&array), text);
        session.query("truncate docs");
    }
}

/// C35: the OIDs that a client sees are those of the plain types.
#[test]
fn case_c35_type_oids() {
    let name = database("c35");
    let mut session = RIG.raw_through(&name);
    session.query("create table kinds(t toastrack.text, j toastrack.json, d toastrack.jsonb, b toastrack.bytea, v toastrack.varchar(9))");
    let expected = [25, 114, 3802, 17, 1043];
    let types = |body: &[u8]| -> Vec<u32> {
        let description = toastrack_wire::RowDescription::parse(body).expect("a RowDescription");
        description.fields().map(|field| field.type_oid).collect()
    };
    let answer = session.query("select * from kinds");
    assert_eq!(types(&answer[0].body), expected);
    let describe = [
        raw::parse(
            "",
            "insert into kinds values ($1, $2, $3, $4, $5) returning *",
            &[],
        ),
        raw::describe_statement(""),
        raw::sync(),
    ];
    session.send(&describe.concat());
    let answer = session.until_ready(1);
    assert_eq!(tags(&answer), "1tTZ");
    let parameters =
        toastrack_wire::ParameterDescription::parse(&answer[1].body).expect("parameters");
    assert_eq!(
        parameters.types().map(|(_, oid)| oid).collect::<Vec<_>>(),
        expected
    );
    assert_eq!(types(&answer[2].body), expected);
    let arrays = session.query(
        "select array_agg(t), array_agg(j), array_agg(d), array_agg(b), array_agg(v) from kinds",
    );
    assert_eq!(types(&arrays[0].body), [1009, 199, 3807, 1001, 1015]);
}

/// C38 to C40: numbers and keys as Postgres keeps them, also in values that are offloaded.
#[test]
fn case_c38_c39_c40_json() {
    let name = database("c38");
    let mut session = RIG.raw_through(&name);
    session.query("create table js(id int, j toastrack.json, d toastrack.jsonb)");
    let pad = big();
    let sixty = "0.123456789012345678901234567890123456789012345678901234567890";
    let client = format!("{{\"b\":1,\"a\":2.561422288066971e+16,\"b\":{sixty},\"pad\":\"{pad}\"}}");
    let insert = format!("insert into js values (1, '{client}', '{client}')");
    assert_eq!(sqlstate(&session.query(&insert)), "none");
    let answer = rows(&session.query("select j, d from js"));
    assert_eq!(answer[0][0], Some(client.into_bytes()));
    let canonical = format!("{{\"a\": 25614222880669710, \"b\": {sixty}, \"pad\": \"{pad}\"}}");
    assert_eq!(answer[0][1], Some(canonical.into_bytes()));

    let zero = format!("{{\"z\":\"\\u0000\",\"pad\":\"{pad}\"}}");
    let refused = session.query(&format!("insert into js(d) values ('{zero}')"));
    assert_eq!(sqlstate(&refused), "22P05");
    assert_eq!(
        sqlstate(&session.query(&format!("insert into js(id, j) values (2, '{zero}')"))),
        "none"
    );
    assert_eq!(
        raw::first_text(&session.query("select j from js where id = 2")),
        zero
    );
    assert_eq!(
        sqlstate(&session.query("select j ->> 'z' from js where id = 2")),
        "22P05"
    );
}

/// C41: a unique index sees values, not references. (That it takes values beyond a third of a page,
/// which plain Postgres refuses with 54000, is in docs/semantics.md.)
#[test]
fn case_c41_unique_values() {
    let name = database("c41");
    let mut session = RIG.raw_through(&name);
    assert_eq!(
        sqlstate(&session.query("create unique index on docs(body)")),
        "none"
    );
    let body = "u".repeat(2100);
    session.query(&format!("insert into docs(id, body) values (1, '{body}')"));
    let twice = format!("insert into docs(id, body) values (2, '{body}')");
    assert_eq!(sqlstate(&session.query(&twice)), "23505");
    // The same value, inline.
    let inline = "insert into docs(id, body) select 2, repeat('u', 2100)";
    assert_eq!(sqlstate(&session.query(inline)), "23505");
    session.query("drop index docs_body_idx; create index on docs using hash (body)");
    assert_eq!(sqlstate(&session.query(&twice)), "none");
}

/// C49: a reference that somebody copies as text stays text, in a table of their own.
#[test]
fn case_c49_a_forged_reference() {
    let name = database("c49");
    let mut session = RIG.raw_through(&name);
    session.query(&format!(
        "insert into docs(id, body) values (1, '{}')",
        big()
    ));
    let reference = raw::first_text(
        &RIG.raw_direct(&name)
            .query("select toastrack.raw(body)::text from docs"),
    );
    session.query("create table theirs(body toastrack.text, d toastrack.jsonb)");
    let literal = format!("insert into theirs values ('{reference}', '\"{reference}\"')");
    assert_eq!(sqlstate(&session.query(&literal)), "none");
    session.send(&raw::parse(
        "s",
        "insert into theirs(body) values ($1)",
        &[],
    ));
    session.send(&bind_one("s", false, reference.as_bytes(), false));
    assert_eq!(sqlstate(&session.until_ready(1)), "none");
    let answer = rows(&session.query("select body, d from theirs"));
    assert_eq!(answer[0][0], Some(reference.clone().into_bytes()));
    assert_eq!(answer[0][1], Some(format!("\"{reference}\"").into_bytes()));
    assert_eq!(answer[1][0], Some(reference.into_bytes()));
    let server = session.query("select length(body) from theirs");
    assert_eq!(raw::first_text(&server), "62");
    // One that was never given out verifies nowhere.
    let error = session.query("insert into theirs(body) values ('toast:nonsense') returning body");
    assert_eq!(error_field(&error, b'M'), None);
}
