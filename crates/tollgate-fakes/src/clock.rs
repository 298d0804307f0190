//! The time as providers write it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
pub(crate) fn seconds(time: SystemTime) -> u64 {
    since(time).as_secs()
}

fn since(time: SystemTime) -> Duration {
    // Nothing here was made before 1970.
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}
