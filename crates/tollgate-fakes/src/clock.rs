//! Formats times as providers write them.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// Milliseconds since 1970.
pub(crate) fn milliseconds(time: SystemTime) -> u64 {
    // The fakes use no time before 1970.
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis() as u64
}

/// Formats a number of milliseconds since 1970 with a `strftime` format.
pub(crate) fn formatted(milliseconds: u64, format: &str) -> String {
    let time = Timestamp::from_millisecond(milliseconds as i64).unwrap_or_default();
    time.strftime(format).to_string()
}
