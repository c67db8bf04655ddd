//! Statements with parameters, in the extended protocol and with literals in the simple one.
//!
//! `corpus/params.txt`: a statement on one line, then, indented, lists of parameters for it; with `!`
//! in front of the list where the answer is known to differ.

use crate::common::raw;
use crate::common::values::named;
use crate::modes::{DRIVERS, drawn};
use crate::pair::{Databases, RIG, Tally};

/// A parameter: the plain type that a driver would send it as, and its value in text form.
#[derive(Clone, Debug)]
pub(crate) struct Param {
    kind: &'static str,
    text: Option<String>,
}

const CHECK: &str = "select * from docs order by id";
/// Ways drawn for each case, beyond those of the drivers.
const DRAWN: usize = 5;

impl Param {
    /// `type:name of a value`, `type:=text`, or `type:null`.
    fn read(text: &str) -> Param {
        let (kind, value) = text.split_once(':').expect("type and value");
        let kind = KINDS
            .iter()
            .find(|(name, _)| *name == kind)
            .unwrap_or_else(|| panic!("type of {text}"))
            .0;
        let text = match value.strip_prefix('=') {
            Some(literal) => Some(literal.to_owned()),
            None if value == "null" => None,
            None if value == "reference" => Some(REFERENCE.to_owned()),
            None if value == "json reference" => Some(format!("\"{REFERENCE}\"")),
            None => Some(named(value)),
        };
        Param { kind, text }
    }

    pub(crate) fn oid(&self) -> u32 {
        KINDS
            .iter()
            .find(|(kind, _)| *kind == self.kind)
            .expect("a kind")
            .1
    }

    /// As it stands in Bind.
    pub(crate) fn value(&self, binary: bool) -> Option<Vec<u8>> {
        let text = self.text.as_deref()?;
        let bytes = text.as_bytes();
        Some(match (binary, self.kind) {
            (false, _) | (true, "text" | "varchar" | "json") => bytes.to_vec(),
            (true, "jsonb") => [&[1], bytes].concat(),
            (true, "int4") => text
                .parse::<i32>()
                .expect("a number")
                .to_be_bytes()
                .to_vec(),
            // What is no bytea in text form is sent as it stands.
            (true, _) => toastrack_value::bytea::decode(bytes).unwrap_or_else(|_| bytes.to_vec()),
        })
    }

    /// As it stands in a simple query, in one of three styles.
    fn literal(&self, style: usize) -> String {
        let Some(text) = &self.text else {
            return "null".to_owned();
        };
        if self.kind == "int4" {
            return text.clone();
        }
        match style % 3 {
            1 => format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''")),
            2 if !text.contains("$q$") => format!("$q${text}$q$"),
            _ => format!("'{}'", text.replace('\'', "''")),
        }
    }
}

/// Stands in the corpus for a real reference, which only the running store can make.
const REFERENCE: &str = "@@reference@@";
const KINDS: [(&str, u32); 6] = [
    ("text", 25),
    ("varchar", 1043),
    ("json", 114),
    ("jsonb", 3802),
    ("bytea", 17),
    ("int4", 23),
];

struct Case {
    sql: String,
    /// Differs from a plain column in a way that docs/semantics.md tells.
    known: bool,
    params: Vec<Param>,
}

fn corpus() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut sql = "";
    for line in include_str!("corpus/params.txt").lines() {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let Some(list) = line.strip_prefix("  ") else {
            sql = line;
            continue;
        };
        let (known, list) = match list.strip_prefix("! ") {
            Some(list) => (true, list),
            None => (false, list),
        };
        let params = list.split(" | ").filter(|one| *one != "-");
        cases.push(Case {
            sql: sql.to_owned(),
            known,
            params: params.map(Param::read).collect(),
        });
    }
    cases
}

/// A reference that stands in the offloaded table, as anybody could copy who reads it raw.
fn real_reference(databases: &Databases) -> String {
    let mut direct = RIG.raw_direct(databases.packed());
    let answer = direct.query("select toastrack.raw(body)::text from docs where id = 1");
    let reference = raw::first_text(&answer);
    assert_eq!(reference.len(), 62, "{reference}");
    reference
}

fn cases(databases: &Databases) -> Vec<Case> {
    let reference = real_reference(databases);
    let mut cases = corpus();
    for param in cases.iter_mut().flat_map(|case| &mut case.params) {
        if let Some(text) = &mut param.text {
            *text = text.replace(REFERENCE, &reference);
        }
    }
    cases
}

/// Proves S5 for parameters, declared or not, in text and in binary, described or not, at once or
/// bit by bit: each statement of the corpus in the ways of four drivers and in others drawn.
#[test]
fn parameters() {
    let databases = Databases::create("params");
    let mut pair = databases.connect();
    let mut tally = Tally::new("parameters");
    for (number, case) in cases(&databases).iter().enumerate() {
        let columns = pair.columns(&case.sql);
        let modes = DRIVERS.into_iter().chain(drawn(number, DRAWN));
        tally.expect_difference(case.known);
        for mode in modes {
            let what = format!("{} {:?} in {mode:?}", case.sql, brief(&case.params));
            for batch in mode.batches(&case.sql, &case.params, columns, CHECK) {
                pair.same(&mut tally, &what, &batch, 1);
            }
            // After an error in a named way the statement may be left.
            pair.quietly("rollback; deallocate all");
        }
    }
    tally.expect_difference(false);
    tally.finish();
}

/// Proves S5 for the same statements with literals in the simple protocol, in every style of literal.
#[test]
fn literals() {
    let databases = Databases::create("literals");
    let mut pair = databases.connect();
    let mut tally = Tally::new("literals");
    for case in &cases(&databases) {
        tally.expect_difference(case.known);
        for style in 0..3 {
            let mut sql = case.sql.clone();
            for (at, param) in case.params.iter().enumerate().rev() {
                sql = sql.replace(&format!("${}", at + 1), &param.literal(style));
            }
            pair.same(&mut tally, "begin", &raw::query("begin"), 1);
            let what = format!("{} {:?} style {style}", case.sql, brief(&case.params));
            pair.same(&mut tally, &what, &raw::query(&sql), 1);
            pair.same(&mut tally, &what, &raw::query(CHECK), 1);
            pair.same(&mut tally, "rollback", &raw::query("rollback"), 1);
            let script = format!("begin; {sql}; {CHECK}; rollback");
            pair.same(&mut tally, &what, &raw::query(&script), 1);
            pair.quietly("rollback");
        }
    }
    tally.expect_difference(false);
    tally.finish();
}

fn brief(params: &[Param]) -> Vec<String> {
    let one = |param: &Param| {
        let text = param.text.as_deref().unwrap_or("null");
        let start: String = text.chars().take(12).collect();
        format!("{}:{start}({})", param.kind, text.len())
    };
    params.iter().map(one).collect()
}
