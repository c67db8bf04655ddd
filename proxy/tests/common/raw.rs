//! A frontend that sends just the bytes it is told to and shows every message that comes back.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use toastrack_wire::backend_header;
use toastrack_wire::frontend::{self, Target};
use toastrack_wire::startup::encode_startup;
use toastrack_wire::{Direction, encode_frame};

/// A message from the server.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) tag: u8,
    pub(crate) body: Vec<u8>,
}

/// A raw connection.
pub(crate) struct Raw {
    pub(crate) stream: TcpStream,
    received: Vec<u8>,
    taken: usize,
    /// Everything up to the first ReadyForQuery.
    pub(crate) greeting: Vec<Message>,
}

/// No answer for so long is a hang.
const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const PROTOCOL: u32 = 3 << 16;

impl Raw {
    /// Connects to 127.0.0.1 as `postgres` and waits until the session is ready.
    pub(crate) fn connect(port: u16, database: &str) -> Raw {
        Raw::connect_with(port, &[("user", "postgres"), ("database", database)])
    }

    /// The same with start-up parameters of one's own.
    pub(crate) fn connect_with(port: u16, parameters: &[(&str, &str)]) -> Raw {
        let mut raw = Raw::open(port);
        raw.send(&startup(parameters));
        raw.greeting = raw.until_ready(1);
        raw
    }

    /// Connects and says nothing.
    pub(crate) fn open(port: u16) -> Raw {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
        stream.set_nodelay(true).expect("nodelay");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        Raw {
            stream,
            received: Vec::new(),
            taken: 0,
            greeting: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("sends");
    }

    /// The next message; None at the end of the connection.
    pub(crate) fn next(&mut self) -> Option<Message> {
        loop {
            let rest = &self.received[self.taken..];
            if let Some(header) = backend_header(rest).expect("a message")
                && let Some(body) = header.body(rest)
            {
                let body = body.to_vec();
                self.taken += header.len;
                if self.taken == self.received.len() {
                    self.received.clear();
                    self.taken = 0;
                }
                return Some(Message {
                    tag: header.tag,
                    body,
                });
            }
            let mut more = [0; 64 * 1024];
            match self.stream.read(&mut more) {
                Ok(0) => return None,
                Ok(len) => self.received.extend_from_slice(&more[..len]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no answer: {error}; have {:?}", show(&self.received)),
            }
        }
    }

    /// All messages up to the `count`th ReadyForQuery, or to the end of the connection.
    pub(crate) fn until_ready(&mut self, count: usize) -> Vec<Message> {
        self.until(b'Z', count)
    }

    /// All messages up to the `count`th of a tag, or to the end of the connection.
    pub(crate) fn until(&mut self, tag: u8, count: usize) -> Vec<Message> {
        let mut messages = Vec::new();
        let mut seen = 0;
        while seen < count {
            let Some(message) = self.next() else { break };
            seen += usize::from(message.tag == tag);
            messages.push(message);
        }
        messages
    }

    /// Everything to the end of the connection.
    pub(crate) fn rest(&mut self) -> Vec<Message> {
        std::iter::from_fn(|| self.next()).collect()
    }

    /// Whether nothing comes for a while.
    pub(crate) fn is_quiet(&mut self, wait: Duration) -> bool {
        assert_eq!(
            self.taken,
            self.received.len(),
            "something has come already"
        );
        self.stream.set_read_timeout(Some(wait)).expect("a timeout");
        let peeked = self.stream.peek(&mut [0]);
        self.stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout");
        peeked.is_err()
    }

    /// A simple query and its answer.
    pub(crate) fn query(&mut self, sql: &str) -> Vec<Message> {
        self.send(&query(sql));
        self.until_ready(1)
    }

    /// The process id of the backend.
    pub(crate) fn backend_pid(&self) -> u32 {
        let key = self.greeting.iter().find(|message| message.tag == b'K');
        let body = &key.expect("BackendKeyData").body;
        u32::from_be_bytes(*body.first_chunk().expect("a pid"))
    }

    /// The body of BackendKeyData.
    pub(crate) fn cancel_key(&self) -> &[u8] {
        let key = self.greeting.iter().find(|message| message.tag == b'K');
        &key.expect("BackendKeyData").body
    }
}

/// The tags of messages, as one text.
pub(crate) fn tags(messages: &[Message]) -> String {
    messages
        .iter()
        .map(|message| char::from(message.tag))
        .collect()
}

/// A field of the first ErrorResponse.
pub(crate) fn error_field(messages: &[Message], code: u8) -> Option<String> {
    let error = messages.iter().find(|message| message.tag == b'E')?;
    let fields = toastrack_wire::ErrorFields::parse(&error.body).expect("an error");
    fields
        .get(code)
        .map(|value| String::from_utf8_lossy(value).into_owned())
}

/// The SQLSTATE of the first ErrorResponse.
pub(crate) fn sqlstate(messages: &[Message]) -> String {
    error_field(messages, b'C').unwrap_or_else(|| "none".to_owned())
}

/// The fields of all rows.
pub(crate) fn rows(messages: &[Message]) -> Vec<Vec<Option<Vec<u8>>>> {
    messages
        .iter()
        .filter(|message| message.tag == b'D')
        .map(|message| {
            toastrack_wire::DataRow::parse(&message.body)
                .expect("a row")
                .fields()
                .map(|field| field.map(<[u8]>::to_vec))
                .collect()
        })
        .collect()
}

/// The first field of the first row, as text.
pub(crate) fn first_text(messages: &[Message]) -> String {
    let rows = rows(messages);
    let field = rows.first().and_then(|row| row.first().cloned().flatten());
    String::from_utf8_lossy(&field.expect("a row with a value")).into_owned()
}

/// Bytes for a person, not too many.
pub(crate) fn show(bytes: &[u8]) -> String {
    const MOST: usize = 300;
    let shown = bytes[..bytes.len().min(MOST)].escape_ascii().to_string();
    if bytes.len() > MOST {
        format!("{shown}... ({} bytes)", bytes.len())
    } else {
        shown
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", char::from(self.tag), show(&self.body))
    }
}

pub(crate) fn startup(parameters: &[(&str, &str)]) -> Vec<u8> {
    let parameters: Vec<(&[u8], &[u8])> = parameters
        .iter()
        .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
        .collect();
    encoded(|out| encode_startup(out, PROTOCOL, &parameters))
}

pub(crate) fn query(sql: &str) -> Vec<u8> {
    encoded(|out| frontend::encode_query(out, sql.as_bytes()))
}

pub(crate) fn parse(name: &str, sql: &str, types: &[u32]) -> Vec<u8> {
    encoded(|out| frontend::encode_parse(out, name.as_bytes(), sql.as_bytes(), types))
}

pub(crate) fn bind(
    portal: &str,
    statement: &str,
    formats: &[i16],
    params: &[Option<&[u8]>],
    results: &[i16],
) -> Vec<u8> {
    encoded(|out| {
        let (portal, statement) = (portal.as_bytes(), statement.as_bytes());
        frontend::encode_bind(out, portal, statement, formats, params, results)
    })
}

pub(crate) fn describe_statement(name: &str) -> Vec<u8> {
    encoded(|out| frontend::encode_describe(out, Target::Statement, name.as_bytes()))
}

pub(crate) fn describe_portal(name: &str) -> Vec<u8> {
    encoded(|out| frontend::encode_describe(out, Target::Portal, name.as_bytes()))
}

pub(crate) fn execute(portal: &str, max_rows: i32) -> Vec<u8> {
    encoded(|out| frontend::encode_execute(out, portal.as_bytes(), max_rows))
}

pub(crate) fn close_statement(name: &str) -> Vec<u8> {
    encoded(|out| frontend::encode_close(out, Target::Statement, name.as_bytes()))
}

pub(crate) fn close_portal(name: &str) -> Vec<u8> {
    encoded(|out| frontend::encode_close(out, Target::Portal, name.as_bytes()))
}

pub(crate) fn sync() -> Vec<u8> {
    frame(b'S', b"")
}

pub(crate) fn flush() -> Vec<u8> {
    frame(b'H', b"")
}

pub(crate) fn terminate() -> Vec<u8> {
    frame(b'X', b"")
}

/// A message of any tag.
pub(crate) fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
    encoded(|out| encode_frame(out, Direction::Frontend, tag, body))
}

fn encoded(
    encode: impl FnOnce(&mut Vec<u8>) -> Result<(), toastrack_wire::EncodeError>,
) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out).expect("a message");
    out
}
