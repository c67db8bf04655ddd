//! Simple queries: literals that go straight into offloaded columns.

use std::borrow::Cow;

use toastrack_offload::{Ticket, ValueKind};
use toastrack_sql::{Analyzer, Edit, EditMap, LiteralKind, LiteralSite, QueryPlan, apply_edits};
use toastrack_value::{bytea, literal};

use super::ddl::mentions_ddl;
use super::prepare::Sink;
use crate::catalog::Snapshot;

/// A query text with references in place of literals.
pub(crate) struct OffloadedQuery {
    pub(crate) text: String,
    pub(crate) edits: EditMap,
    /// Everything is durable once this is.
    pub(crate) ticket: Ticket,
}

/// Puts the literals into the store that are worth it. None: none was.
pub(crate) fn offload_literals(
    sink: &Sink<'_>,
    analyzer: &Analyzer,
    catalog: &Snapshot,
    text: &str,
) -> Option<OffloadedQuery> {
    let plan = analyzer.query(&catalog.tables, text, catalog.smallest_threshold as usize);
    if plan.statement_count > 1 && changes_schema(text, &plan) {
        return None;
    }
    let mut ticket = None;
    let mut edits: Vec<Edit> = Vec::new();
    for site in &plan.literals {
        let Some(column) = catalog.column(site.column) else {
            continue;
        };
        let Some(value) = decode(text, site) else {
            continue;
        };
        let Some(put) = sink.offload(column, &value, false, false) else {
            continue;
        };
        ticket = ticket.max(Some(put.ticket));
        let spelling = put.reference.spelling();
        let spelled = match put.reference.kind() {
            ValueKind::Bytea => {
                let mut hex = Vec::new();
                bytea::write_hex(&spelling, &mut hex);
                hex
            }
            _ => spelling.to_vec(),
        };
        edits.push(site.edit(std::str::from_utf8(&spelled).ok()?));
    }
    let ticket = ticket?;
    let (text, edits) = apply_edits(text, &edits);
    Some(OffloadedQuery {
        text,
        edits,
        ticket,
    })
}

/// Whether a statement of several may change what the tables of those behind it are; the literals are
/// not looked into.
fn changes_schema(text: &str, plan: &QueryPlan) -> bool {
    let mut from = 0;
    let starts = plan.literals.iter().map(|site| &site.range);
    let before_a_literal = starts.map(|literal| {
        let start = std::mem::replace(&mut from, literal.end);
        start..literal.start
    });
    before_a_literal
        .filter_map(|range| text.as_bytes().get(range))
        .any(mentions_ddl)
}

/// The value that a literal means; None when in doubt.
fn decode<'t>(text: &'t str, site: &LiteralSite) -> Option<Cow<'t, [u8]>> {
    let token = text.get(site.range.clone())?;
    if site.literal == LiteralKind::Dollar {
        return Some(Cow::Borrowed(text.get(site.body.clone())?.as_bytes()));
    }
    literal::decode_literal(token.as_bytes()).ok()
}
