//! Amounts and times as JSON values of the admin API and the trail.

use serde_json::Value;
use tollgate_core::{Amount, Millis};

/// An amount as a decimal string.
pub fn amount_json(amount: Amount) -> Value {
    Value::String(amount.to_string())
}

/// A time as in RFC 3339: in UTC, with milliseconds.
pub fn time_json(at: Millis) -> Value {
    match jiff::Timestamp::from_millisecond(at) {
        Ok(time) => Value::String(format!("{time:.3}")),
        Err(_) => Value::from(at),
    }
}

/// [`time_json`]; null if there is none.
pub(super) fn opt_time_json(at: Option<Millis>) -> Value {
    at.map_or(Value::Null, time_json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_milliseconds_and_amounts_are_decimal_strings() {
        assert_eq!(time_json(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(time_json(86_400_120), "1970-01-02T00:00:00.120Z");
        assert_eq!(amount_json("12.50".parse().unwrap()), "12.5");
    }
}
