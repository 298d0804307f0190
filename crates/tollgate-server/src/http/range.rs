//! The `Range` header of a request for a file (RFC 9110, 14.2).
//!
//! Own code: the crate `http-range-header` returns a list of ranges, and mapping it to the three results takes as many lines.

/// A part of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum FilePart {
    /// The complete file.
    All,
    /// Both ends inclusive.
    Bytes {
        /// The first byte, from 0.
        first: u64,
        /// The last byte, below the file's length.
        last: u64,
    },
    /// The range has no byte of the file: 416.
    OutOfRange,
}

/// Parses the `Range` of a request for a file of `len` bytes. If it is invalid, or has several ranges, the complete file is returned (RFC 9110,
/// 14.2).
pub fn parse_range(range: &str, len: u64) -> FilePart {
    let Some((unit, range)) = range.split_once('=') else {
        return FilePart::All;
    };
    let Some((first, last)) = range.trim().split_once('-') else {
        return FilePart::All;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return FilePart::All;
    }
    let end = len.saturating_sub(1);
    match (parse_position(first), parse_position(last)) {
        (Some(first), Some(last)) if first > last => FilePart::All,
        (Some(first), _) if first >= len && is_range_end(last) => FilePart::OutOfRange,
        (Some(first), Some(last)) => FilePart::Bytes {
            first,
            last: last.min(end),
        },
        (Some(first), None) if last.is_empty() => FilePart::Bytes { first, last: end },
        (None, Some(count)) if first.is_empty() => match count.min(len) {
            0 => FilePart::OutOfRange,
            count => FilePart::Bytes {
                first: len - count,
                last: end,
            },
        },
        _ => FilePart::All,
    }
}

fn is_range_end(text: &str) -> bool {
    text.is_empty() || parse_position(text).is_some()
}

/// Parses a number that consists of digits only; a number that is too large becomes the largest.
fn parse_position(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_parsed_as_in_rfc_9110() {
        let bytes = |first, last| FilePart::Bytes { first, last };
        for (range, part) in [
            ("bytes=0-0", bytes(0, 0)),
            ("bytes=2-5", bytes(2, 5)),
            ("Bytes = 2-5", bytes(2, 5)),
            ("bytes=2-", bytes(2, 9)),
            ("bytes=2-99999999999999999999999", bytes(2, 9)),
            ("bytes=-3", bytes(7, 9)),
            ("bytes=-30", bytes(0, 9)),
            ("bytes=9-9", bytes(9, 9)),
            ("bytes=10-", FilePart::OutOfRange),
            ("bytes=10-20", FilePart::OutOfRange),
            ("bytes=99999999999999999999999-", FilePart::OutOfRange),
            ("bytes=-0", FilePart::OutOfRange),
            ("bytes=5-2", FilePart::All),
            ("bytes=0-1,3-4", FilePart::All),
            ("bytes=-", FilePart::All),
            ("bytes=a-b", FilePart::All),
            ("bytes=+1-2", FilePart::All),
            ("bytes=20-x", FilePart::All),
            ("bytes", FilePart::All),
            ("lines=1-2", FilePart::All),
            ("", FilePart::All),
        ] {
            assert_eq!(parse_range(range, 10), part, "{range}");
        }
        assert_eq!(parse_range("bytes=0-", 0), FilePart::OutOfRange);
        assert_eq!(parse_range("bytes=-1", 0), FilePart::OutOfRange);
    }
}
