//! The ways in which one statement can be said in the extended protocol.

use crate::common::raw;
use crate::params::Param;

/// Which result formats Bind asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Results {
    Unsaid,
    Text,
    Binary,
    OnePerColumn,
}

/// What is described, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Described {
    Nothing,
    Statement,
    Portal,
    Both,
}

/// One way of running a statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mode {
    /// Parse declares the plain types of the parameters.
    pub(crate) declared: bool,
    pub(crate) binary_params: bool,
    pub(crate) results: Results,
    pub(crate) described: Described,
    /// 0: all rows at once.
    pub(crate) max_rows: i32,
    pub(crate) named: bool,
    /// Parse and the Describe of the statement are synced before Bind is sent.
    pub(crate) prepared_first: bool,
    /// Everything up to the end of the transaction goes in one batch with one Sync.
    pub(crate) pipelined: bool,
}

/// As the common drivers do it.
pub(crate) const DRIVERS: [Mode; 4] = [
    // psycopg 3 and node-postgres.
    Mode {
        declared: false,
        binary_params: false,
        results: Results::Text,
        described: Described::Portal,
        max_rows: 0,
        named: false,
        prepared_first: false,
        pipelined: false,
    },
    // tokio-postgres.
    Mode {
        declared: false,
        binary_params: true,
        results: Results::Binary,
        described: Described::Statement,
        max_rows: 0,
        named: true,
        prepared_first: true,
        pipelined: false,
    },
    // JDBC with a fetch size.
    Mode {
        declared: true,
        binary_params: false,
        results: Results::Unsaid,
        described: Described::Portal,
        max_rows: 2,
        named: true,
        prepared_first: false,
        pipelined: false,
    },
    // libpq in pipeline mode, with results taken on trust.
    Mode {
        declared: true,
        binary_params: false,
        results: Results::Text,
        described: Described::Nothing,
        max_rows: 0,
        named: true,
        prepared_first: false,
        pipelined: true,
    },
];

/// Other modes, drawn from all of them so that all come up over many cases.
pub(crate) fn drawn(case: usize, count: usize) -> Vec<Mode> {
    let mut state = (case as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut draw = |among: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) % among
    };
    (0..count)
        .map(|_| Mode {
            declared: draw(2) == 0,
            binary_params: draw(2) == 0,
            results: [
                Results::Unsaid,
                Results::Text,
                Results::Binary,
                Results::OnePerColumn,
            ][draw(4) as usize],
            described: [
                Described::Nothing,
                Described::Statement,
                Described::Portal,
                Described::Both,
            ][draw(4) as usize],
            max_rows: [0, 0, 1, 3][draw(4) as usize],
            named: draw(2) == 0,
            prepared_first: draw(2) == 0,
            pipelined: draw(2) == 0,
        })
        .collect()
}

impl Mode {
    /// The messages of one run, as batches that each end with a Sync, within a transaction that is
    /// rolled back after `check` was run.
    pub(crate) fn batches(
        &self,
        sql: &str,
        params: &[Param],
        columns: usize,
        check: &str,
    ) -> Vec<Vec<u8>> {
        let mut parts = vec![utility("begin")];
        parts.extend(self.statement(sql, params, columns));
        parts.push(utility(check));
        parts.push(utility("rollback"));
        if self.pipelined {
            return vec![[parts.concat(), raw::sync()].concat()];
        }
        parts
            .into_iter()
            .map(|part| [part, raw::sync()].concat())
            .collect()
    }

    fn statement(&self, sql: &str, params: &[Param], columns: usize) -> Vec<Vec<u8>> {
        let name = if self.named { "st" } else { "" };
        let portal = if self.named && self.max_rows > 0 {
            "po"
        } else {
            ""
        };
        let types: Vec<u32> = params.iter().map(Param::oid).collect();
        let mut parse = raw::parse(name, sql, if self.declared { &types } else { &[] });
        if matches!(self.described, Described::Statement | Described::Both) {
            parse.extend(raw::describe_statement(name));
        }
        let formats = self.param_formats(params);
        let values: Vec<Option<Vec<u8>>> = params
            .iter()
            .enumerate()
            .map(|(at, param)| param.value(formats.get(at).or(formats.first()) == Some(&1)))
            .collect();
        let values: Vec<Option<&[u8]>> = values.iter().map(Option::as_deref).collect();
        let results: Vec<i16> = match self.results {
            Results::Unsaid => Vec::new(),
            Results::Text => vec![0],
            Results::Binary => vec![1],
            Results::OnePerColumn => (0..columns).map(|at| (at % 2) as i16).collect(),
        };
        let mut run = raw::bind(portal, name, &formats, &values, &results);
        if matches!(self.described, Described::Portal | Described::Both) {
            run.extend(raw::describe_portal(portal));
        }
        run.extend(raw::execute(portal, self.max_rows));
        if self.max_rows > 0 {
            run.extend(raw::execute(portal, self.max_rows));
            run.extend(raw::execute(portal, 0));
        }
        if self.named {
            run.extend(raw::close_statement(name));
        }
        if self.prepared_first {
            vec![parse, run]
        } else {
            vec![[parse, run].concat()]
        }
    }

    fn param_formats(&self, params: &[Param]) -> Vec<i16> {
        match (self.binary_params, params.len()) {
            (false, _) => Vec::new(),
            (true, 0 | 1) => vec![1],
            // One for each, of both kinds.
            (true, len) => (0..len).map(|at| i16::from(at % 3 != 2)).collect(),
        }
    }
}

/// A statement without parameters, in text format, described.
fn utility(sql: &str) -> Vec<u8> {
    [
        raw::parse("", sql, &[]),
        raw::bind("", "", &[], &[], &[]),
        raw::describe_portal(""),
        raw::execute("", 0),
    ]
    .concat()
}
