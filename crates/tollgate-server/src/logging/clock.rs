//! Timestamps of log lines.

use std::io::{self, Write as _};

use jiff::Timestamp;

/// Writes timestamps; formats each second only once.
#[derive(Default)]
pub(super) struct Clock {
    second: i64,
    /// The formatted second: `2026-11-21T19:45:00.`
    text: String,
}

impl Clock {
    /// Writes `now` to the microsecond, in UTC.
    pub(super) fn write(&mut self, now: Timestamp, out: &mut Vec<u8>) -> io::Result<()> {
        let (second, nanos) = (now.as_second(), now.subsec_nanosecond());
        if self.text.is_empty() || self.second != second {
            let formatted = format!("{:.1}", Timestamp::from_second(second).unwrap_or(now));
            self.text = formatted.trim_end_matches("0Z").to_owned();
            self.second = second;
        }
        out.extend(self.text.as_bytes());
        write!(out, "{:06}Z", nanos / 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_written_as_in_full() {
        let mut clock = Clock::default();
        for nanos in [
            1_795_289_672_862_170_999_i128,
            1_795_289_672_000_000_000,
            1_795_289_673_000_005_000,
            1_795_289_680_999_999_999,
        ] {
            let now = Timestamp::from_nanosecond(nanos).unwrap();
            let mut out = Vec::new();
            clock.write(now, &mut out).unwrap();
            let truncated = Timestamp::from_microsecond(now.as_microsecond()).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), format!("{truncated:.6}"));
        }
    }
}
