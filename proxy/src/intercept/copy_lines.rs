//! The line numbers of a COPY FROM STDIN as the client counts them.
//!
//! The server counts the line ends within quotes as lines. Those of a CSV value that became a reference
//! are no longer there, so that "line 7" in an error's context would be another line of the client's.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Lines that the server does not get to see. It is asked only for what the server worked on last, so a
/// bounded number of rows is remembered one by one.
#[derive(Default)]
pub(crate) struct CopyLines {
    rows: VecDeque<ShortRow>,
    /// Lines of rows that are no longer remembered.
    before: u64,
}

/// A row that has fewer lines than the client sent.
struct ShortRow {
    /// The client's number of its last line.
    line: u64,
    lost: u64,
    /// The row went as the client sent it after all.
    restored: Arc<AtomicBool>,
}

const REMEMBERED: usize = 32 * 1024;

impl CopyLines {
    /// The row that ended at the client's `line` goes with `lost` lines fewer, unless `restored` is set.
    pub(crate) fn push(&mut self, line: u64, lost: u64, restored: &Arc<AtomicBool>) {
        if self.rows.len() == REMEMBERED
            && let Some(oldest) = self.rows.pop_front()
        {
            self.before += oldest.really_lost();
        }
        self.rows.push_back(ShortRow {
            line,
            lost,
            restored: Arc::clone(restored),
        });
    }

    /// The client's number of the line that is the server's `line`.
    pub(crate) fn of_client(&self, line: u64) -> u64 {
        let mut lost = self.before;
        for row in &self.rows {
            let with_row = lost + row.really_lost();
            if row.line.saturating_sub(with_row) > line {
                break;
            }
            lost = with_row;
        }
        line + lost
    }

    /// The lines of an error's context, `table` being the target's bare name; None when none changes.
    pub(crate) fn context_of_client(&self, context: &[u8], table: &str) -> Option<Vec<u8>> {
        if self.rows.is_empty() && self.before == 0 {
            return None;
        }
        let start = format!("COPY {table}, line ");
        let mut changed = false;
        let lines = context.split(|byte| *byte == b'\n').map(|line| {
            let Some(rest) = line.strip_prefix(start.as_bytes()) else {
                return line.to_vec();
            };
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let number = std::str::from_utf8(&rest[..digits]).map(str::parse);
            let Ok(Ok(number)) = number else {
                return line.to_vec();
            };
            changed = true;
            let number = self.of_client(number).to_string();
            [start.as_bytes(), number.as_bytes(), &rest[digits..]].concat()
        });
        let lines: Vec<Vec<u8>> = lines.collect();
        changed.then(|| lines.join(&b'\n'))
    }
}

impl ShortRow {
    fn really_lost(&self) -> u64 {
        if self.restored.load(Ordering::Relaxed) {
            0
        } else {
            self.lost
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of 1, 3 and 1 lines, then one of 2; the second and the last lose what they have more.
    #[test]
    fn counts_as_the_client_does() {
        let mut lines = CopyLines::default();
        let (kept, restored) = (Arc::default(), Arc::new(AtomicBool::new(true)));
        lines.push(4, 2, &kept);
        lines.push(6, 5, &restored);
        lines.push(8, 1, &kept);
        let of_client: Vec<u64> = (1..=7).map(|line| lines.of_client(line)).collect();
        assert_eq!(of_client, [1, 4, 5, 6, 8, 9, 10]);
        let context = b"PL/pgSQL function f() line 3 at RAISE\nCOPY docs, line 3, column id: \"x\"";
        let changed = lines.context_of_client(context, "docs").expect("changes");
        assert_eq!(
            changed,
            b"PL/pgSQL function f() line 3 at RAISE\nCOPY docs, line 5, column id: \"x\""
        );
        assert_eq!(lines.context_of_client(context, "other"), None);
    }

    /// What is forgotten still counts.
    #[test]
    fn remembers_a_bounded_number() {
        let mut lines = CopyLines::default();
        let kept = Arc::default();
        for row in 1..=(REMEMBERED as u64 + 10) {
            lines.push(row * 2, 1, &kept);
        }
        assert_eq!(lines.rows.len(), REMEMBERED);
        assert_eq!(lines.of_client(REMEMBERED as u64), 2 * REMEMBERED as u64);
    }
}
