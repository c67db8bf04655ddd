//! Texts in, plans out, with bounded caches between.
//!
//! Two caches: plans by the very text, for statements that are prepared again
//! and again; analyses by skeleton, for texts that differ in their values.

use std::sync::Arc;

use crate::analysis::{Analysis, analyse, can_assign};
use crate::cache::Cache;
use crate::glance::row_shape;
use crate::plan::{Edit, LiteralSite, QueryPlan, RowShape, StatementPlan};
use crate::reserved;
use crate::scan::{Statement, scan};
use crate::tables::Tables;

/// Finds what a text assigns straight to offloaded columns. One serves any
/// number of sessions and sets of tables.
#[derive(Debug)]
pub struct Analyzer {
    plans: Cache<StatementPlan>,
    analyses: Cache<Analysis>,
    /// The plans without sites, by shape.
    fixed: Arc<StatementPlan>,
    per_portal: Arc<StatementPlan>,
}

impl Analyzer {
    /// `cache_entries` bounds how many texts, and again how many skeletons, are
    /// kept; each cache also holds at most 8 MiB. 0 keeps none.
    pub fn new(cache_entries: usize) -> Analyzer {
        Analyzer {
            plans: Cache::new(cache_entries),
            analyses: Cache::new(cache_entries),
            fixed: Arc::new(no_sites(RowShape::Fixed, true)),
            per_portal: Arc::new(no_sites(RowShape::PerPortal, true)),
        }
    }

    /// The plan for a `Parse` message.
    ///
    /// Presumes `standard_conforming_strings = on`; do not ask otherwise.
    pub fn statement(&self, tables: &Tables, text: &str) -> Arc<StatementPlan> {
        let row_shape = row_shape(text.as_bytes());
        if !can_assign(text) || !tables.mentions(text.as_bytes()) {
            return Arc::clone(match row_shape {
                RowShape::Fixed => &self.fixed,
                RowShape::PerPortal => &self.per_portal,
            });
        }
        if let Some(plan) = self.plans.find(tables.id(), text) {
            return plan;
        }
        let plan = self.plan_statement(tables, text, row_shape);
        let plan = Arc::new(plan.unwrap_or_else(|| no_sites(row_shape, false)));
        self.plans.keep(tables.id(), text, &plan, plan.bytes());
        plan
    }

    fn plan_statement(
        &self,
        tables: &Tables,
        text: &str,
        row_shape: RowShape,
    ) -> Option<StatementPlan> {
        let script = scan(text, usize::MAX)?;
        // Postgres refuses several statements in one Parse.
        let [statement] = script.statements.as_slice() else {
            return Some(no_sites(row_shape, true));
        };
        if !statement.assigns {
            return Some(no_sites(row_shape, true));
        }
        let analysis = self.analysis(tables, &statement.skeleton);
        let original = |edit: &Edit| Edit {
            range: statement.original_range(&edit.range),
            ..edit.clone()
        };
        Some(StatementPlan {
            params: analysis.params.clone(),
            edits: analysis.edits.iter().map(original).collect(),
            row_shape,
            understood: analysis.understood,
        })
    }

    /// The plan for a simple `Query` message: literals of at least
    /// `min_literal_len` bytes between their quotes, and shorter ones that may
    /// begin with a reserved prefix.
    ///
    /// Presumes `standard_conforming_strings = on`; do not ask otherwise.
    pub fn query(&self, tables: &Tables, text: &str, min_literal_len: usize) -> QueryPlan {
        if !tables.mentions(text.as_bytes()) {
            return QueryPlan {
                understood: true,
                ..QueryPlan::default()
            };
        }
        self.plan_query(tables, text, min_literal_len)
            .unwrap_or_default()
    }

    fn plan_query(&self, tables: &Tables, text: &str, min_literal_len: usize) -> Option<QueryPlan> {
        let script = scan(text, min_literal_len)?;
        let mut plan = QueryPlan {
            literals: Vec::new(),
            statement_count: script.statements.len(),
            understood: true,
        };
        for statement in &script.statements {
            let skeleton = &statement.skeleton;
            if !statement.has_candidate || !statement.assigns || !can_assign(skeleton) {
                continue;
            }
            let analysis = self.analysis(tables, skeleton);
            if !analysis.understood {
                return None;
            }
            let sites = literal_sites(statement, &analysis, text, min_literal_len);
            plan.literals.extend(sites);
        }
        Some(plan)
    }

    fn analysis(&self, tables: &Tables, skeleton: &str) -> Arc<Analysis> {
        if let Some(analysis) = self.analyses.find(tables.id(), skeleton) {
            return analysis;
        }
        let analysis = Arc::new(analyse(tables, skeleton));
        self.analyses
            .keep(tables.id(), skeleton, &analysis, analysis.bytes());
        analysis
    }
}

/// The literals of a statement that are worth a site, in bytes of the text.
fn literal_sites<'a>(
    statement: &'a Statement,
    analysis: &'a Analysis,
    text: &'a str,
    min_literal_len: usize,
) -> impl Iterator<Item = LiteralSite> + 'a {
    analysis.literals.iter().filter_map(move |token| {
        let piece = statement.piece(&token.range)?;
        let literal = piece.literal.as_ref()?;
        let body = text.as_bytes().get(literal.body.clone())?;
        let kind = token.column.kind;
        let wanted =
            body.len() >= min_literal_len || reserved::may_begin_kind(body, literal.kind, kind);
        wanted.then(|| LiteralSite {
            range: piece.original.clone(),
            body: literal.body.clone(),
            replace_range: statement.original_range(&token.whole),
            column: token.column.id,
            kind,
            literal: literal.kind,
        })
    })
}

fn no_sites(row_shape: RowShape, understood: bool) -> StatementPlan {
    StatementPlan {
        params: Vec::new(),
        edits: Vec::new(),
        row_shape,
        understood,
    }
}
