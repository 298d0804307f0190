//! The ids of a span and its trace, and their text form (<https://www.w3.org/TR/trace-context/>).

use std::fmt;

use tollgate_core::id::hex;

/// The trace and the span that are the parents of further spans. Exists only for sampled traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanContext {
    /// The id of the trace.
    pub trace_id: [u8; 16],
    /// The id of the span.
    pub span_id: [u8; 8],
}

impl SpanContext {
    /// Parses a `traceparent`; also returns whether its trace is sampled. `None` if it is malformed.
    pub fn parse(text: &str) -> Option<(Self, bool)> {
        let version = text.get(..2)?;
        // Later versions of the format may have more fields.
        let is_complete =
            text.len() == 55 || (version != "00" && text.as_bytes().get(55) == Some(&b'-'));
        let parts = [text.get(2..3)?, text.get(35..36)?, text.get(52..53)?];
        if !is_complete || version == "ff" || parts != ["-"; 3] {
            return None;
        }
        let [_] = parse_hex::<1>(version)?;
        let context = Self {
            trace_id: parse_hex(text.get(3..35)?)?,
            span_id: parse_hex(text.get(36..52)?)?,
        };
        let [flags] = parse_hex::<1>(text.get(53..55)?)?;
        let is_valid = context.trace_id != [0; 16] && context.span_id != [0; 8];
        is_valid.then_some((context, flags & 1 == 1))
    }

    /// The trace's id as 32 lower-case hexadecimal digits.
    pub fn trace_hex(&self) -> String {
        hex(&self.trace_id)
    }

    /// The span's id as 16 lower-case hexadecimal digits.
    pub fn span_hex(&self) -> String {
        hex(&self.span_id)
    }
}

impl fmt::Display for SpanContext {
    /// Writes a `traceparent` of a sampled trace.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-01", self.trace_hex(), self.span_hex())
    }
}

/// Parses `2 * N` lower-case hexadecimal digits.
fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let is_hex = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 2 * N || !text.bytes().all(is_hex) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traceparents_are_read_as_the_recommendation_requires() {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
        for (text, expected) in [
            (format!("00-{trace}-{span}-01"), Some(true)),
            (format!("00-{trace}-{span}-00"), Some(false)),
            (format!("00-{trace}-{span}-03"), Some(true)),
            (format!("cc-{trace}-{span}-01-what-comes-later"), Some(true)),
            (format!("00-{trace}-{span}-01-more"), None),
            (format!("cc-{trace}-{span}-01.more"), None),
            (format!("ff-{trace}-{span}-01"), None),
            (format!("00-{}-{span}-01", trace.to_uppercase()), None),
            (format!("00-{}-{span}-01", "0".repeat(32)), None),
            (format!("00-{trace}-{}-01", "0".repeat(16)), None),
            (format!("00-{trace}-{span}"), None),
            (format!("00_{trace}-{span}-01"), None),
            (format!("00-{trace}-{span}-0ü"), None),
            (String::new(), None),
        ] {
            let parsed = SpanContext::parse(&text);
            assert_eq!(parsed.map(|(_, is_sampled)| is_sampled), expected, "{text}");
            if let Some((context, true)) = parsed {
                assert_eq!(context.to_string(), format!("00-{trace}-{span}-01"));
            }
        }
    }
}
