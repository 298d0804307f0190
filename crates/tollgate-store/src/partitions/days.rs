//! Partitions begin with days.

use tollgate_core::Millis;
use tollgate_core::clock::DAY;

/// The beginning of the day `at` is in, or of the next one if it is not a day's beginning.
pub(super) fn next_day(at: Millis) -> Millis {
    (at + DAY - 1).div_euclid(DAY) * DAY
}

/// The day that begins at `at`, as names of partitions have it.
pub(super) fn day_name(at: Millis) -> String {
    match jiff::Timestamp::from_millisecond(at) {
        Ok(time) => time.strftime("%Y%m%d").to_string(),
        Err(_) => at.to_string(),
    }
}
