//! Is this client the command that the proxy serves?
//!
//! Needed where other processes of the machine can reach the listener as well.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;

/// The user name that goes with a token. Clients have to send one; nobody checks it.
pub(crate) const USER: &str = "proxy";

/// A random password for one run.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A new token of 128 random bits.
    ///
    /// # Panics
    /// If the system has no randomness to give.
    #[must_use]
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the system's random numbers");
        Self(format!("{:032x}", u128::from_be_bytes(bytes)))
    }

    /// The token itself, for the child's environment.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether `password` is the token. Takes the same time wherever they differ.
    pub(crate) fn is(&self, password: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(password).into()
    }

    /// Whether `value` of a `Proxy-Authorization` header has the token.
    pub(crate) fn is_in_header(&self, value: &[u8]) -> bool {
        let Some((scheme, encoded)) = std::str::from_utf8(value).ok().and_then(|value| value.trim().split_once(' '))
        else {
            return false;
        };
        if !scheme.eq_ignore_ascii_case("basic") {
            return false;
        }
        let Ok(decoded) = STANDARD.decode(encoded.trim()) else { return false };
        let colon = decoded.iter().position(|&byte| byte == b':');
        colon.is_some_and(|colon| self.is(&decoded[colon + 1..]))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}
