//! COPY ... FROM STDIN: plain columns straight to Postgres against offloaded ones through the proxy.
//!
//! In every test the same statements and bytes go to both sides; what the server says is to be the same,
//! and so are the rows afterwards, read by a session of its own on each side. That values have left the
//! rows is asked of the packed table itself.

#[path = "../common/mod.rs"]
mod common;

mod flow;
mod formats;
mod lines;
mod store;
mod targets;

use std::sync::LazyLock;

use common::raw::{self, Message, Raw, rows, sqlstate};
use common::{Rig, RigOptions};

static RIG: LazyLock<Rig> = LazyLock::new(|| Rig::shared(RigOptions::default()));

/// Values are offloaded from here on where rows have to be short.
const SMALL_THRESHOLD: u32 = 10;
static SMALL: LazyLock<Rig> = LazyLock::new(|| {
    Rig::shared(RigOptions {
        threshold: SMALL_THRESHOLD,
        ..RigOptions::default()
    })
});

/// `T.` is the schema of the types.
const SCHEMA: &str = "create table docs(id int primary key, body T.text, short T.varchar(20), \
    long T.varchar(5000), j T.json, d T.jsonb, b T.bytea, n int default 7)";

/// A session on each side, in databases of one test's own.
struct Pair {
    rig: &'static Rig,
    databases: [String; 2],
    plain: Raw,
    packed: Raw,
}

/// How a client ends a copy.
#[derive(Clone, Copy)]
enum End {
    Done,
    Fail,
}

impl Pair {
    fn new(rig: &'static Rig, name: &str) -> Pair {
        let databases = [format!("plain_{name}"), format!("packed_{name}")];
        let create = format!("create database {} template template1", databases[0]);
        rig.cluster.execute("postgres", &create).expect("creates");
        rig.create_packed(&databases[1]);
        let mut pair = Pair {
            rig,
            plain: rig.raw_direct(&databases[0]),
            packed: rig.raw_through(&databases[1]),
            databases,
        };
        pair.create(SCHEMA);
        pair
    }

    /// Runs a statement on both sides, `T.` being what belongs there.
    fn create(&mut self, sql: &str) {
        for (side, schema) in [(&mut self.plain, ""), (&mut self.packed, "toastrack.")] {
            let answer = side.query(&sql.replace("T.", schema));
            assert_eq!(sqlstate(&answer), "none", "{sql}: {answer:?}");
        }
    }

    /// A statement that gives the same on both sides.
    fn query(&mut self, sql: &str) -> Vec<Message> {
        let [plain, packed] = [&mut self.plain, &mut self.packed].map(|side| side.query(sql));
        same(sql, &plain, &packed);
        plain
    }

    /// A copy of bytes in pieces, ended in a way; what comes of it is the same on both sides.
    fn copy(&mut self, sql: &str, pieces: &[&[u8]], end: End) -> Vec<Message> {
        let [plain, packed] =
            [&mut self.plain, &mut self.packed].map(|side| copy(side, sql, pieces, end));
        same(sql, &plain, &packed);
        plain
    }

    /// The rows are the same, read straight from both and through the proxy.
    fn check(&mut self, table: &str) {
        let sql = format!("select * from {table} order by 1");
        let plain = rows(&self.plain.query(&sql));
        let packed = rows(&self.packed.query(&sql));
        assert!(plain == packed, "{table} differs through the proxy");
        let columns = "id, body::text, short::text, long::text, j::text, d::text, b::bytea, n";
        let sql = format!("select {columns} from {table} order by 1");
        let [plain, packed] = [(0, &self.databases[0]), (1, &self.databases[1])]
            .map(|(_, database)| rows(&self.rig.raw_direct(database).query(&sql)));
        for (plain, packed) in plain.iter().zip(&packed) {
            for (at, (plain, packed)) in plain.iter().zip(packed).enumerate() {
                let shown = |field: &Option<Vec<u8>>| field.as_deref().map(raw::show);
                assert!(
                    plain == packed,
                    "{table}, field {at} straight: {:?} {:?}",
                    shown(plain),
                    shown(packed)
                );
            }
        }
        assert_eq!(plain.len(), packed.len(), "{table} straight");
    }

    /// How many values of each offloaded column have left their rows: body, long, j, d, b.
    fn left(&self, table: &str) -> Vec<u64> {
        let mut direct = self.rig.raw_direct(&self.databases[1]);
        let count = |column: &str, begins: &str| {
            format!("count(*) filter (where toastrack.raw({column})::text like '{begins}%')")
        };
        let sql = format!(
            "set bytea_output = hex; select {}, {}, {}, {}, {} from {table}",
            count("body", "toast:"),
            count("long", "toast:"),
            count("j", "\"toast:"),
            count("d", "\"toast:"),
            count("b", r"\\xf7544f4153540d0a")
        );
        let answer = direct.query(&sql);
        assert_eq!(sqlstate(&answer), "none", "{answer:?}");
        let row = rows(&answer).pop().expect("a row");
        let number = |field: Option<Vec<u8>>| String::from_utf8(field.expect("a number"));
        row.into_iter()
            .map(|field| number(field).expect("text").parse().expect("a number"))
            .collect()
    }
}

/// One copy on one side: everything up to ReadyForQuery. Rows are sent when they are asked for.
fn copy(side: &mut Raw, sql: &str, pieces: &[&[u8]], end: End) -> Vec<Message> {
    side.send(&raw::query(sql));
    let mut answer = until_asked(side);
    while answer.last().is_some_and(|message| message.tag == b'G') {
        let mut data: Vec<u8> = Vec::new();
        for piece in pieces {
            data.extend(raw::frame(b'd', piece));
        }
        data.extend(ending(end));
        send_beside(side, &data);
        answer.extend(until_asked(side));
    }
    answer
}

fn ending(end: End) -> Vec<u8> {
    match end {
        End::Done => raw::frame(b'c', b""),
        End::Fail => raw::frame(b'f', b"on second thoughts\0"),
    }
}

/// All messages up to one that asks for rows, or for the next statement.
fn until_asked(side: &mut Raw) -> Vec<Message> {
    let mut messages = Vec::new();
    while let Some(message) = side.next() {
        let last = matches!(message.tag, b'G' | b'Z');
        messages.push(message);
        if last {
            break;
        }
    }
    messages
}

fn send_beside(side: &mut Raw, data: &[u8]) {
    side.send(data);
}

/// What a person and a driver see of messages is the same.
fn same(what: &str, plain: &[Message], packed: &[Message]) {
    let shown = |messages: &[Message]| -> Vec<String> {
        messages
            .iter()
            .map(|message| match message.tag {
                b'E' | b'N' => format!("{} {}", char::from(message.tag), error(message)),
                b'T' => "T".to_owned(),
                _ => format!("{message:?}"),
            })
            .collect()
    };
    assert_eq!(
        shown(plain),
        shown(packed),
        "{}",
        raw::show(what.as_bytes())
    );
}

/// An error without its place in the server's source, with the plain types' names, and without the start
/// of the row where that may have a reference in it (docs/semantics.md).
fn error(message: &Message) -> String {
    let fields = toastrack_wire::ErrorFields::parse(&message.body).expect("an error");
    let fields = fields
        .iter()
        .filter(|(code, _)| !matches!(code, b'F' | b'L' | b'R'));
    let text = fields.map(|(code, value)| {
        let mut value = String::from_utf8_lossy(value).replace("toastrack.", "");
        if code == b'W'
            && let Some(at) = value.find("COPY docs, line ")
            && let Some((place, _)) = value[at..].split_once(": \"")
            && !place.contains("column")
        {
            value.truncate(at + place.len());
        }
        format!("{}={value} ", char::from(code))
    });
    text.collect()
}
