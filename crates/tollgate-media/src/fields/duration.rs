//! [`Durations`]: the lengths in seconds that a family's videos may have.

use serde_json::{Value, json};

/// The durations that a family's videos may have, in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durations {
    /// One of these.
    Listed {
        /// The durations, shortest first.
        values: &'static [i64],
        /// The duration if the request sets none.
        default: i64,
    },
    /// Any from `min` to `max`.
    Between {
        /// The shortest.
        min: i64,
        /// The longest.
        max: i64,
        /// The duration if the request sets none.
        default: i64,
    },
}

impl Durations {
    /// The duration if the request sets none.
    pub fn default(&self) -> i64 {
        match self {
            Self::Listed { default, .. } | Self::Between { default, .. } => *default,
        }
    }

    /// Whether `seconds` is an allowed duration.
    pub fn contains(&self, seconds: i64) -> bool {
        match self {
            Self::Listed { values, .. } => values.contains(&seconds),
            Self::Between { min, max, .. } => (*min..=*max).contains(&seconds),
        }
    }

    /// The durations as text: `8 or 12`, `2 to 12`.
    pub fn describe(&self) -> String {
        match self {
            Self::Between { min, max, .. } => format!("{min} to {max}"),
            Self::Listed { values, .. } => {
                let all: Vec<String> = values.iter().map(i64::to_string).collect();
                match all.split_last() {
                    Some((last, rest)) if !rest.is_empty() => {
                        format!("{} or {last}", rest.join(", "))
                    }
                    _ => all.join(""),
                }
            }
        }
    }

    /// The JSON Schema of a duration field: an integer; with `text`, a string too.
    pub(crate) fn schema(&self, text: bool) -> Value {
        let number = match self {
            Self::Listed { values, .. } => json!({ "type": "integer", "enum": values }),
            Self::Between { min, max, .. } => {
                json!({ "type": "integer", "minimum": min, "maximum": max })
            }
        };
        if !text {
            return number;
        }
        let string = match self {
            Self::Listed { values, .. } => {
                let all: Vec<String> = values.iter().map(i64::to_string).collect();
                json!({ "type": "string", "enum": all })
            }
            Self::Between { .. } => json!({ "type": "string", "pattern": "^[1-9][0-9]?$" }),
        };
        json!({ "anyOf": [string, number] })
    }
}
