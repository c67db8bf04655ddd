//! The question of which table a COPY ... FROM STDIN means, asked of the same session before it.
//!
//! It is sent as a statement of our own, right in front of the message that begins the copy; its answers
//! are swallowed. It looks names up as the server will, and cannot fail for a name that means nothing.

use parking_lot::Mutex;
use toastrack_sql::CopyIn;
use toastrack_value::encoding::ClientEncoding;
use toastrack_wire::backend::DataRow;
use toastrack_wire::frontend::{Target, encode_bind, encode_close, encode_execute, encode_parse};
use toastrack_wire::{EncodeError, tag::backend as tag};

use crate::copy_locks::{Attribute, Opened};

/// A question and what was answered so far.
pub(crate) struct Asked {
    pub(crate) copy: CopyIn,
    answer: Mutex<Answer>,
}

#[derive(Default)]
struct Answer {
    /// None until the first row; one relation at most.
    opened: Option<Opened>,
    /// A row was not what was asked for.
    odd: bool,
    /// All rows have come.
    complete: bool,
    closed: u8,
}

/// One row for each column of a table, or a partitioned one without foreign partitions. Operators are
/// qualified, since the search path is the session's.
const QUESTION: &[u8] = b"
SELECT pg_catalog.pg_backend_pid(),
  pg_catalog.encode(pg_catalog.timestamptz_send(pg_catalog.pg_postmaster_start_time()), 'hex'),
  pg_catalog.pg_client_encoding(), c.oid, c.relname, a.attnum, a.attname, a.atttypid, a.atttypmod, a.attgenerated
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_attribute AS a ON a.attrelid OPERATOR(pg_catalog.=) c.oid
WHERE c.relname OPERATOR(pg_catalog.=) $1::pg_catalog.name
  AND CASE WHEN $2 IS NULL THEN pg_catalog.pg_table_is_visible(c.oid)
      ELSE c.relnamespace OPERATOR(pg_catalog.=) (
        SELECT n.oid FROM pg_catalog.pg_namespace AS n WHERE n.nspname OPERATOR(pg_catalog.=) $2::pg_catalog.name) END
  AND (c.relkind OPERATOR(pg_catalog.=) 'r' OR (c.relkind OPERATOR(pg_catalog.=) 'p' AND NOT EXISTS (
      SELECT FROM pg_catalog.pg_partition_tree(c.oid) AS t
      JOIN pg_catalog.pg_class AS p ON p.oid OPERATOR(pg_catalog.=) t.relid
      WHERE p.relkind OPERATOR(pg_catalog.=) 'f')))
  AND a.attnum OPERATOR(pg_catalog.>) 0::pg_catalog.int2 AND NOT a.attisdropped
ORDER BY a.attnum";
const TEXT_OID: u32 = 25;

impl Asked {
    pub(crate) fn new(copy: CopyIn) -> Asked {
        Asked {
            copy,
            answer: Mutex::default(),
        }
    }

    /// Writes the question. Its statement and portal have names of their own, by `number`, so that those
    /// of the client stay.
    pub(super) fn encode(&self, number: u64, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let name = format!("toastrack copy {number}");
        let name = name.as_bytes();
        let table = Some(self.copy.table.as_bytes());
        let schema = self.copy.schema.as_ref().map(String::as_bytes);
        let start = out.len();
        let written = encode_parse(out, name, QUESTION, &[TEXT_OID, TEXT_OID])
            .and_then(|()| encode_bind(out, name, name, &[], &[table, schema], &[]))
            .and_then(|()| encode_execute(out, name, 0))
            .and_then(|()| encode_close(out, Target::Portal, name))
            .and_then(|()| encode_close(out, Target::Statement, name));
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    /// Takes one message of the answer; true for the last.
    pub(super) fn on_reply(&self, tag: u8, body: &[u8]) -> bool {
        let mut answer = self.answer.lock();
        match tag {
            tag::DATA_ROW => answer.add(body),
            tag::COMMAND_COMPLETE => answer.complete = true,
            tag::CLOSE_COMPLETE => answer.closed += 1,
            _ => {}
        }
        answer.closed == 2
    }

    /// The table that the session means; None when that is not known, or it is none to write to.
    pub(super) fn opened(&self) -> Option<Opened> {
        let answer = self.answer.lock();
        let whole = answer.complete && !answer.odd;
        answer.opened.clone().filter(|_| whole)
    }
}

impl Answer {
    fn add(&mut self, body: &[u8]) {
        let row = DataRow::parse(body).ok();
        let Some((opened, attribute)) = row.as_ref().and_then(read) else {
            self.odd = true;
            return;
        };
        let relation = opened.relation;
        let known = self.opened.get_or_insert(opened);
        self.odd |= known.relation != relation;
        known.attributes.push(attribute);
    }
}

/// A row of the answer; None as well where the client's encoding is another than the proxy knows.
fn read(row: &DataRow<'_>) -> Option<(Opened, Attribute)> {
    let fields: Option<Vec<&[u8]>> = row.fields().collect();
    let fields: Vec<&str> = fields?
        .into_iter()
        .map(std::str::from_utf8)
        .collect::<Result<_, _>>()
        .ok()?;
    let [
        pid,
        server,
        encoding,
        relation,
        table,
        number,
        name,
        type_oid,
        modifier,
        generated,
    ] = fields[..]
    else {
        return None;
    };
    let utf8 = matches!(
        ClientEncoding::from_name(encoding.as_bytes()),
        ClientEncoding::Utf8
    );
    let opened = Opened {
        pid: pid.parse().ok()?,
        server: server.to_owned(),
        relation: relation.parse().ok()?,
        table: table.to_owned(),
        attributes: Vec::new(),
    };
    let attribute = Attribute {
        number: number.parse().ok()?,
        name: name.to_owned(),
        type_oid: type_oid.parse().ok()?,
        type_modifier: modifier.parse().ok()?,
        generated: !generated.is_empty(),
    };
    utf8.then_some((opened, attribute))
}
