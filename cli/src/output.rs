//! What commands print on standard output, and what they ask.

use std::fmt::Display;
use std::io::{IsTerminal, Write};

use crate::error::CommandError;

/// Prints a line. A reader that has gone away (`toastrack print-config | head`) is
/// no failure of the command.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Asks whether to go on. Where nobody is at a terminal to answer, it does.
///
/// # Errors
/// `Failed` when the answer cannot be read.
pub(crate) fn confirm() -> Result<bool, CommandError> {
    if !std::io::stdin().is_terminal() {
        return Ok(true);
    }
    eprint!("go on? [y/N] ");
    let mut answer = String::new();
    std::io::stderr()
        .flush()
        .and_then(|()| std::io::stdin().read_line(&mut answer))
        .map_err(CommandError::failed)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// A size for people: `12.3 MiB`.
pub(crate) fn readable_size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit == "B" {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_readable() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.5 KiB"),
            (12 << 20, "12.0 MiB"),
            (3 << 40, "3.0 TiB"),
        ] {
            assert_eq!(readable_size(bytes), text);
        }
    }
}
