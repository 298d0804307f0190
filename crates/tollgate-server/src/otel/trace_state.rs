//! `tracestate`: data that tracing systems send along with a trace (<https://www.w3.org/TR/trace-context/#tracestate-header>). The gateway adds
//! nothing to it.

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderName};

const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The maximum number of list members: longer lists are not forwarded.
const MAX_MEMBERS: usize = 32;
/// Length in bytes up to which a list is forwarded unchanged: the standard requires at least this.
const MAX_LENGTH: usize = 512;
/// Members longer than this, in bytes, are removed first if a list must be shortened.
const LONG_MEMBER: usize = 128;
/// The longest key and the longest value, in bytes.
const MAX_PART: usize = 256;

/// A valid list, of 1 to 512 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceState(Arc<str>);

impl TraceState {
    /// The list of a request; several headers with that name are joined. `None` if there is none, or it is invalid.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(TRACESTATE).iter();
        let first = values.next()?.to_str().ok()?;
        let Some(second) = values.next() else {
            return Self::parse(first);
        };
        let mut list = first.to_owned();
        for value in [second].into_iter().chain(values) {
            list.extend([",", value.to_str().ok()?]);
        }
        Self::parse(&list)
    }

    /// Parses a list. If it is too long, long members are removed first, then members at its end.
    fn parse(text: &str) -> Option<Self> {
        let text = trim(text);
        let members = || {
            text.split(',')
                .map(trim)
                .filter(|member| !member.is_empty())
        };
        let count = members().count();
        if !(1..=MAX_MEMBERS).contains(&count) || !members().all(is_member) {
            return None;
        }
        if text.len() <= MAX_LENGTH {
            return Some(Self(text.into()));
        }
        let mut kept: Vec<&str> = members().collect();
        let length = |kept: &[&str]| kept.iter().map(|member| member.len() + 1).sum::<usize>();
        // There is one comma fewer than there are members.
        while length(&kept) > MAX_LENGTH + 1 {
            let long = kept.iter().rposition(|member| member.len() > LONG_MEMBER);
            kept.remove(long.unwrap_or(kept.len() - 1));
        }
        (!kept.is_empty()).then(|| Self(kept.join(",").into()))
    }

    /// The list as a header value.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TraceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// Whether `text`, without blanks around it, is `key=value` of the characters that are allowed.
fn is_member(text: &str) -> bool {
    let Some((key, value)) = text.split_once('=') else {
        return false;
    };
    let is_lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_key = key.bytes().next().is_some_and(is_lower)
        && key.bytes().all(|b| is_lower(b) || b"_-*/@".contains(&b));
    let is_value = |b: u8| matches!(b, b' '..=b'~') && b != b'=';
    let lengths = [key.len(), value.len()];
    is_key && value.bytes().all(is_value) && lengths.iter().all(|l| (1..=MAX_PART).contains(l))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn parse(text: &str) -> Option<String> {
        TraceState::parse(text).map(|state| state.to_string())
    }

    #[test]
    fn valid_lists_are_passed_on_unchanged() {
        let members: Vec<_> = (0..32).map(|at| format!("k{at}=v")).collect();
        for text in [
            "rojo=00f067aa0ba902b7",
            "rojo=1,congo=t61rcWkgMzE",
            "a=1 , \t b=2,,c=3",
            "0tenant@sys-tem_*/=!\"#$%&'()*+-./:;<>?@[]^_`{|}~",
            "a= b c",
            &format!("{}={}", "a".repeat(255), "b".repeat(256)),
            &members.join(","),
        ] {
            assert_eq!(parse(text).as_deref(), Some(text));
        }
        assert_eq!(parse(" a=1\t").as_deref(), Some("a=1"));
    }

    #[test]
    fn lists_that_are_not_valid_are_not_passed_on() {
        let too_many: Vec<_> = (0..33).map(|at| format!("k{at}=v")).collect();
        for text in [
            "",
            ",,",
            "a",
            "a=",
            "=1",
            "a =1",
            "A=1",
            "a.b=1",
            "@a=1",
            "a=1=2",
            "a=1,b",
            "a=\u{7f}",
            "a=ü",
            &format!("{}=1", "a".repeat(257)),
            &format!("a={}", "b".repeat(257)),
            &too_many.join(","),
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_list_that_is_too_long_loses_long_members_first_and_then_the_last() {
        let (long, longer) = ("v".repeat(127), "w".repeat(200));
        let short: Vec<_> = (0..8)
            .map(|at| format!("k{at}={}", "x".repeat(48)))
            .collect();
        let short = short.join(",");
        assert_eq!(
            parse(&format!("a={long},{short},b={longer},z=1")).as_deref(),
            Some(format!("{short},z=1").as_str())
        );
        let many: Vec<_> = (0..12)
            .map(|at| format!("k{at:02}={}", "x".repeat(48)))
            .collect();
        assert_eq!(parse(&many.join(",")), Some(many[..9].join(",")));
    }

    #[test]
    fn several_headers_are_one_list() {
        let mut headers = HeaderMap::new();
        assert_eq!(TraceState::from_headers(&headers), None);
        for value in ["a=1", "b=2,c=3"] {
            headers.append(TRACESTATE, HeaderValue::from_static(value));
        }
        let state = TraceState::from_headers(&headers).unwrap();
        assert_eq!(state.as_str(), "a=1,b=2,c=3");
    }
}
