//! [`Secret`]: a string that is never written to output, for provider keys, the admin key and database passwords.

use std::fmt;

use serde::{Deserialize, Deserializer};
use subtle::ConstantTimeEq;

/// A secret string. `Debug` and `Display` write `***`; only [`Secret::expose`] returns the string.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a string that must not be written to output.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The string itself. Must not be logged.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Compares with `other` in constant time.
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
    fn secrets_are_printed_as_asterisks_and_match_only_themselves() {
        let secret = Secret::new("sk-very-secret");
        assert_eq!(format!("{secret} {secret:?}"), "*** ***");
        assert!(secret.matches("sk-very-secret"));
        assert!(!secret.matches("sk-very-secreT"));
        assert!(!secret.matches("sk"));
    }
}
