//! What may differ between the two sides, and is made equal before they are compared.

use toastrack_wire::{ErrorFields, RowDescription};

use crate::common::raw::Message;

/// The message with everything that belongs to one side alone taken out.
pub(crate) fn normalised(message: &Message) -> Message {
    let body = match message.tag {
        // The secret of one backend.
        b'K' => Vec::new(),
        b'T' => without_tables(&message.body),
        b'E' | b'N' => error(&message.body),
        // Begins with the sender's process id.
        b'A' => message.body.get(4..).unwrap_or_default().to_vec(),
        _ => message.body.clone(),
    };
    Message {
        tag: message.tag,
        body,
    }
}

/// OIDs of tables differ from one database to the next; whether there is one must not.
fn without_tables(body: &[u8]) -> Vec<u8> {
    const TABLE_OID_LEN: usize = 4;
    let mut out = body.to_vec();
    for field in RowDescription::parse(body)
        .expect("a RowDescription")
        .fields()
    {
        // The table's OID and the column's number stand right before the type's OID.
        let at = field.type_oid_at - 2 - TABLE_OID_LEN;
        if field.table_oid != 0 {
            out[at..at + TABLE_OID_LEN].copy_from_slice(&[1; TABLE_OID_LEN]);
        }
    }
    out
}

/// Where in the server's source an error was raised is not compared, nor the schema of a type's name,
/// nor that functions of the types were at work (docs/semantics.md).
fn error(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (code, value) in ErrorFields::parse(body).expect("an error").iter() {
        if matches!(code, b'F' | b'L' | b'R') {
            continue;
        }
        let text = String::from_utf8_lossy(value);
        let mut text = text
            .replace("toastrack.\"varchar\"", "character varying")
            .replace("toastrack.varchar", "character varying")
            .replace("toastrack.", "");
        if code == b'W' {
            let lines: Vec<&str> = text.lines().filter(|line| !is_own_context(line)).collect();
            text = lines.join("\n");
            if text.is_empty() {
                continue;
            }
        }
        out.push(code);
        out.extend_from_slice(text.as_bytes());
        out.push(0);
    }
    out
}

/// A line of context that names a function which the tables of the test did not bring.
fn is_own_context(line: &str) -> bool {
    let name = line
        .strip_prefix("SQL function \"")
        .or_else(|| line.strip_prefix("PL/pgSQL function "));
    let named = |schema: &str| schema.contains(&format!("create function {}(", word(name)));
    name.is_some() && !named(include_str!("corpus/schema.sql"))
}

fn word(text: Option<&str>) -> &str {
    let text = text.unwrap_or_default();
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}
