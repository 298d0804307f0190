//! Computes the days at which partitions begin.

use tollgate_core::Millis;
use tollgate_core::clock::DAY;

/// The beginning of the day that contains `at`; the beginning of the next day unless `at` is the beginning of a day.
pub(super) fn next_day(at: Millis) -> Millis {
    (at + DAY - 1).div_euclid(DAY) * DAY
}

/// The day that begins at `at`, in the form that names of partitions have.
pub(super) fn day_name(at: Millis) -> String {
    match jiff::Timestamp::from_millisecond(at) {
        Ok(time) => time.strftime("%Y%m%d").to_string(),
        Err(_) => at.to_string(),
    }
}
