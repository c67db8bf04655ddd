//! Every format and option, rows cut anywhere, and bytes that are no values.

use crate::common::raw::{self, Message, rows, sqlstate};
use crate::common::values::named;
use crate::{End, Pair, RIG, SMALL};

/// Rows of every kind: large, small, NULL, empty, odd, look-alikes.
fn fill(pair: &mut Pair, table: &str) {
    let named = |name: &str| named(name).replace('\'', "''");
    let rows = [
        format!(
            "(1, '{}', 'small', '{}', '{}', '{}', '{}', 1)",
            named("big"),
            named("uni"),
            named("json"),
            named("json"),
            named("bytes")
        ),
        "(2, 'a', 'b', 'c', '{\"d\":1}', '{\"e\": 2}', '\\x00ff', 2)".to_owned(),
        "(3, null, null, null, null, null, null, null)".to_owned(),
        "(4, '', '', '', '\"\"', '\"\"', '', 4)".to_owned(),
        format!(
            "(5, '{}', 'q''\"\\', '{}', '{}', '{}', '{}', 5)",
            named("quotes"),
            named("latin"),
            named("json odd"),
            named("json odd"),
            named("bytes escape")
        ),
        format!(
            "(6, '{}', 'toast:', '{}', '{}', '{}', '{}', 6)",
            named("lookalike"),
            named("prefix+"),
            named("json lookalike"),
            named("json lookalike"),
            named("bytes magic")
        ),
        format!(
            "(7, '{}', null, '{}', '{}', '{}', '{}', 7)",
            named("at"),
            named("at+1"),
            named("json at"),
            named("json at+1"),
            named("bytes at+1")
        ),
        format!("(8, '{}', 'x', '\\.', '1', '2', '\\x', 8)", named("mib")),
        format!("(9, '{}', 'x', '\\N', '1', '2', '\\x', 9)", named("mib+1")),
    ];
    let answer = pair
        .plain
        .query(&format!("insert into {table} values {}", rows.join(",")));
    assert_eq!(sqlstate(&answer), "none", "{answer:?}");
}

fn bytes_of(messages: &[Message]) -> Vec<u8> {
    let data = messages.iter().filter(|message| message.tag == b'd');
    data.flat_map(|message| message.body.clone()).collect()
}

/// Proves S5 for every format with every option, in pieces of several sizes: what a plain server gives
/// out goes into both, and both have the same rows; the large values have left theirs.
#[test]
fn every_format_and_option() {
    let mut pair = Pair::new(&RIG, "formats");
    pair.create("create table source(like docs)");
    fill(&mut pair, "source");
    // Options out of the source, options into the tables, and whether values can leave.
    let all = [
        ("", "", true),
        ("(format text)", "(format text, encoding 'utf8')", true),
        (
            "(delimiter '|', null 'nil')",
            "(delimiter '|', null 'nil')",
            true,
        ),
        ("(delimiter E'\\x01')", "delimiters E'\\x01'", true),
        ("(delimiter 'T')", "(delimiter 'T')", true),
        ("(format text, header)", "(format text, header)", true),
        ("(format text, header)", "(format text, header match)", true),
        ("csv", "csv", true),
        ("csv header", "csv header", true),
        ("(format csv, header)", "(format csv, header match)", true),
        ("csv", "(format csv, header off)", true),
        (
            "(format csv, delimiter ';', quote '''', escape '\\', null 'NULL')",
            "(format csv, delimiter ';', quote '''', escape '\\', null 'NULL')",
            true,
        ),
        (
            "with csv delimiter as ':' quote as '~'",
            "with csv delimiter as ':' quote as '~'",
            true,
        ),
        ("(format csv, quote 't')", "(format csv, quote 't')", true),
        ("(format csv, force_quote *)", "(format csv)", true),
        (
            "(format csv, force_quote *)",
            "(format csv, force_null (body, long, short))",
            true,
        ),
        (
            "(format csv, null 'a')",
            "(format csv, null 'a', force_not_null (body, short))",
            true,
        ),
        (
            "(format csv, encoding 'UTF8')",
            "(format csv, encoding 'UTF8')",
            true,
        ),
        ("(format binary)", "(format binary)", true),
        ("binary", "binary", true),
        ("", "(freeze)", true),
        ("csv", "csv freeze", true),
    ];
    for (out, into, leave) in all {
        let bytes = bytes_of(&pair.plain.query(&format!("copy source to stdout {out}")));
        for piece in [usize::MAX, 100_000, 1021] {
            pair.query("begin");
            pair.query("truncate docs");
            let pieces: Vec<&[u8]> = bytes.chunks(piece.min(bytes.len())).collect();
            let sql = format!("copy docs from stdin {into}");
            let answer = pair.copy(&sql, &pieces, End::Done);
            assert_eq!(sqlstate(&answer), "none", "{sql}");
            pair.query("commit");
            pair.check("docs");
            // Large ones and look-alikes.
            let expected = if leave { [5, 4, 3, 4, 4] } else { [0; 5] };
            let left = pair.left("docs");
            assert_eq!(left, expected, "{out} {into} {piece}");
        }
    }
}

/// Proves that an encoding other than UTF-8 leaves values in the row, and right.
#[test]
fn other_encodings_stay_inline() {
    let mut pair = Pair::new(&RIG, "encodings");
    let row = ["1\t", &"caf\u{e9} ".repeat(1000), "\n"].concat();
    let latin: Vec<u8> = row.chars().map(|c| c as u32 as u8).collect();
    pair.copy(
        "copy docs(id, body) from stdin (encoding 'LATIN1')",
        &[&latin],
        End::Done,
    );
    pair.query("set client_encoding = latin1");
    let latin: Vec<u8> = [b"2", &latin[1..]].concat();
    pair.copy("copy docs(id, body) from stdin", &[&latin], End::Done);
    let latin: Vec<u8> = [b"3", &latin[1..]].concat();
    pair.copy(
        "copy docs(id, body) from stdin (encoding 'LATIN1')",
        &[&latin],
        End::Done,
    );
    pair.query("reset client_encoding");
    pair.query("begin; set client_encoding = latin1");
    let latin: Vec<u8> = [b"4", &latin[1..]].concat();
    // The setting and the copy in one text: the proxy hears of the setting too late.
    let sql = "set client_encoding = latin1; copy docs(id, body) from stdin";
    pair.copy(sql, &[&latin], End::Done);
    pair.query("commit; reset client_encoding");
    pair.check("docs");
    assert_eq!(pair.left("docs")[0], 0);
}

/// Line ends of every kind, an end marker with something behind it, a last row without a line end, CSV
/// in which the marker is data; the values leave.
#[test]
fn line_ends_and_markers() {
    let mut pair = Pair::new(&RIG, "line_ends");
    let big = named("big");
    let lines = |end: &str| format!("1\t{big}{end}2\tx{end}3\t{big}{end}");
    let csv = |end: &str| format!("1,\"{big}\n,\r\"\"\"{end}2,x{end}3,\"{big}\"{end}");
    for (what, options, bytes, left) in [
        ("NL", "", lines("\n"), 2),
        ("CR NL", "", lines("\r\n"), 2),
        ("CR", "", lines("\r"), 2),
        ("no end", "", lines("\n").trim_end().to_owned(), 2),
        (
            "a lone backslash at the end",
            "",
            format!("{}\\", lines("\n").trim_end()),
            1,
        ),
        ("a marker", "", lines("\n") + "\\.\n4\tx\n", 2),
        (
            "a marker and rubbish",
            "",
            lines("\n") + "\\.\n\\.x\r\r\n",
            2,
        ),
        ("CR NL and a marker", "", lines("\r\n") + "\\.\r\n", 2),
        (
            "a marker within a line",
            "",
            format!("1\t{big}\n2\t{big}\\.\n"),
            1,
        ),
        (
            "escaped line ends",
            "",
            format!("1\ta\\\nb{big}\n2\tc\\\r{big}\\\n\n"),
            2,
        ),
        ("CSV, NL", "csv", csv("\n"), 2),
        ("CSV, CR NL", "csv", csv("\r\n"), 2),
        ("CSV, CR", "csv", csv("\r"), 2),
        ("CSV, no end", "csv", csv("\n").trim_end().to_owned(), 2),
        ("CSV, a marker", "csv", csv("\n") + "\\.\n4,x\n", 2),
        (
            "CSV, quotes amid a field",
            "csv",
            format!("1,a\"{big},\n\"b\n2,\"\"{}\"\"\n", big.replace(',', ";")),
            2,
        ),
        (
            "CSV, a header of two lines",
            "csv header",
            format!("\"a\nb\",c\n1,\"{big}\"\n"),
            1,
        ),
    ] {
        pair.query("truncate docs");
        let sql = format!("copy docs(id, body) from stdin {options}");
        for piece in [usize::MAX, 997, 1] {
            pair.query("truncate docs");
            let pieces: Vec<&[u8]> = bytes.as_bytes().chunks(piece).collect();
            let answer = pair.copy(&sql, &pieces, End::Done);
            assert_eq!(sqlstate(&answer), "none", "{what}: {answer:?}");
            pair.check("docs");
            assert_eq!(pair.left("docs")[0], left, "{what} in pieces of {piece}");
        }
    }
    pair.create("create table one(id T.text)");
    let rows = format!("{big}\n\\\\.\n\n\\N\n{big}x");
    pair.copy("copy one from stdin", &[rows.as_bytes()], End::Done);
    let csv = format!("{big}\n\\.x\n\"\\.\"\n\"\"\n\n{big}x");
    pair.copy("copy one from stdin csv", &[csv.as_bytes()], End::Done);
    pair.query("select id, count(*) from one group by 1 order by 1");
}

/// C16: the escapes of the text format, in values that leave and in values that stay.
#[test]
fn case_c16_escapes() {
    let mut pair = Pair::new(&RIG, "escapes");
    let pad = named("big");
    let escapes = r"x\ty\\z\n\x41\101\q\b\f\v\r\xg\x4\18\é";
    let rows = format!(
        "1\t{escapes}\n2\t{escapes}{pad}\n3\ta\\\nb\n4\ta\\\nb{pad}\n5\t\\N\n6\tNULL\n7\t\n8\t{pad}\\N\n9\t\\N{pad}\n"
    );
    pair.copy(
        "copy docs(id, body) from stdin",
        &[rows.as_bytes()],
        End::Done,
    );
    pair.check("docs");
    assert_eq!(pair.left("docs")[0], 4);
    for bad in [
        r"\200",
        r"\0",
        r"\x00",
        r"\xff\xfe",
        r"\303(",
        r"\355\240\200",
    ] {
        for value in [bad.to_owned(), format!("{bad}{pad}"), format!("{pad}{bad}")] {
            let rows = format!("10\t{pad}x\n11\t{value}\n12\t{pad}y\n");
            let answer = pair.copy(
                "copy docs(id, body) from stdin",
                &[rows.as_bytes()],
                End::Done,
            );
            assert_eq!(
                sqlstate(&answer),
                "22021",
                "{}",
                raw::show(value.as_bytes())
            );
        }
    }
    pair.check("docs");
}

/// C19: the version byte of jsonb in a binary copy comes in and goes out; another one is refused.
#[test]
fn case_c19_binary_jsonb() {
    let mut pair = Pair::new(&RIG, "binary_jsonb");
    let stream = |value: &[u8]| {
        let mut out = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\x04\0\0\0\x01".to_vec();
        out.extend((value.len() as u32).to_be_bytes());
        out.extend_from_slice(value);
        out.extend([0xff, 0xff]);
        out
    };
    let json = named("json");
    let sql = "copy docs(id, d) from stdin binary";
    for version in [1, 0, 2, b'{'] {
        let value = [&[version], json.as_bytes()].concat();
        let answer = pair.copy(sql, &[&stream(&value)], End::Done);
        assert_eq!(sqlstate(&answer) == "none", version == 1);
    }
    pair.check("docs");
    assert_eq!(pair.left("docs")[3], 1);
    let out = "copy (select id, d from docs) to stdout binary";
    let [plain, packed] =
        [&mut pair.plain, &mut pair.packed].map(|side| bytes_of(&side.query(out)));
    assert_eq!(plain, packed);
    pair.query("truncate docs");
    let good = [&[1], json.as_bytes()].concat();
    for (what, stream) in [
        ("bad JSON", stream(&[1, b'{'].repeat(3000))),
        ("no value", stream(&[])),
        ("cut short", stream(&good)[..900].to_vec()),
        (
            "no trailer",
            stream(&good)[..stream(&good).len() - 2].to_vec(),
        ),
        (
            "bytes behind the trailer",
            [stream(&good), b"x".to_vec()].concat(),
        ),
        ("another signature", [b"x", &stream(&good)[1..]].concat()),
        ("an extension", {
            let mut stream = stream(&good);
            stream.splice(18..19, *b"\x03ext");
            stream
        }),
        ("OIDs", {
            let mut stream = stream(&good);
            stream[12] = 1;
            stream
        }),
        ("too many fields", {
            let mut stream = stream(&good);
            stream[20] = 3;
            stream
        }),
        ("a negative length", {
            let mut stream = stream(&good);
            stream[29] = 0xfe;
            stream
        }),
    ] {
        let pieces: Vec<&[u8]> = stream.chunks(1021).collect();
        let answer = pair.copy(sql, &pieces, End::Done);
        println!("{what}: {}", sqlstate(&answer));
        pair.check("docs");
        pair.query("truncate docs");
    }
}

/// C15: rows cut in two at every byte offset, in every format: the stored rows are the same, and their
/// values have left them.
#[test]
fn wire_bug_16_rows_cut_at_every_offset() {
    let mut pair = Pair::new(&SMALL, "cuts");
    pair.create("create table source(like docs)");
    let filled = pair.plain.query(
        "insert into source values \
         (1, E'a\\tb\\\\ \"q\"\\n ünïcödé 🦀 and more', 's', null, '{\"k\": [1, \"\\u00e9\"]}', '{\"k\": [1, \"\\u00e9\"]}', '\\x00ff5c0a0d090a000102030405', 1), \
         (2, null, null, null, null, null, null, null), \
         (3, '', '', E'CR\\rLF\\r\\n\\\\.\\n, and more', '[]', '[]', '', 3)",
    );
    assert_eq!(sqlstate(&filled), "none", "{filled:?}");
    let all = "select * from docs order by id";
    let expected = rows(&pair.plain.query("select * from source order by id"));
    for options in ["", "csv", "(format csv, quote '''', escape '\\')", "binary"] {
        let bytes = bytes_of(
            &pair
                .plain
                .query(&format!("copy source to stdout {options}")),
        );
        let sql = format!("copy docs from stdin {options}");
        for cut in 0..=bytes.len() {
            let pieces = [&bytes[..cut], &bytes[cut..]];
            let answer = crate::copy(&mut pair.packed, &sql, &pieces, End::Done);
            assert_eq!(sqlstate(&answer), "none", "{options} cut at {cut}");
            if cut == bytes.len() / 2 {
                assert_eq!(pair.left("docs"), [1, 1, 1, 1, 1], "{options} cut at {cut}");
            }
            let found = rows(&pair.packed.query(all));
            assert!(found == expected, "{options} cut at {cut}");
            let counts = "select count(*) filter (where toastrack.raw_length(body) = 62) from docs";
            let left = raw::first_text(&pair.packed.query(counts));
            assert_eq!(left, "1", "{options} cut at {cut}");
            pair.packed.query("delete from docs");
        }
        // And in pieces of one byte.
        let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
        pair.copy(&sql, &pieces, End::Done);
        pair.check("docs");
        pair.query("delete from docs");
    }
}
