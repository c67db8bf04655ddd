//! What moving a column in or out would do, said before it is done.

use std::fmt;

use crate::target::Target;

/// Which way a column moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From its plain type to the toastrack type.
    Offload,
    /// Back to its plain type.
    Restore,
}

/// The statements that move a column, and what has to be known before they run. Its `Display` is the text
/// for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnPlan {
    /// Which way.
    pub direction: Direction,
    /// The column as it was asked for.
    pub target: Target,
    /// What runs, in one transaction, in this order.
    pub statements: Vec<String>,
    /// What takes time or changes in ways that are no harm.
    pub notices: Vec<String>,
    /// What would see references instead of values afterwards: it has to be accepted.
    pub differences: Vec<String>,
    /// What stands in the way: nothing is done while there is one.
    pub refusals: Vec<String>,
    /// The table and its partitions or children, by OID.
    pub(crate) relations: Vec<u32>,
}

impl ColumnPlan {
    /// Whether nothing stands in the way.
    pub fn is_possible(&self) -> bool {
        self.refusals.is_empty()
    }
}

impl fmt::Display for ColumnPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.direction {
            Direction::Offload => "offload",
            Direction::Restore => "restore",
        };
        writeln!(f, "{what} {}", self.target)?;
        section(f, "cannot, because", &self.refusals)?;
        section(
            f,
            "will see references instead of values",
            &self.differences,
        )?;
        section(f, "note", &self.notices)?;
        section(f, "runs in one transaction", &self.statements)
    }
}

fn section(f: &mut fmt::Formatter<'_>, title: &str, lines: &[String]) -> fmt::Result {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(f, "  {title}:")?;
    for line in lines {
        writeln!(f, "    {line}")?;
    }
    Ok(())
}
