//! The bearer token.

use std::fmt;

use subtle::ConstantTimeEq;

/// Fewest characters a token may have: 16 characters of hex are 64 bits.
const MIN_LEN: usize = 16;
/// Most characters a token may have, so that it fits the request head with room to spare.
const MAX_LEN: usize = 512;

/// The secret a client shows as `Authorization: Bearer <token>`. Prints as `***`.
#[derive(Clone)]
pub struct Token(Box<[u8]>);

impl Token {
    /// Takes a token as it stands in its file, without the white space around it.
    ///
    /// # Errors
    /// When it is shorter than 16 or longer than 512 characters, or has characters that an HTTP
    /// header cannot carry.
    pub fn new(text: &str) -> Result<Token, TokenError> {
        let text = text.trim();
        if text.len() < MIN_LEN {
            return Err(TokenError::TooShort { len: text.len() });
        }
        if text.len() > MAX_LEN {
            return Err(TokenError::TooLong { len: text.len() });
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::NotVisibleAscii);
        }
        Ok(Token(text.as_bytes().into()))
    }

    /// Whether `shown` is this token; takes the same time wherever the two differ.
    pub(crate) fn matches(&self, shown: &[u8]) -> bool {
        self.0.ct_eq(shown).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

/// Why a text cannot be the admin token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Too easy to guess.
    #[error("the admin token has {len} characters; it needs at least {MIN_LEN}")]
    TooShort {
        /// Characters found.
        len: usize,
    },
    /// Would not fit a request head.
    #[error("the admin token has {len} characters; it may have at most {MAX_LEN}")]
    TooLong {
        /// Characters found.
        len: usize,
    },
    /// A header cannot carry it.
    #[error("the admin token may only have visible ASCII characters")]
    NotVisibleAscii,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which tokens are taken, and that one never prints.
    #[test]
    fn tokens_are_checked_and_hidden() {
        let token = Token::new("  0123456789abcdef\n").unwrap();
        assert!(token.matches(b"0123456789abcdef"));
        assert!(!token.matches(b"0123456789abcdeg"));
        assert!(!token.matches(b"0123456789abcde"));
        assert!(!token.matches(b""));
        assert_eq!(format!("{token:?}"), "Token(***)");
        assert_eq!(
            Token::new("short").unwrap_err(),
            TokenError::TooShort { len: 5 }
        );
        assert_eq!(
            Token::new(&"x".repeat(513)).unwrap_err(),
            TokenError::TooLong { len: 513 }
        );
        assert_eq!(
            Token::new("0123456789 abcdef").unwrap_err(),
            TokenError::NotVisibleAscii
        );
    }
}
