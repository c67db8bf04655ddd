//! Sizes and durations as people write them: `64 MiB`, `5s`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

const SIZE_UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

const DURATION_UNITS: [(&str, u64); 4] =
    [("ms", 1), ("s", 1_000), ("min", 60_000), ("h", 3_600_000)];

/// A number of bytes, written with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ByteSize(pub(crate) u64);

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<ByteSize, String> {
        let (number, unit) = split(text);
        let expected = || format!("`{text}` is not a size such as \"64 MiB\" or \"2KiB\"");
        let unit = if unit.is_empty() { "B" } else { unit };
        let factor = SIZE_UNITS
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit))
            .map(|(_, factor)| *factor)
            .ok_or_else(expected)?;
        let number: u64 = number.parse().map_err(|_| expected())?;
        number
            .checked_mul(factor)
            .map(ByteSize)
            .ok_or_else(|| format!("`{text}` is too large"))
    }
}

impl fmt::Display for ByteSize {
    /// Exact, in the largest binary unit that divides it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binary = SIZE_UNITS.iter().filter(|(name, _)| name.ends_with("iB"));
        for (name, factor) in binary {
            if self.0 != 0 && self.0.is_multiple_of(*factor) {
                return write!(f, "{} {name}", self.0 / factor);
            }
        }
        write!(f, "{} B", self.0)
    }
}

/// A length of time, written with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span(pub(crate) Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Span, String> {
        let (number, unit) = split(text);
        let expected =
            || format!("`{text}` is not a duration such as \"5s\", \"500ms\" or \"2min\"");
        let factor = DURATION_UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, factor)| *factor)
            .ok_or_else(expected)?;
        let number: u64 = number.parse().map_err(|_| expected())?;
        number
            .checked_mul(factor)
            .map(|milliseconds| Span(Duration::from_millis(milliseconds)))
            .ok_or_else(|| format!("`{text}` is too long"))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = self.0.as_millis();
        for (name, factor) in DURATION_UNITS.iter().rev() {
            let factor = u128::from(*factor);
            if milliseconds != 0 && milliseconds.is_multiple_of(factor) {
                return write!(f, "{}{name}", milliseconds / factor);
            }
        }
        write!(f, "{milliseconds}ms")
    }
}

/// The digits at the start, and what follows behind optional blanks.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every unit is read, and what is printed reads back as the same.
    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("64 MiB", 64 << 20),
            ("2KiB", 2048),
            ("2kib", 2048),
            ("1 GiB", 1 << 30),
            ("100", 100),
            ("5 kB", 5_000),
            ("0", 0),
            ("  7 B ", 7),
        ] {
            let size: ByteSize = text.parse().unwrap();
            assert_eq!(size.0, bytes, "{text}");
            assert_eq!(size.to_string().parse(), Ok(size), "{text}");
        }
        for text in [
            "",
            "MiB",
            "-1 B",
            "1.5 MiB",
            "5 potatoes",
            "99999999999 GiB",
        ] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
        assert_eq!(ByteSize(2048).to_string(), "2 KiB");
        assert_eq!(ByteSize(2049).to_string(), "2049 B");
    }

    /// Every unit is read; a bare number is refused, since its unit would be a guess.
    #[test]
    fn durations() {
        for (text, milliseconds, printed) in [
            ("5s", 5_000, "5s"),
            ("500ms", 500, "500ms"),
            ("2 min", 120_000, "2min"),
            ("90s", 90_000, "90s"),
            ("1h", 3_600_000, "1h"),
            ("0s", 0, "0ms"),
        ] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.0, Duration::from_millis(milliseconds), "{text}");
            assert_eq!(span.to_string(), printed);
        }
        for text in ["", "5", "s", "-5s", "5 years", "99999999999999999999h"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }
}
