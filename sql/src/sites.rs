//! Walks a parse tree for what is assigned straight to offloaded columns.
//!
//! Only the shapes in which Postgres coerces the expression itself to the
//! column's type count: a VALUES row, a plain target list of INSERT ... SELECT,
//! a SET clause, MERGE. Whatever else (set operations, DISTINCT, sub-selects,
//! function calls, subscripts) has types of its own and is left inline.
//!
//! PREPARE, rules and function bodies are not entered: a reference in a text
//! that outlives its transaction outside of tables is seen by no mark (S8).

use pg_query::NodeEnum;
use pg_query::protobuf::{
    self, CmdType, InsertStmt, MergeStmt, MergeWhenClause, Node, ParseResult, RangeVar, ResTarget,
    SelectStmt, SetOperation, TypeName, UpdateStmt, WithClause, a_const,
};

use crate::tables::{ColumnDef, Kind, OffloadedColumn, TableDef, Tables};

/// A direct assignment; places are bytes of the parsed text.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) column: OffloadedColumn,
    pub(crate) direct: Direct,
    /// EXPLAIN prints values, and must not print a reference in their place.
    pub(crate) printed: bool,
}

/// An expression that is nothing but a parameter or a string literal.
#[derive(Debug)]
pub(crate) struct Direct {
    pub(crate) value: Value,
    pub(crate) at: usize,
    pub(crate) cast: Option<Cast>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    Param(u16),
    Literal,
}

/// A cast to a plain type without modifier.
#[derive(Debug)]
pub(crate) struct Cast {
    pub(crate) kind: Kind,
    /// Of `::` or `CAST`; `None` for `type 'literal'`.
    pub(crate) at: Option<usize>,
    /// Of the type's first token.
    pub(crate) type_at: usize,
}

/// Every site of a parsed text, in no particular order.
pub(crate) fn sites(tables: &Tables, parsed: &ParseResult) -> Vec<Site> {
    let mut walk = Walk {
        tables,
        sites: Vec::new(),
        printed: false,
    };
    for raw in &parsed.stmts {
        walk.printed = false;
        walk.statement(raw.stmt.as_deref());
    }
    walk.sites
}

struct Walk<'t> {
    tables: &'t Tables,
    sites: Vec<Site>,
    printed: bool,
}

impl Walk<'_> {
    /// Depth is bounded by the decoder of the tree (100 messages).
    fn statement(&mut self, node: Option<&Node>) {
        match node.and_then(|node| node.node.as_ref()) {
            Some(NodeEnum::InsertStmt(insert)) => self.insert(insert),
            Some(NodeEnum::UpdateStmt(update)) => self.update(update),
            Some(NodeEnum::MergeStmt(merge)) => self.merge(merge),
            Some(NodeEnum::DeleteStmt(delete)) => self.with(delete.with_clause.as_ref()),
            Some(NodeEnum::SelectStmt(select)) => self.with(select.with_clause.as_ref()),
            Some(NodeEnum::ExplainStmt(explain)) => {
                self.printed = true;
                self.statement(explain.query.as_deref());
            }
            Some(NodeEnum::CopyStmt(copy)) => self.statement(copy.query.as_deref()),
            _ => {}
        }
    }

    fn with(&mut self, with: Option<&WithClause>) {
        for cte in with.iter().flat_map(|with| &with.ctes) {
            if let Some(NodeEnum::CommonTableExpr(cte)) = &cte.node {
                self.statement(cte.ctequery.as_deref());
            }
        }
    }

    fn insert(&mut self, insert: &InsertStmt) {
        self.with(insert.with_clause.as_ref());
        let target = Target::new(self.tables, insert.relation.as_ref());
        let source = insert.select_stmt.as_ref().map(|node| &node.node);
        if let Some(Some(NodeEnum::SelectStmt(source))) = source {
            self.insert_source(&target, &insert.cols, source);
        }
        if let Some(conflict) = &insert.on_conflict_clause {
            self.set_clause(&target, &conflict.target_list);
        }
    }

    fn insert_source(&mut self, target: &Target, columns: &[Node], source: &SelectStmt) {
        if source.op != SetOperation::SetopNone as i32 || !source.sort_clause.is_empty() {
            return;
        }
        if source.values_lists.is_empty() {
            self.insert_select(target, columns, source);
            return;
        }
        // With any of these, Postgres resolves the column types of VALUES on its own.
        let bare = source.limit_count.is_none()
            && source.limit_offset.is_none()
            && source.locking_clause.is_empty()
            && source.with_clause.is_none();
        if !bare {
            return;
        }
        for row in &source.values_lists {
            if let Some(NodeEnum::List(row)) = &row.node {
                self.row(target, columns, row.items.iter());
            }
        }
    }

    fn insert_select(&mut self, target: &Target, columns: &[Node], source: &SelectStmt) {
        let plain = source.distinct_clause.is_empty()
            && source.group_clause.is_empty()
            && source.having_clause.is_none()
            && source.window_clause.is_empty()
            && source.into_clause.is_none();
        if !plain {
            return;
        }
        let values = source
            .target_list
            .iter()
            .map_while(|item| match &item.node {
                // Behind a star the positions are unknown.
                Some(NodeEnum::ResTarget(item)) => item.val.as_deref().filter(|v| !is_star(v)),
                _ => None,
            });
        self.row(target, columns, values);
    }

    /// Values in the order of an INSERT's column list, or of the table's columns without one.
    fn row<'n>(
        &mut self,
        target: &Target,
        columns: &[Node],
        values: impl Iterator<Item = &'n Node>,
    ) {
        let values: Vec<&Node> = values.collect();
        let table = if columns.is_empty() {
            target.with_columns(values.len())
        } else {
            target.with_all(columns)
        };
        let Some(table) = table else { return };
        for (i, value) in values.into_iter().enumerate() {
            let column = match columns.get(i).map(|column| &column.node) {
                Some(Some(NodeEnum::ResTarget(column))) => assigned(table, column),
                None if columns.is_empty() => table.columns.get(i).and_then(ColumnDef::assignable),
                Some(_) | None => None,
            };
            self.assign(column, value);
        }
    }

    fn update(&mut self, update: &UpdateStmt) {
        self.with(update.with_clause.as_ref());
        let target = Target::new(self.tables, update.relation.as_ref());
        self.set_clause(&target, &update.target_list);
    }

    fn merge(&mut self, merge: &MergeStmt) {
        self.with(merge.with_clause.as_ref());
        let target = Target::new(self.tables, merge.relation.as_ref());
        for clause in &merge.merge_when_clauses {
            if let Some(NodeEnum::MergeWhenClause(clause)) = &clause.node {
                self.merge_when(&target, clause);
            }
        }
    }

    fn merge_when(&mut self, target: &Target, clause: &MergeWhenClause) {
        if clause.command_type == CmdType::CmdUpdate as i32 {
            self.set_clause(target, &clause.target_list);
        } else if clause.command_type == CmdType::CmdInsert as i32 {
            self.row(target, &clause.target_list, clause.values.iter());
        }
    }

    fn set_clause(&mut self, target: &Target, items: &[Node]) {
        let Some(table) = target.with_all(items) else {
            return;
        };
        for item in items {
            let Some(NodeEnum::ResTarget(item)) = &item.node else {
                continue;
            };
            let column = assigned(table, item);
            if let Some(value) = item.val.as_deref().and_then(single_source) {
                self.assign(column, value);
            }
        }
    }

    fn assign(&mut self, column: Option<OffloadedColumn>, value: &Node) {
        let Some(column) = column else { return };
        let Some(direct) = direct(value) else { return };
        let fits = direct.cast.as_ref().map(|cast| cast.kind);
        if fits.is_none_or(|cast| column.kind.accepts_cast(cast)) {
            self.sites.push(Site {
                column,
                direct,
                printed: self.printed,
            });
        }
    }
}

/// The tables that a statement may write to.
struct Target<'t> {
    candidates: Vec<&'t TableDef>,
}

impl<'t> Target<'t> {
    fn new(tables: &'t Tables, relation: Option<&RangeVar>) -> Target<'t> {
        let candidates = relation.map(|r| tables.candidates(&r.schemaname, &r.relname));
        Target {
            candidates: candidates.unwrap_or_default(),
        }
    }

    /// The first table that has all the columns that a list or SET clause names.
    fn with_all(&self, items: &[Node]) -> Option<&'t TableDef> {
        let named = |table: &TableDef, item: &Node| match &item.node {
            Some(NodeEnum::ResTarget(item)) => column(table, item).is_some(),
            _ => false,
        };
        let fits = |table: &&TableDef| items.iter().all(|item| named(table, item));
        self.candidates.iter().copied().find(fits)
    }

    /// The first table that has so many columns.
    fn with_columns(&self, count: usize) -> Option<&'t TableDef> {
        let fits = |table: &&TableDef| table.columns.len() >= count;
        self.candidates.iter().copied().find(fits)
    }
}

fn column<'t>(table: &'t TableDef, item: &ResTarget) -> Option<&'t ColumnDef> {
    table.columns.iter().find(|c| c.name == item.name)
}

/// The offloaded column that an item of a column list or SET clause assigns whole.
fn assigned(table: &TableDef, item: &ResTarget) -> Option<OffloadedColumn> {
    let whole = item.indirection.is_empty();
    column(table, item)
        .filter(|_| whole)
        .and_then(ColumnDef::assignable)
}

/// The expression itself, or the item of `(a, b) = (x, y)` that it stands for.
fn single_source(value: &Node) -> Option<&Node> {
    let Some(NodeEnum::MultiAssignRef(item)) = &value.node else {
        return Some(value);
    };
    match &item.source.as_ref()?.node {
        Some(NodeEnum::RowExpr(row)) => {
            let index = usize::try_from(item.colno).ok()?.checked_sub(1)?;
            row.args.get(index)
        }
        _ => None,
    }
}

fn is_star(value: &Node) -> bool {
    let last = match &value.node {
        Some(NodeEnum::ColumnRef(column)) => column.fields.last(),
        Some(NodeEnum::AIndirection(item)) => item.indirection.last(),
        _ => None,
    };
    matches!(last.map(|n| &n.node), Some(Some(NodeEnum::AStar(_))))
}

fn direct(value: &Node) -> Option<Direct> {
    let Some(NodeEnum::TypeCast(cast)) = &value.node else {
        return bare(value, None);
    };
    let type_name = cast.type_name.as_ref()?;
    let cast_to = Cast {
        kind: plain_kind(type_name)?,
        at: usize::try_from(cast.location).ok(),
        type_at: usize::try_from(type_name.location).ok()?,
    };
    bare(cast.arg.as_deref()?, Some(cast_to))
}

fn bare(value: &Node, cast: Option<Cast>) -> Option<Direct> {
    let (value, location) = match &value.node {
        Some(NodeEnum::ParamRef(param)) => {
            let number = u16::try_from(param.number).ok().filter(|n| *n > 0)?;
            (Value::Param(number), param.location)
        }
        Some(NodeEnum::AConst(constant)) if is_string(constant) => {
            (Value::Literal, constant.location)
        }
        _ => return None,
    };
    Some(Direct {
        value,
        at: usize::try_from(location).ok()?,
        cast,
    })
}

fn is_string(constant: &protobuf::AConst) -> bool {
    !constant.isnull && matches!(constant.val, Some(a_const::Val::Sval(_)))
}

/// The kind whose plain type is named, without schema or in `pg_catalog`.
fn plain_kind(name: &TypeName) -> Option<Kind> {
    let modified = name.setof
        || name.pct_type
        || !name.typmods.is_empty()
        || name.typemod != -1
        || !name.array_bounds.is_empty();
    if modified {
        return None;
    }
    let part = |node: &'_ Node| match &node.node {
        Some(NodeEnum::String(part)) => Some(part.sval.clone()),
        _ => None,
    };
    let parts: Option<Vec<String>> = name.names.iter().map(part).collect();
    match parts?.as_slice() {
        [kind] => Kind::from_plain_name(kind),
        [schema, kind] if schema == "pg_catalog" => Kind::from_plain_name(kind),
        _ => None,
    }
}
