//! Two sessions side by side, and the count of what was compared.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::thread;

use crate::common::raw::{self, Message, Raw};
use crate::common::values::expand;
use crate::common::{Rig, RigOptions};
use crate::normalise::normalised;

/// One cluster and one proxy for all tests of this binary.
pub(crate) static RIG: LazyLock<Rig> = LazyLock::new(|| Rig::shared(RigOptions::default()));

/// A database of each kind, with the tables and rows of `corpus/schema.sql`.
pub(crate) struct Databases {
    plain: String,
    packed: String,
}

impl Databases {
    pub(crate) fn create(name: &str) -> Databases {
        let databases = Databases {
            plain: format!("plain_{name}"),
            packed: format!("packed_{name}"),
        };
        let create = format!("create database {} template template1", databases.plain);
        RIG.cluster.execute("postgres", &create).expect("creates");
        RIG.create_packed(&databases.packed);
        let mut pair = databases.connect();
        for statement in statements(include_str!("corpus/schema.sql")) {
            let [plain, packed] = ["", "toastrack."].map(|schema| {
                // In a session through the proxy, so that it sees the tables and takes the values.
                raw::query(&statement.replace("T.", schema))
            });
            pair.plain.send(&plain);
            pair.packed.send(&packed);
            for side in [&mut pair.plain, &mut pair.packed] {
                let answer = side.until_ready(1);
                assert_eq!(raw::sqlstate(&answer), "none", "{statement}");
            }
        }
        let mut direct = RIG.raw_direct(&databases.packed);
        let left = "select count(*) from docs where toastrack.raw(body)::text like 'toast:%' \
            and starts_with(toastrack.raw(b)::text, '\\xf7') and toastrack.raw(d)::text like '\"toast:%'";
        let left = raw::first_text(&direct.query(left));
        assert_eq!(left, "4", "rows whose values have left them");
        databases
    }

    pub(crate) fn connect(&self) -> Pair {
        self.connect_with(&[])
    }

    /// With further start-up parameters.
    pub(crate) fn connect_with(&self, parameters: &[(&str, &str)]) -> Pair {
        let connect = |port: u16, database: &str| {
            let all = [&[("user", "postgres"), ("database", database)], parameters].concat();
            Raw::connect_with(port, &all)
        };
        Pair {
            plain: connect(RIG.cluster.port(), &self.plain),
            packed: connect(RIG.port, &self.packed),
            status: b'I',
        }
    }

    /// The name of the database with offloaded columns.
    pub(crate) fn packed(&self) -> &str {
        &self.packed
    }
}

/// A session on each side.
pub(crate) struct Pair {
    pub(crate) plain: Raw,
    pub(crate) packed: Raw,
    /// What the plain side's last ReadyForQuery said.
    pub(crate) status: u8,
}

impl Pair {
    /// Sends the same on both sides and takes all messages up to the `readies`th ReadyForQuery.
    pub(crate) fn round(&mut self, bytes: &[u8], readies: usize) -> [Vec<Message>; 2] {
        self.round_until(bytes, b'Z', readies)
    }

    /// The same up to the `count`th message of a tag.
    pub(crate) fn round_until(&mut self, bytes: &[u8], tag: u8, count: usize) -> [Vec<Message>; 2] {
        [&mut self.plain, &mut self.packed].map(|side| {
            let mut sender = side.stream.try_clone().expect("a second handle");
            thread::scope(|scope| {
                // Beside the reading: a long pipeline would otherwise fill both directions.
                scope.spawn(move || {
                    std::io::Write::write_all(&mut sender, bytes).expect("sends");
                });
                side.until(tag, count)
            })
        })
    }

    /// How many columns a statement returns, by the plain side; 0 when it does not parse.
    pub(crate) fn columns(&mut self, sql: &str) -> usize {
        let describe = [
            raw::parse("", sql, &[]),
            raw::describe_statement(""),
            raw::sync(),
        ];
        self.plain.send(&describe.concat());
        let answer = self.plain.until_ready(1);
        let description = answer.iter().find(|message| message.tag == b'T');
        description.map_or(0, |message| {
            toastrack_wire::RowDescription::parse(&message.body)
                .expect("a RowDescription")
                .len()
        })
    }

    /// Sends and compares.
    pub(crate) fn same(&mut self, tally: &mut Tally, what: &str, bytes: &[u8], readies: usize) {
        let answers = self.round(bytes, readies);
        let ready = answers[0].iter().rfind(|message| message.tag == b'Z');
        self.status = ready
            .and_then(|message| message.body.first().copied())
            .unwrap_or(self.status);
        tally.compare(what, &answers);
    }

    /// A simple query, values expanded, compared.
    pub(crate) fn query(&mut self, tally: &mut Tally, sql: &str) {
        self.same(tally, sql, &raw::query(&expand(sql)), 1);
    }

    /// A simple query whose answer does not count.
    pub(crate) fn quietly(&mut self, sql: &str) {
        self.round(&raw::query(&expand(sql)), 1);
    }
}

/// What was compared, and what was found to differ.
pub(crate) struct Tally {
    test: &'static str,
    statements: usize,
    messages: usize,
    errors: usize,
    differ: usize,
    /// What comes next is known to differ.
    known: bool,
    known_differ: usize,
    /// By what differs, the first statement that shows it.
    differences: BTreeMap<String, String>,
}

impl Tally {
    pub(crate) fn new(test: &'static str) -> Tally {
        Tally {
            test,
            statements: 0,
            messages: 0,
            errors: 0,
            differ: 0,
            known: false,
            known_differ: 0,
            differences: BTreeMap::new(),
        }
    }

    /// Compares the answers of both sides.
    pub(crate) fn compare(&mut self, what: &str, [plain, packed]: &[Vec<Message>; 2]) {
        self.statements += 1;
        self.messages += plain.len();
        self.errors += plain.iter().filter(|message| message.tag == b'E').count();
        let [plain, packed] =
            [plain, packed].map(|side| side.iter().map(normalised).collect::<Vec<_>>());
        if plain == packed {
            return;
        }
        if self.known {
            self.known_differ += 1;
            return;
        }
        let at = plain
            .iter()
            .zip(&packed)
            .take_while(|(one, other)| one == other)
            .count();
        let show = |side: &[Message]| side.get(at).map_or("nothing".into(), |m| format!("{m:?}"));
        self.differ += 1;
        let difference = format!(
            "    plain  {} {at} {}\n    packed {} {at} {}",
            raw::tags(&plain),
            show(&plain),
            raw::tags(&packed),
            show(&packed),
        );
        self.differences
            .entry(difference)
            .or_insert_with(|| what.to_owned());
    }

    /// Whether what comes from now on is known to differ (docs/semantics.md). It is counted apart.
    pub(crate) fn expect_difference(&mut self, known: bool) {
        self.known = known;
    }

    /// Says how much was compared, and fails if anything differed.
    pub(crate) fn finish(self) {
        println!(
            "{}: {} answers, {} messages compared, {} of them errors; {} differ, {} as documented",
            self.test, self.statements, self.messages, self.errors, self.differ, self.known_differ
        );
        const SHOWN: usize = 60;
        let shown: Vec<String> = self
            .differences
            .iter()
            .take(SHOWN)
            .map(|(difference, what)| format!("{}\n{difference}", raw::show(what.as_bytes())))
            .collect();
        assert!(shown.is_empty(), "{}", shown.join("\n"));
    }
}

/// The statements of a text, which blank lines part; lines that begin with `#` are remarks.
pub(crate) fn statements(text: &str) -> Vec<String> {
    text.split("\n\n")
        .map(|block| {
            let lines = block.lines().filter(|line| !line.starts_with('#'));
            lines.collect::<Vec<_>>().join("\n")
        })
        .filter(|statement| !statement.trim().is_empty())
        .map(|statement| expand(statement.trim_matches('\n')))
        .collect()
}
