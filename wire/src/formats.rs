//! Arrays of format codes and the rule that reads them.

/// Format code of the textual representation.
pub const FORMAT_TEXT: i16 = 0;
/// Format code of the binary representation.
pub const FORMAT_BINARY: i16 = 1;

/// Format codes as a message carries them: none, one for all, or one for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Formats<'a> {
    codes: &'a [u8],
}

impl<'a> Formats<'a> {
    /// `codes` has an even length.
    pub(crate) fn new(codes: &'a [u8]) -> Self {
        Self { codes }
    }

    /// How many codes the message carries.
    #[must_use]
    #[inline]
    pub fn count(&self) -> usize {
        self.codes.len() / 2
    }

    /// The format of element `i`: text when there are no codes, the one code when there is one,
    /// the code at `i` otherwise. Text, too, for an `i` that has no code of its own.
    #[must_use]
    #[inline]
    pub fn at(&self, i: usize) -> i16 {
        let index = if self.codes.len() == 2 { 0 } else { i };
        match self.codes.get(index * 2..) {
            Some([high, low, ..]) => i16::from_be_bytes([*high, *low]),
            _ => FORMAT_TEXT,
        }
    }

    /// The codes as they stand in the message.
    pub fn codes(&self) -> impl ExactSizeIterator<Item = i16> + use<'a> {
        self.codes
            .chunks_exact(2)
            .map(|code| i16::from_be_bytes([code[0], code[1]]))
    }
}

#[cfg(test)]
mod tests;
