//! How long a film may be.

use serde_json::{Value, json};

/// The whole seconds that a family's films may last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lengths {
    /// One of these.
    Listed {
        /// The lengths, shortest first.
        values: &'static [i64],
        /// Of a request that names none.
        default: i64,
    },
    /// Any from `min` to `max`.
    Between {
        /// The shortest.
        min: i64,
        /// The longest.
        max: i64,
        /// Of a request that names none.
        default: i64,
    },
}

impl Lengths {
    /// Of a request that names none.
    pub fn default(&self) -> i64 {
        match self {
            Self::Listed { default, .. } | Self::Between { default, .. } => *default,
        }
    }

    /// Whether a film may last that long.
    pub fn allow(&self, seconds: i64) -> bool {
        match self {
            Self::Listed { values, .. } => values.contains(&seconds),
            Self::Between { min, max, .. } => (*min..=*max).contains(&seconds),
        }
    }

    /// The lengths in words: `8 or 12`, `2 to 12`.
    pub fn words(&self) -> String {
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

    /// The JSON Schema of a field that holds a length as a number, or with `text` as a string too.
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
