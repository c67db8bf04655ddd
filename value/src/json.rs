//! The text of json and jsonb values.
//!
//! Owns:       nothing; functions from bytes to bytes.
//! Promises:   [`canonical_jsonb`] gives exactly what PostgreSQL's `jsonb_out`
//!             prints for the same input in a UTF8 database, or an error.
//! Invariants: J1 never `Ok` with other bytes than Postgres'. J2 nesting is kept on
//!             the heap, so depth cannot overflow the stack. J3 output is at most
//!             6 times the input and 8 kB.
//! Fails:      whatever is invalid, unusual or costly is an error: the value stays
//!             inline and Postgres judges it.
//! Proof:      tests/oracle

mod canonical;
mod number;
mod scan;
#[cfg(test)]
mod tests;
mod valid;

use std::borrow::Cow;

pub use crate::text::utf8_chars;

/// Longest input that is looked at, in bytes.
///
/// Binary jsonb is at most 6.5 times its text, and a container in it holds at
/// most 2^28 bytes, so that below this limit no size limit of jsonb is reached.
pub const MAX_JSON_LEN: usize = 32 << 20;

/// Deepest nesting that is accepted.
///
/// PostgreSQL 15.18 takes between 12,000 and 15,000 levels with the default
/// `max_stack_depth`, and more than 500 with the lowest possible one (100 kB).
pub const MAX_JSON_DEPTH: usize = 500;

/// Most elements or keys in one container; Postgres takes 8 million keys.
const MAX_CONTAINER_LEN: u32 = 4 << 20;

/// Why a text was not brought into canonical form.
///
/// It does not follow that Postgres refuses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotCanonical {
    /// Not valid UTF-8.
    #[error("not valid utf-8")]
    NotUtf8,
    /// Not strict JSON, or a string that jsonb cannot hold (`\u0000`, half a
    /// surrogate pair).
    #[error("not json at byte {offset}")]
    Syntax {
        /// Bytes from the start of the input.
        offset: usize,
    },
    /// A number with very many digits or a very large exponent.
    #[error("number at byte {offset} is too long or too large")]
    LargeNumber {
        /// Bytes from the start of the input.
        offset: usize,
    },
    /// Nested deeper than [`MAX_JSON_DEPTH`].
    #[error("nested too deep at byte {offset}")]
    TooDeep {
        /// Bytes from the start of the input.
        offset: usize,
    },
    /// Longer than [`MAX_JSON_LEN`], or too many elements in one container.
    #[error("too long")]
    TooLong,
    /// Sorting keys would copy the text too often, or numbers make it too long.
    #[error("too costly to sort or expand")]
    TooCostly,
}

/// Returns the text that `jsonb_out` prints for `input::jsonb`.
///
/// Keys are sorted by length and bytes and the last of equal keys is kept,
/// numbers are printed as `numeric` prints them, strings as `escape_json`
/// prints them.
///
/// # Errors
/// [`NotCanonical`] when the result is not certain; see the module.
pub fn canonical_jsonb(input: &[u8]) -> Result<Vec<u8>, NotCanonical> {
    canonical_jsonb_cow(input).map(Cow::into_owned)
}

/// As [`canonical_jsonb`], borrowing the input when it is canonical already.
///
/// # Errors
/// As [`canonical_jsonb`].
pub fn canonical_jsonb_cow(input: &[u8]) -> Result<Cow<'_, [u8]>, NotCanonical> {
    if input.len() > MAX_JSON_LEN {
        return Err(NotCanonical::TooLong);
    }
    if std::str::from_utf8(input).is_err() {
        return Err(NotCanonical::NotUtf8);
    }
    canonical::run(input)
}

/// Whether Postgres' `json_in` accepts `input` for certain.
///
/// `false` does not mean that it refuses it. The type json keeps the text as it
/// came, `\u0000` and halves of surrogate pairs included.
pub fn valid_json(input: &[u8]) -> bool {
    input.len() <= MAX_JSON_LEN
        && std::str::from_utf8(input).is_ok()
        && valid::check(input).is_some()
}
