//! The ledger against the message flows of the manual and those that broke others.

use std::sync::Arc;

use super::ledger::{Entry, Ledger, SimpleQuery};
use super::statements::{Columns, Statement};

fn ready() -> Ledger {
    let mut ledger = Ledger::new();
    assert!(matches!(ledger.ready(b'I'), Some(Entry::Startup)));
    ledger
}

fn fixed_statement() -> Statement {
    Statement {
        fixed_shape: true,
        ..Statement::unknown(Vec::new())
    }
}

fn execute(ledger: &mut Ledger, portal: &[u8]) {
    let portal = ledger.portal(portal);
    ledger.push(Entry::Execute(portal));
}

fn needs_describe(ledger: &Ledger, portal: &[u8]) -> bool {
    ledger.needs_describe(&ledger.portal(portal))
}

/// Replies take entries from the front, in order; ReadyForQuery takes the Sync.
#[test]
fn replies_match_what_was_sent() {
    let mut ledger = ready();
    ledger.parse(b"s", fixed_statement());
    ledger.bind(b"", b"s", Some(Box::new([])));
    execute(&mut ledger, b"");
    ledger.push(Entry::Sync);
    assert!(matches!(ledger.front_of_reply(), Some(Entry::Parse { .. })));
    ledger.pop();
    assert!(matches!(ledger.front_of_reply(), Some(Entry::Bind { .. })));
    ledger.pop();
    assert!(matches!(ledger.front_of_reply(), Some(Entry::Execute(_))));
    ledger.pop();
    assert!(matches!(ledger.ready(b'I'), Some(Entry::Sync)));
    assert!(ledger.is_idle());
}

/// L2: after an error everything up to the Sync is skipped, and a Parse that was skipped leaves the
/// name as it was.
#[test]
fn an_error_takes_back_what_was_skipped() {
    let mut ledger = ready();
    ledger.parse(b"s", fixed_statement());
    ledger.push(Entry::Sync);
    ledger.pop();
    ledger.ready(b'I');
    let first = ledger.statement(b"s").expect("parsed");

    // Refused: the name exists. What follows is skipped, a Close too.
    ledger.parse(b"s", Statement::unknown(Vec::new()));
    ledger.close_statement(b"s");
    ledger.parse(b"other", fixed_statement());
    ledger.push(Entry::Sync);
    ledger.failed();
    assert!(matches!(ledger.ready(b'I'), Some(Entry::Sync)));
    assert!(ledger.is_idle());
    assert!(Arc::ptr_eq(
        &first,
        &ledger.statement(b"s").expect("still there")
    ));
    assert!(ledger.statement(b"other").is_none());
}

/// Messages sent after the error came back, but before Sync, are skipped by the server as well, a
/// simple query among them (WIRE-BUGS 3).
#[test]
fn messages_until_sync_are_skipped() {
    let mut ledger = ready();
    ledger.bind(b"", b"nope", Some(Box::new([])));
    ledger.failed();
    ledger.push(Entry::Query(SimpleQuery::default()));
    ledger.parse(b"s", fixed_statement());
    assert!(ledger.is_idle());
    assert!(ledger.statement(b"s").is_none());
    ledger.push(Entry::Sync);
    assert!(matches!(ledger.ready(b'I'), Some(Entry::Sync)));
    ledger.parse(b"s", fixed_statement());
    assert!(ledger.statement(b"s").is_some());
}

/// In copy-in mode of an extended query the server ignores Sync (WIRE-BUGS 2): as sent by
/// tokio-postgres, `Bind Execute Sync`, CopyInResponse, `CopyData CopyDone Sync`.
#[test]
fn a_copy_swallows_the_sync_before_its_end() {
    let mut ledger = ready();
    ledger.bind(b"", b"s", Some(Box::new([])));
    execute(&mut ledger, b"");
    ledger.push(Entry::Sync);
    ledger.pop();
    ledger.copy_in_began();
    // One more, as if the client were confused: swallowed, too.
    ledger.push(Entry::Sync);
    ledger.push(Entry::CopyEnd);
    ledger.push(Entry::Sync);
    assert!(matches!(ledger.front_of_reply(), Some(Entry::Execute(_))));
    ledger.pop();
    assert!(matches!(ledger.ready(b'I'), Some(Entry::Sync)));
    assert!(ledger.is_idle());
}

/// The same when the client had sent all of it before the server said CopyInResponse.
#[test]
fn a_pipelined_copy_swallows_the_sync_too() {
    let mut ledger = ready();
    execute(&mut ledger, b"");
    ledger.push(Entry::Sync);
    ledger.push(Entry::CopyEnd);
    ledger.push(Entry::Sync);
    ledger.copy_in_began();
    ledger.pop();
    assert!(matches!(ledger.ready(b'I'), Some(Entry::Sync)));
    assert!(ledger.is_idle());
}

/// A copy that fails may have swallowed the first Sync or not. Either way what comes next is matched
/// with its own entry.
#[test]
fn a_failed_copy_leaves_the_ledger_in_step() {
    for syncs_answered in [1, 2] {
        let mut ledger = ready();
        execute(&mut ledger, b"");
        ledger.push(Entry::Sync);
        ledger.copy_in_began();
        ledger.failed();
        if syncs_answered == 2 {
            assert!(ledger.ready(b'I').is_none());
        }
        ledger.push(Entry::CopyEnd);
        ledger.push(Entry::Sync);
        assert!(
            matches!(ledger.ready(b'I'), Some(Entry::Sync)),
            "{syncs_answered}"
        );
        ledger.push(Entry::Query(SimpleQuery::default()));
        assert!(matches!(ledger.front_of_reply(), Some(Entry::Query(_))));
        assert!(matches!(ledger.ready(b'I'), Some(Entry::Query(_))));
        assert!(ledger.is_idle());
    }
}

/// An error of a simple query does not make the server skip; an error at Sync does not either.
#[test]
fn errors_of_a_query_and_at_sync_skip_nothing() {
    let mut ledger = ready();
    ledger.push(Entry::Query(SimpleQuery::default()));
    ledger.push(Entry::Query(SimpleQuery::default()));
    ledger.failed();
    assert!(matches!(ledger.ready(b'I'), Some(Entry::Query(_))));
    assert!(matches!(ledger.front(), Some(Entry::Query(_))));
    assert!(matches!(ledger.ready(b'I'), Some(Entry::Query(_))));

    ledger.push(Entry::Sync);
    ledger.failed();
    assert!(matches!(ledger.ready(b'I'), Some(Entry::Sync)));
}

/// A portal ends with its transaction, and not before; one bound behind the Sync lives on.
#[test]
fn portals_end_with_the_transaction() {
    let mut ledger = ready();
    ledger.parse(b"s", fixed_statement());
    ledger.bind(b"old", b"s", Some(Box::new([])));
    let old = ledger.portal(b"old");
    ledger.push(Entry::Sync);
    ledger.bind(b"new", b"s", Some(Box::new([])));
    let new = ledger.portal(b"new");
    ledger.pop();
    ledger.pop();
    ledger.ready(b'I');
    assert!(!Arc::ptr_eq(&old, &ledger.portal(b"old")));
    assert!(Arc::ptr_eq(&new, &ledger.portal(b"new")));
}

/// A portal needs no Describe of its own once its statement's columns are known or asked for, unless
/// the statement can return others each time.
#[test]
fn a_describe_is_asked_for_only_when_needed() {
    let mut ledger = ready();
    ledger.parse(b"s", fixed_statement());
    ledger.bind(b"", b"s", Some(Box::new([1])));
    assert!(needs_describe(&ledger, b""));
    ledger.describe_statement(b"s");
    assert!(!needs_describe(&ledger, b""));
    // Skipped by the server: it must be asked again.
    ledger.failed();
    ledger.push(Entry::Sync);
    ledger.ready(b'I');

    ledger.parse(b"s", fixed_statement());
    let statement = ledger.statement(b"s").expect("parsed");
    assert!(statement.columns.set(Arc::<Columns>::default()).is_ok());
    ledger.bind(b"", b"s", Some(Box::new([1])));
    assert!(!needs_describe(&ledger, b""));
    assert!(ledger.portal(b"").shape().is_some());

    ledger.parse(b"fetch", Statement::unknown(Vec::new()));
    ledger.bind(b"", b"fetch", Some(Box::new([])));
    assert!(needs_describe(&ledger, b""));
    let portal = ledger.portal(b"");
    ledger.describe_portal(portal, true);
    assert!(!needs_describe(&ledger, b""));
    // A cursor opened by SQL.
    assert!(needs_describe(&ledger, b"by sql"));
}

/// L2: an error makes the server skip a Parse or a Describe, but not what stands behind the next Sync.
/// That must not lean on either before the server has answered it.
#[test]
fn nothing_leans_on_what_may_be_skipped() {
    let mut ledger = ready();
    ledger.parse(b"s", fixed_statement());
    ledger.describe_statement(b"s");
    ledger.bind(b"", b"s", Some(Box::new([])));
    assert!(ledger.certain_statement(b"s").is_some());
    assert!(!needs_describe(&ledger, b""));
    ledger.push(Entry::Sync);
    ledger.bind(b"", b"s", Some(Box::new([])));
    assert!(ledger.certain_statement(b"s").is_none());
    assert!(needs_describe(&ledger, b""));
    let statement = ledger.statement(b"s").expect("parsed");
    statement
        .confirmed
        .store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(ledger.certain_statement(b"s").is_some());
}

/// SQL can close a named portal and open another of its name, so that it is described in each segment.
#[test]
fn a_named_portal_is_described_again() {
    let mut ledger = ready();
    ledger.parse(b"s", fixed_statement());
    ledger.bind(b"p", b"s", Some(Box::new([])));
    assert!(needs_describe(&ledger, b"p"));
    let portal = ledger.portal(b"p");
    ledger.describe_portal(portal, true);
    assert!(!needs_describe(&ledger, b"p"));
    ledger.push(Entry::Sync);
    assert!(needs_describe(&ledger, b"p"));
}

/// A question may be asked where nothing is under way, or in a batch of statements that are no copies.
#[test]
fn questions_come_where_nothing_can_be_between() {
    let mut ledger = ready();
    assert!(ledger.may_ask_at_rest());
    ledger.push(Entry::Query(SimpleQuery::default()));
    assert!(!ledger.may_ask_at_rest() && !ledger.may_ask_in_batch());
    ledger.copy_in_began();
    ledger.push(Entry::CopyEnd);
    ledger.ready(b'I');
    assert!(ledger.may_ask_at_rest());
    ledger.parse(b"", fixed_statement());
    ledger.bind(b"", b"", Some(Box::new([])));
    execute(&mut ledger, b"");
    assert!(ledger.may_ask_in_batch() && !ledger.may_ask_at_rest());
    ledger.parse(b"", Statement::unknown(Vec::new()));
    ledger.bind(b"", b"", Some(Box::new([])));
    assert!(ledger.may_ask_in_batch());
    execute(&mut ledger, b"");
    assert!(!ledger.may_ask_in_batch());
    ledger.failed();
    assert!(!ledger.may_ask_in_batch());
    ledger.push(Entry::Sync);
    ledger.ready(b'E');
    assert!(!ledger.may_ask_in_batch() && !ledger.may_ask_at_rest());
}
