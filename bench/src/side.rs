//! What is compared, and the table and statements of each.

use clap::ValueEnum;

use crate::args::Args;

/// One way for values to reach a table and come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Side {
    /// Plain Postgres: what the value columns cost today.
    Direct,
    /// The same statements through Toastrack, on offloaded columns.
    Toastrack,
    /// Plain Postgres with random strings of a reference's size: a sidecar that costs nothing.
    Bound,
    /// As bound, through pgbouncer: a proxy that looks at nothing.
    Pgbouncer,
}

impl Side {
    /// All sides, in the order of the report.
    pub(crate) const ALL: [Side; 4] = [Side::Direct, Side::Toastrack, Side::Bound, Side::Pgbouncer];
    /// Those that need nothing to be installed.
    pub(crate) const DEFAULT: [Side; 3] = [Side::Direct, Side::Toastrack, Side::Bound];

    /// The name in reports; also the name of the side's table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Side::Direct => "direct",
            Side::Toastrack => "toastrack",
            Side::Bound => "bound",
            Side::Pgbouncer => "pgbouncer",
        }
    }
}

/// The order of the sides in one round: each side comes first, second and last in turn.
pub(crate) fn order(sides: &[Side], round: u8) -> Vec<Side> {
    let mut order = sides.to_vec();
    if !order.is_empty() {
        let places = usize::from(round) % order.len();
        order.rotate_left(places);
    }
    order
}

/// The SQL of one side.
#[derive(Debug, Clone)]
pub(crate) struct Statements {
    /// Makes the empty table.
    pub(crate) create: String,
    /// Parameters: id, then each value column.
    pub(crate) insert: String,
    /// Parameters: id, then each value column.
    pub(crate) update: String,
    /// Parameter: id.
    pub(crate) point: String,
    /// No parameters.
    pub(crate) full: String,
}

impl Statements {
    /// The statements for the side's table, the same text on each side but for its name.
    pub(crate) fn new(side: Side, args: &Args) -> Statements {
        let table = side.name();
        let schema = match side {
            Side::Toastrack => "toastrack",
            Side::Direct | Side::Bound | Side::Pgbouncer => "pg_catalog",
        };
        let value_type = args.value_type.sql_name();
        let list = |render: &dyn Fn(u8) -> String| {
            (1..=args.columns)
                .map(render)
                .collect::<Vec<_>>()
                .join(", ")
        };
        Statements {
            create: format!(
                "create table {table} (id bigint primary key, {})",
                list(&|c| format!("c{c} {schema}.{value_type} not null"))
            ),
            insert: format!(
                "insert into {table} (id, {}) values ($1, {})",
                list(&|c| format!("c{c}")),
                list(&|c| format!("${}", c + 1))
            ),
            update: format!(
                "update {table} set {} where id = $1",
                list(&|c| format!("c{c} = ${}", c + 1))
            ),
            point: format!("select * from {table} where id = $1"),
            full: format!("select * from {table}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn each_side_takes_each_place_in_turn() {
        let firsts: Vec<Side> = (0..4).map(|round| order(&Side::ALL, round)[0]).collect();
        assert_eq!(firsts, Side::ALL);
        assert_eq!(order(&Side::ALL, 5), order(&Side::ALL, 1));
        assert_eq!(order(&[], 1), []);
    }

    #[test]
    fn the_sides_differ_in_the_table_alone() {
        let args = Args::parse_from(["toastrack-bench", "--columns", "2", "--type", "jsonb"]);
        let direct = Statements::new(Side::Direct, &args);
        let toastrack = Statements::new(Side::Toastrack, &args);
        assert_eq!(
            direct.create,
            "create table direct (id bigint primary key, c1 pg_catalog.jsonb not null, c2 pg_catalog.jsonb not null)"
        );
        assert_eq!(
            toastrack.insert,
            "insert into toastrack (id, c1, c2) values ($1, $2, $3)"
        );
        assert_eq!(
            direct.update,
            "update direct set c1 = $2, c2 = $3 where id = $1"
        );
        assert_eq!(direct.full.replace("direct", "toastrack"), toastrack.full);
    }
}
