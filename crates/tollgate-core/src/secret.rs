//! A string that does not print: provider keys, the admin key, database passwords.

use std::fmt;

use serde::{Deserialize, Deserializer};
use subtle::ConstantTimeEq;

/// A secret text. `Debug` and `Display` show `***`; only [`Secret::expose`] gives the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text that must not be printed.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. Call it only where the secret is used, never to log it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether `other` is this secret, in a time that does not depend on where they differ.
    pub fn matches(&self, other: &str) -> bool {
        self.0.as_bytes().ct_eq(other.as_bytes()).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_prints() {
        let secret = Secret::new("sk-very-secret");
        assert_eq!(format!("{secret} {secret:?}"), "*** ***");
        assert!(secret.matches("sk-very-secret"));
        assert!(!secret.matches("sk-very-secreT"));
        assert!(!secret.matches("sk"));
    }
}
