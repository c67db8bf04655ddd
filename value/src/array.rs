//! Elements of array values, in text and in binary format.
//!
//! Owns:       nothing; functions from bytes to bytes.
//! Promises:   bytes that belong to no replaced element are kept as they are; a
//!             replaced element is quoted as `array_out` quotes.
//! Invariants: A1 what is iterated covers the whole array or ends in an error.
//! Fails:      [`Malformed`] for what `array_in` or `array_recv` refuse, and for
//!             spellings that `array_out` never prints and `array_in` reads in
//!             surprising ways (escapes outside quotes).
//! Proof:      tests/oracle

mod binary;
mod text;

pub use binary::{BinaryElements, binary_element_oid, binary_elements, replace_binary_elements};
pub use text::{
    TextElement, TextElements, replace_text_elements, text_elements, write_text_element,
};

/// Most dimensions of an array (`MAXDIM`).
const MAX_DIMENSIONS: usize = 6;

/// Bytes that are no array, or none that is taken apart here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed array at byte {offset}")]
pub struct Malformed {
    /// Bytes from the start of the array.
    pub offset: usize,
}

/// Why elements were not replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ArrayError<E> {
    /// Not an array that is taken apart here.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The caller's function failed.
    #[error("{0}")]
    Element(E),
}
