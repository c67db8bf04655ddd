//! Who may log in: one user with one secret.
//!
//! SCRAM-SHA-256 was chosen over a password in clear text or md5: the secret never crosses the
//! socket, the client checks that the server knows it too, so a process that took the port first
//! learns nothing, and what is compared here is a fresh hash for each attempt, so the time of the
//! comparison says nothing about the secret. Every libpq since 10 speaks it.

use std::fmt;

use async_trait::async_trait;
use pgwire::api::auth::sasl::scram::{SCRAM_ITERATIONS, ScramSecret, gen_salted_password};
use pgwire::api::auth::{AuthSource, LoginInfo, Password};
use pgwire::error::{PgWireError, PgWireResult};

/// The user the server logs in as.
pub const USER: &str = "toastrack_resolver";

/// Fewest characters of a secret: 16 characters of hex are 64 bits.
const MIN_LEN: usize = 16;
/// Most characters of a secret.
const MAX_LEN: usize = 512;
const SALT_LEN: usize = 16;

/// The password of [`USER`]. Prints as `***`.
#[derive(Clone)]
pub struct Secret(Box<str>);

impl Secret {
    /// Takes a secret as it stands in its file, without the white space around it.
    ///
    /// # Errors
    /// When it is shorter than 16 or longer than 512 characters, or has characters that would need
    /// quoting in a connection string.
    pub fn new(text: &str) -> Result<Secret, SecretError> {
        let text = text.trim();
        if text.len() < MIN_LEN {
            return Err(SecretError::TooShort { len: text.len() });
        }
        if text.len() > MAX_LEN {
            return Err(SecretError::TooLong { len: text.len() });
        }
        let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\'' && byte != b'\\';
        if !text.bytes().all(plain) {
            return Err(SecretError::NeedsQuoting);
        }
        Ok(Secret(text.into()))
    }

    /// The characters, for whoever writes the server's connection string.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// Why a text cannot be the resolver's secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// Too easy to guess.
    #[error("the resolver secret has {len} characters; it needs at least {MIN_LEN}")]
    TooShort {
        /// Characters found.
        len: usize,
    },
    /// Longer than a log-in message may be.
    #[error("the resolver secret has {len} characters; it may have at most {MAX_LEN}")]
    TooLong {
        /// Characters found.
        len: usize,
    },
    /// It goes into a connection string unquoted.
    #[error("the resolver secret may only have visible ASCII characters other than ' and \\")]
    NeedsQuoting,
}

/// What SCRAM needs to know of the secret; the secret itself is not kept.
pub(crate) struct Credentials {
    salt: [u8; SALT_LEN],
    stored_key: Vec<u8>,
    server_key: Vec<u8>,
    /// Stands in for the keys of any other user, so that both fail alike.
    decoy: [u8; 32],
}

impl Credentials {
    pub(crate) fn new(secret: &Secret) -> std::io::Result<Credentials> {
        let mut salt = [0u8; SALT_LEN];
        let mut decoy = [0u8; 32];
        getrandom::fill(&mut salt)?;
        getrandom::fill(&mut decoy)?;
        let salted = gen_salted_password(secret.expose(), &salt, SCRAM_ITERATIONS);
        let verifier =
            ScramSecret::verifier_from_salted_password(salt.to_vec(), salted, SCRAM_ITERATIONS);
        match verifier {
            ScramSecret::Verifier {
                stored_key,
                server_key,
                ..
            } => Ok(Credentials {
                salt,
                stored_key,
                server_key,
                decoy,
            }),
            ScramSecret::SaltedPassword { .. } => Err(std::io::Error::other(
                "the SCRAM verifier came back as a password",
            )),
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(***)")
    }
}

#[async_trait]
impl AuthSource for Credentials {
    /// Only SCRAM is offered, and it asks for [`Credentials::get_scram_secret`].
    async fn get_password(&self, login: &LoginInfo) -> PgWireResult<Password> {
        let user = login.user().unwrap_or_default().to_owned();
        Err(PgWireError::InvalidPassword(user))
    }

    async fn get_scram_secret(&self, login: &LoginInfo) -> PgWireResult<(ScramSecret, Option<()>)> {
        let (stored_key, server_key) = match login.user() == Some(USER) {
            true => (self.stored_key.clone(), self.server_key.clone()),
            false => (self.decoy.to_vec(), self.decoy.to_vec()),
        };
        let verifier = ScramSecret::Verifier {
            salt: self.salt.to_vec(),
            iterations: SCRAM_ITERATIONS,
            stored_key,
            server_key,
        };
        Ok((verifier, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves which secrets are taken, and that one never prints.
    #[test]
    fn secrets_are_checked_and_hidden() {
        let secret = Secret::new(" 0123456789abcdef\n").unwrap();
        assert_eq!(secret.expose(), "0123456789abcdef");
        assert_eq!(format!("{secret:?}"), "Secret(***)");
        let credentials = Credentials::new(&secret).unwrap();
        assert_eq!(format!("{credentials:?}"), "Credentials(***)");
        assert_eq!(
            Secret::new("short").unwrap_err(),
            SecretError::TooShort { len: 5 }
        );
        assert_eq!(
            Secret::new(&"x".repeat(513)).unwrap_err(),
            SecretError::TooLong { len: 513 }
        );
        for bad in [
            "0123456789abcde'f",
            "0123456789abc\\def",
            "0123456789 abcdef",
        ] {
            assert_eq!(Secret::new(bad).unwrap_err(), SecretError::NeedsQuoting);
        }
    }
}
