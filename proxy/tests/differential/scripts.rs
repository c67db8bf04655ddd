//! Whole blocks of statements without parameters: `corpus/simple.sql`.

use crate::common::raw;
use crate::pair::{Databases, Pair, Tally, statements};

struct Block {
    name: String,
    statements: Vec<Statement>,
}

struct Statement {
    sql: String,
    /// Marked by `! `: the answer differs in a way that docs/semantics.md tells.
    known: bool,
}

fn blocks() -> Vec<Block> {
    let text = include_str!("corpus/simple.sql");
    text.split("\n### ")
        .skip(1)
        .map(|block| {
            let (name, text) = block.split_once('\n').expect("a name");
            Block {
                name: name.to_owned(),
                statements: statements(text).into_iter().map(statement).collect(),
            }
        })
        .collect()
}

fn statement(text: String) -> Statement {
    match text.strip_prefix("! ") {
        Some(sql) => Statement {
            sql: sql.to_owned(),
            known: true,
        },
        None => Statement {
            sql: text,
            known: false,
        },
    }
}

/// Runs every block in a transaction that is rolled back, statement by statement.
fn run(test: &'static str, say: impl Fn(&mut Pair, &mut Tally, &str, &str)) {
    let databases = Databases::create(test);
    let mut pair = databases.connect();
    let mut tally = Tally::new(test);
    for block in blocks() {
        pair.quietly("begin; savepoint before");
        for statement in &block.statements {
            let what = format!("[{}] {}", block.name, statement.sql);
            tally.expect_difference(statement.known);
            say(&mut pair, &mut tally, &what, &statement.sql);
            tally.expect_difference(false);
            // So that what stands behind an error is run as well.
            match pair.status {
                b'E' if !block.name.starts_with("errors") => pair.quietly("rollback to before"),
                b'T' => pair.quietly("savepoint before"),
                _ => {}
            }
        }
        pair.quietly("rollback");
    }
    tally.finish();
}

/// Proves S5 in the simple protocol.
#[test]
fn simple_statements() {
    run("simple", |pair, tally, what, sql| {
        pair.same(tally, what, &raw::query(sql), 1);
    });
}

/// Proves S5 in the extended protocol with everything described and in text.
#[test]
fn extended_statements_in_text() {
    run("extended_text", |pair, tally, what, sql| {
        let messages = [
            raw::parse("", sql, &[]),
            raw::describe_statement(""),
            raw::bind("", "", &[], &[], &[]),
            raw::describe_portal(""),
            raw::execute("", 0),
            raw::sync(),
        ];
        pair.same(tally, what, &messages.concat(), 1);
    });
}

/// Proves S5 in the extended protocol with nothing described and in binary, one row at a time first.
#[test]
fn extended_statements_in_binary() {
    run("extended_binary", |pair, tally, what, sql| {
        let messages = [
            raw::parse("s", sql, &[]),
            raw::bind("p", "s", &[], &[], &[1]),
            raw::execute("p", 1),
            raw::execute("p", 2),
            raw::flush(),
            raw::execute("p", 0),
            raw::close_portal("p"),
            raw::close_statement("s"),
            raw::sync(),
        ];
        pair.same(tally, what, &messages.concat(), 1);
        pair.round(&[raw::close_statement("s"), raw::sync()].concat(), 1);
    });
}

/// Proves S5 for simple queries of many statements, where an error ends the rest.
#[test]
fn blocks_as_one_query() {
    let databases = Databases::create("blocks");
    let mut pair = databases.connect();
    let mut tally = Tally::new("blocks");
    for block in blocks() {
        let same = block.statements.iter().filter(|statement| !statement.known);
        let sql: Vec<&str> = same.map(|statement| statement.sql.as_str()).collect();
        let sql = sql.join(";\n");
        pair.same(
            &mut tally,
            &block.name,
            &raw::query(&format!("begin;\n{sql}")),
            1,
        );
        pair.quietly("rollback");
        // Without BEGIN it is one implicit transaction, which the error at its end undoes.
        let sql = format!("{sql};\nselect 1/0");
        pair.same(&mut tally, &block.name, &raw::query(&sql), 1);
    }
    tally.finish();
}
