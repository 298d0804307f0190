//! The time as providers write it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
pub(crate) fn seconds(time: SystemTime) -> u64 {
    since(time).as_secs()
}

/// Milliseconds since 1970.
pub(crate) fn milliseconds(time: SystemTime) -> u64 {
    since(time).as_millis() as u64
}

/// `2026-01-02T03:04:05.678Z`
pub(crate) fn iso(time: SystemTime) -> String {
    let (date, time) = written(time);
    format!("{date}T{time}Z")
}

/// `2026-01-02 03:04:05.678`
pub(crate) fn plain(time: SystemTime) -> String {
    let (date, time) = written(time);
    format!("{date} {time}")
}

fn since(time: SystemTime) -> Duration {
    // Nothing here was made before 1970.
    time.duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn written(time: SystemTime) -> (String, String) {
    let since = since(time);
    let (days, rest) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    let milliseconds = since.subsec_millis();
    (
        format!("{year:04}-{month:02}-{day:02}"),
        format!("{hour:02}:{minute:02}:{second:02}.{milliseconds:03}"),
    )
}

/// Year, month and day of a number of days since 1970. Years are counted from March, so that the
/// day that some of them have more is their last; 400 of them have always the same length.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + later, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (seconds, written) in [
            (0, "1970-01-01 00:00:00.000"),
            (951_782_400, "2000-02-29 00:00:00.000"),
            (1_772_323_199, "2026-02-28 23:59:59.000"),
            (1_795_132_800, "2026-11-20 00:00:00.000"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(plain(time), written);
            assert_eq!(iso(time), written.replace(' ', "T") + "Z");
        }
    }
}
