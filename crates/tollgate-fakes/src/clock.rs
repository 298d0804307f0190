//! The time as providers write it.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// Milliseconds since 1970.
pub(crate) fn milliseconds(time: SystemTime) -> u64 {
    // Nothing here is older than 1970.
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis() as u64
}

/// A number of milliseconds since 1970 as a text, in a format of `strftime`.
pub(crate) fn formatted(milliseconds: u64, format: &str) -> String {
    let time = Timestamp::from_millisecond(milliseconds as i64).unwrap_or_default();
    time.strftime(format).to_string()
}
