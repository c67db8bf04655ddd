//! COPY rows against COPY TO and COPY FROM.

use std::borrow::Cow;

use bytes::Bytes;
use futures::{SinkExt, TryStreamExt};
use rand::Rng;
use toastrack_value::copy::{
    CsvFormat, Field, TextFormat, split_csv, split_line_end, split_text, write_csv, write_text,
};
use tokio_postgres::Client;

use crate::generate::{mix, pick};
use crate::server::ask;

const PARTS: &[&str] = &[
    "a",
    "b",
    "N",
    "NULL",
    "\\",
    "\\N",
    "\\.",
    "\"",
    "'",
    ",",
    "|",
    ";",
    "\t",
    "\n",
    "\r",
    "\u{1}",
    "\u{8}",
    "\u{b}",
    "\u{c}",
    "\u{1b}",
    "\u{7f}",
    "\u{e9}",
    "\u{1f600}",
    " ",
    "x41",
    "1",
];

type Row = Vec<Option<String>>;

const TEXT: &[(&str, TextFormat<'_>)] = &[
    (
        "",
        TextFormat {
            delimiter: b'\t',
            null: b"\\N",
        },
    ),
    (
        "delimiter '|', null ''",
        TextFormat {
            delimiter: b'|',
            null: b"",
        },
    ),
    (
        "delimiter E'\\x01', null 'NULL'",
        TextFormat {
            delimiter: 1,
            null: b"NULL",
        },
    ),
    (
        "delimiter ',', null '1'",
        TextFormat {
            delimiter: b',',
            null: b"1",
        },
    ),
];

const CSV: &[(&str, CsvFormat<'_>)] = &[
    (
        "",
        CsvFormat {
            delimiter: b',',
            quote: b'"',
            escape: b'"',
            null: b"",
        },
    ),
    (
        "escape '\\'",
        CsvFormat {
            delimiter: b',',
            quote: b'"',
            escape: b'\\',
            null: b"",
        },
    ),
    (
        "quote '''', null 'NULL'",
        CsvFormat {
            delimiter: b',',
            quote: b'\'',
            escape: b'\'',
            null: b"NULL",
        },
    ),
    (
        "delimiter ';', quote '|', escape 'x', null 'N'",
        CsvFormat {
            delimiter: b';',
            quote: b'|',
            escape: b'x',
            null: b"N",
        },
    ),
    (
        "delimiter E'\\t'",
        CsvFormat {
            delimiter: b'\t',
            quote: b'"',
            escape: b'"',
            null: b"",
        },
    ),
];

fn rows(rng: &mut rand::rngs::StdRng, columns: usize) -> Vec<Row> {
    (0..1500)
        .map(|_| {
            (0..columns)
                .map(|_| (!rng.random_bool(0.1)).then(|| mix(rng, PARTS, 4)))
                .collect()
        })
        .collect()
}

/// Fills `t` and gives what COPY TO prints of it, a row a message.
async fn printed(client: &Client, rows: &[Row], options: &str) -> Vec<Bytes> {
    let columns = rows[0].len();
    let names: Vec<_> = (0..columns).map(|n| format!("c{n}")).collect();
    let texts: Vec<_> = (0..columns).map(|n| format!("c{n} text")).collect();
    client
        .batch_execute(&format!(
            "drop table if exists t; create temp table t (n serial, {})",
            texts.join(", ")
        ))
        .await
        .expect("a table");
    let by_column: Vec<Vec<Option<String>>> = (0..columns)
        .map(|n| rows.iter().map(|row| row[n].clone()).collect())
        .collect();
    let arrays: Vec<_> = (1..=columns).map(|n| format!("${n}::text[]")).collect();
    let parameters: Vec<_> = by_column
        .iter()
        .map(|c| c as &(dyn tokio_postgres::types::ToSql + Sync))
        .collect();
    client
        .execute(
            &format!(
                "insert into t ({0}) select {0} from unnest({1}) with ordinality u({0}, n) order by n",
                names.join(", "),
                arrays.join(", ")
            ),
            &parameters,
        )
        .await
        .expect("rows");
    let stream = client
        .copy_out(&format!(
            "copy (select {} from t order by n) to stdout with ({options})",
            names.join(", ")
        ))
        .await
        .expect("a copy");
    stream.try_collect().await.expect("all rows")
}

fn owned<'a>(fields: impl Iterator<Item = Field<'a>>) -> Row {
    fields
        .map(|field| {
            field
                .value
                .map(|value| String::from_utf8_lossy(&value).into_owned())
        })
        .collect()
}

/// Text rows are written as `COPY TO` writes them, and split to what they were.
#[test]
fn text_rows_go_out_as_postgres_writes_them() {
    ask(async |client, mut rng| {
        for (options, format) in TEXT {
            let rows = rows(&mut rng, 2);
            let with = if options.is_empty() {
                "format text"
            } else {
                options
            };
            for (row, message) in rows.iter().zip(printed(&client, &rows, with).await) {
                let mut ours = Vec::new();
                for (n, value) in row.iter().enumerate() {
                    if n > 0 {
                        ours.push(format.delimiter);
                    }
                    match value {
                        Some(value) => write_text(value.as_bytes(), format.delimiter, &mut ours),
                        None => ours.extend_from_slice(format.null),
                    }
                }
                let (line, end) = split_line_end(&message);
                assert_eq!((string(line), end), (string(&ours), &b"\n"[..]), "{row:?}");
                // A value that is spelled as NULL is read as NULL, by Postgres too.
                let expected: Row = row
                    .iter()
                    .map(|value| {
                        value
                            .clone()
                            .filter(|v| v.as_bytes() != format.null || options.is_empty())
                    })
                    .collect();
                assert_eq!(owned(split_text(line, *format)), expected);
            }
        }
    });
}

/// CSV rows likewise, with forced quotes and with one column too.
#[test]
fn csv_rows_go_out_as_postgres_writes_them() {
    ask(async |client, mut rng| {
        for (options, format) in CSV {
            for (columns, force) in [(1, false), (2, false), (2, true)] {
                let rows = rows(&mut rng, columns);
                let mut with = format!(
                    "format csv{}{options}",
                    if options.is_empty() { "" } else { ", " }
                );
                if force {
                    with.push_str(", force_quote *");
                }
                for (row, message) in rows.iter().zip(printed(&client, &rows, &with).await) {
                    let mut ours = Vec::new();
                    for (n, value) in row.iter().enumerate() {
                        if n > 0 {
                            ours.push(format.delimiter);
                        }
                        match value {
                            Some(value) => {
                                write_csv(value.as_bytes(), *format, force, columns == 1, &mut ours)
                            }
                            None => ours.extend_from_slice(format.null),
                        }
                    }
                    ours.push(b'\n');
                    assert_eq!(string(&message), string(&ours), "{row:?} {with}");
                    let line = &message[..message.len() - 1];
                    let split = owned(split_csv(line, *format).map(|field| field.expect("closed")));
                    assert_eq!(&split, row);
                }
            }
        }
    });
}

fn string(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Loads rows of three fields and gives them back as Postgres read them.
async fn loaded(client: &Client, lines: &[String], options: &str) -> Vec<Row> {
    client
        .batch_execute(
            "drop table if exists l; create temp table l (n serial, a text, b text, c text)",
        )
        .await
        .expect("a table");
    let sink = client
        .copy_in::<_, Bytes>(&format!("copy l (a, b, c) from stdin with ({options})"))
        .await
        .expect("a copy");
    let mut sink = std::pin::pin!(sink);
    let data: String = lines.iter().map(|line| format!("{line}\n")).collect();
    sink.send(Bytes::from(data)).await.expect("sent");
    sink.finish().await.expect("accepted");
    client
        .query("select a, b, c from l order by n", &[])
        .await
        .expect("rows")
        .iter()
        .map(|row| (0..3).map(|n| row.get(n)).collect())
        .collect()
}

/// Text rows of any spelling are split and decoded as `COPY FROM` does it.
#[test]
fn text_rows_come_in_as_postgres_reads_them() {
    ask(async |client, mut rng| {
        let parts = &[
            "a", "\\\\", "\\b", "\\f", "\\n", "\\r", "\\t", "\\v", "\\x41", "\\x4", "\\xg",
            "\\101", "\\1018", "\\7", "\\q", "\\\u{e9}", "\u{e9}", "\"", "8", "\\|", "\\\n", "\\a",
            "f",
        ];
        for (options, format) in &TEXT[..2] {
            let delimiter = char::from(format.delimiter).to_string();
            let lines: Vec<String> = (0..3000)
                .map(|_| {
                    let fields: Vec<_> = (0..3)
                        .map(|_| match rng.random_range(0..8) {
                            0 => string(format.null).into_owned(),
                            _ => mix(&mut rng, parts, 5),
                        })
                        .collect();
                    fields.join(&delimiter)
                })
                .filter(|line| split_text(line.as_bytes(), *format).count() == 3)
                .collect();
            let with = if options.is_empty() {
                "format text"
            } else {
                options
            };
            let rows = loaded(&client, &lines, with).await;
            assert!(rows.len() > 1500);
            for (line, row) in lines.iter().zip(rows) {
                assert_eq!(owned(split_text(line.as_bytes(), *format)), row, "{line}");
            }
        }
    });
}

/// CSV rows likewise.
#[test]
fn csv_rows_come_in_as_postgres_reads_them() {
    ask(async |client, mut rng| {
        for (options, format) in CSV {
            let quote = char::from(format.quote);
            let escape = char::from(format.escape);
            let delimiter = char::from(format.delimiter).to_string();
            let lines: Vec<String> = (0..2000)
                .map(|_| {
                    let fields: Vec<_> = (0..3)
                        .map(|_| {
                            let plain =
                                mix(&mut rng, &["a", "x", " ", "\\", "\u{e9}", "NULL", "N"], 2);
                            let doubled = format!("{escape}{quote}");
                            let escapes = format!("{escape}{escape}");
                            let inner = mix(
                                &mut rng,
                                &["a", &doubled, &escapes, &delimiter, "\n", "b"],
                                4,
                            );
                            match rng.random_range(0..3) {
                                0 => plain,
                                1 => format!("{quote}{inner}{quote}"),
                                _ => format!(
                                    "{}{quote}{inner}{quote}{plain}",
                                    pick(&mut rng, &["", "a"])
                                ),
                            }
                        })
                        .collect();
                    fields.join(&delimiter)
                })
                .filter(|line| {
                    let fields: Result<Vec<_>, _> = split_csv(line.as_bytes(), *format).collect();
                    fields.is_ok_and(|fields| fields.len() == 3)
                })
                .collect();
            let with = format!(
                "format csv{}{options}",
                if options.is_empty() { "" } else { ", " }
            );
            let rows = loaded(&client, &lines, &with).await;
            assert!(rows.len() > 1000);
            assert_eq!(rows.len(), lines.len());
            for (line, row) in lines.iter().zip(rows) {
                let ours =
                    owned(split_csv(line.as_bytes(), *format).map(|field| field.expect("closed")));
                assert_eq!(ours, row, "{line}");
            }
        }
    });
}
