//! What one statement assigns straight to offloaded columns, in its own bytes.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::plan::{Edit, ParamSite};
use crate::scan::{first_word, is_any_of};
use crate::sites::{Site, Value, sites};
use crate::tables::{Kind, OffloadedColumn, Tables};
use crate::tokens::{ParamCast, Tokens};

/// Longer skeletons are not parsed: far above what 65,535 parameters need.
const MAX_STATEMENT_BYTES: usize = 2 << 20;

/// The analysis of one statement.
#[derive(Debug, Default)]
pub(crate) struct Analysis {
    pub(crate) params: Vec<ParamSite>,
    /// Changes of casts on `params`, ascending.
    pub(crate) edits: Vec<Edit>,
    pub(crate) literals: Vec<LiteralToken>,
    /// The statement is one that cannot assign, or it was parsed.
    pub(crate) understood: bool,
}

/// A literal in a direct assignment.
#[derive(Debug)]
pub(crate) struct LiteralToken {
    pub(crate) range: Range<usize>,
    /// With its cast.
    pub(crate) whole: Range<usize>,
    pub(crate) column: OffloadedColumn,
}

impl Analysis {
    /// About what it takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Analysis>()
            + self.params.len() * size_of::<ParamSite>()
            + self.edits.len() * size_of::<Edit>()
            + self.literals.len() * size_of::<LiteralToken>()
    }
}

/// Whether a statement with a word INSERT, UPDATE or MERGE can be one that
/// assigns; SELECT ... FOR UPDATE, a rule or a trigger cannot.
pub(crate) fn can_assign(statement: &str) -> bool {
    let word = first_word(statement.as_bytes());
    is_any_of(
        word,
        &["insert", "update", "merge", "with", "explain", "copy"],
    )
}

/// Analyses one statement. Never fails: what is not understood has no sites.
pub(crate) fn analyse(tables: &Tables, statement: &str) -> Analysis {
    try_analyse(tables, statement).unwrap_or_default()
}

fn try_analyse(tables: &Tables, statement: &str) -> Option<Analysis> {
    if statement.len() > MAX_STATEMENT_BYTES {
        return None;
    }
    let parsed = pg_query::parse(statement, 0).ok()?;
    let mut sites = sites(tables, &parsed.protobuf);
    let mut analysis = Analysis {
        understood: true,
        ..Analysis::default()
    };
    if sites.is_empty() {
        return Some(analysis);
    }
    sites.sort_by_key(|site| site.direct.at);
    let tokens = Tokens::of(statement)?;
    let mut params: BTreeMap<u16, Param> = BTreeMap::new();
    for site in &sites {
        let range = tokens.value(&site.direct)?;
        match site.direct.value {
            Value::Literal if site.printed => {}
            Value::Literal => analysis.literals.push(LiteralToken {
                range,
                whole: tokens.whole(&site.direct)?,
                column: site.column,
            }),
            Value::Param(number) => params.entry(number).or_default().assigned(&tokens, site)?,
        }
    }
    for (number, at, cast) in tokens.params() {
        if let Some(param) = params.get_mut(&number) {
            param.used(at, cast);
        }
    }
    for (number, param) in params {
        let Some(site) = param.site(number) else {
            continue;
        };
        let edits = param.cast_types.into_iter().map(|range| Edit {
            range,
            replacement: site.kind.toastrack_name().into(),
            param: Some(number),
        });
        analysis.edits.extend(edits);
        analysis.params.push(site);
    }
    analysis.edits.sort_by_key(|edit| edit.range.start);
    Some(analysis)
}

/// What is known of one parameter.
#[derive(Debug, Default)]
struct Param {
    /// The column it is assigned to first.
    column: Option<OffloadedColumn>,
    /// The type of its direct casts.
    cast: Option<Kind>,
    cast_types: Vec<Range<usize>>,
    /// Where it is assigned; ascending.
    assigned_at: Vec<usize>,
    used_elsewhere: bool,
    /// Plain Postgres would infer one type for it, and there is no one to declare.
    conflicting: bool,
}

impl Param {
    fn assigned(&mut self, tokens: &Tokens, site: &Site) -> Option<()> {
        let column = *self.column.get_or_insert(site.column);
        self.conflicting |= column.kind != site.column.kind;
        if let Some(cast) = &site.direct.cast {
            self.conflicting |= *self.cast.get_or_insert(cast.kind) != cast.kind;
            self.cast_types.push(tokens.cast_type(cast)?);
        }
        self.used_elsewhere |= site.printed;
        self.assigned_at.push(site.direct.at);
        Some(())
    }

    fn used(&mut self, at: usize, cast: ParamCast) {
        if self.assigned_at.binary_search(&at).is_ok() {
            return;
        }
        self.used_elsewhere = true;
        let kind = self.column.map(|column| column.kind);
        let fits = match cast {
            ParamCast::None => true,
            ParamCast::To(cast) => kind.is_some_and(|kind| kind.accepts_cast(cast)),
            ParamCast::Other => false,
        };
        self.conflicting |= !fits;
    }

    fn site(&self, number: u16) -> Option<ParamSite> {
        let column = self.column.filter(|_| !self.conflicting)?;
        Some(ParamSite {
            number,
            column: column.id,
            kind: column.kind,
            client_kind: self.cast.unwrap_or(column.kind),
            only_assigned: !self.used_elsewhere,
        })
    }
}
