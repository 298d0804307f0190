//! Settings of the log, and the type of shares of requests.

use std::fmt;

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};

use super::fields::Digits;

/// The log on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// How lines are written.
    pub format: LogFormat,
    /// The share of requests that are logged; requests with a status of 400 or more are always logged.
    pub access_ratio: Ratio,
}

/// How lines of the log are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// Text if stderr is a terminal, else JSON.
    #[default]
    Auto,
    /// One JSON object a line.
    Json,
    /// Text for people.
    Text,
}

impl fmt::Display for LogFormat {
    /// Writes the name that the configuration uses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Json => "json",
            Self::Text => "text",
        })
    }
}

impl Serialize for LogFormat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for LogFormat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut formats = [Self::Auto, Self::Json, Self::Text].into_iter();
        let format = formats.find(|format| format.to_string() == text);
        format.ok_or_else(|| {
            D::Error::custom(format!("is {text:?}, but it takes auto, json or text"))
        })
    }
}

/// A share from 0 to 1, in millionths; 1 by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio(u32);

impl Ratio {
    /// The share 1: everything.
    pub const ALL: Self = Self(1_000_000);

    /// Decides at random, with this probability, whether something belongs to the share.
    pub fn draw(self) -> bool {
        match self {
            Self(0) => false,
            Self::ALL => true,
            Self(millionths) => rand::random_range(0..1_000_000) < millionths,
        }
    }
}

impl Default for Ratio {
    fn default() -> Self {
        Self::ALL
    }
}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.0) / 1e6)
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Digits(text) = Digits::deserialize(deserializer)?;
        let number = text.parse().ok().filter(|n| (0.0..=1.0).contains(n));
        let millionths = number.map(|n: f64| (n * 1e6).round() as u32);
        millionths.map(Self).ok_or_else(|| {
            D::Error::custom(format!(
                "is {text:?}, but it takes a number from 0 to 1, such as 0.01"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_draws_its_share() {
        let drawn = |millionths| (0..10_000).filter(|_| Ratio(millionths).draw()).count();
        assert_eq!((drawn(0), drawn(1_000_000)), (0, 10_000));
        // The bounds are twenty standard deviations from the mean.
        assert!((1_400..=2_600).contains(&drawn(200_000)));
    }
}
