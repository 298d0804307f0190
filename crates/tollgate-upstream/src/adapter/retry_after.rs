//! Parses `retry-after-ms` and `retry-after`: the time to wait before the next request to an upstream.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::RETRY_AFTER;

/// The maximum wait, one day; longer waits are limited to it.
const MAX_WAIT: Duration = Duration::from_secs(86_400);

/// The wait from `retry-after-ms`, or from `retry-after` in seconds or as a date. `None` if there is no valid header.
pub(super) fn parse(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str, unit: f64| {
        let seconds = text.parse::<f64>().ok()? * unit;
        Duration::try_from_secs_f64(seconds).ok()
    };
    let after = text("retry-after-ms")
        .and_then(|ms| number(ms, 0.001))
        .or_else(|| {
            let text = text(RETRY_AFTER.as_str())?;
            number(text, 1.0).or_else(|| {
                let until = httpdate::parse_http_date(text).ok()?;
                Some(until.duration_since(SystemTime::now()).unwrap_or_default())
            })
        })?;
    Some(after.min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn check(name: &'static str, value: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_str(value).unwrap());
        parse(&headers)
    }

    #[test]
    fn seconds_milliseconds_and_dates_are_parsed() {
        assert_eq!(check("retry-after", "17"), Some(Duration::from_secs(17)));
        assert_eq!(
            check("retry-after", " 1.5 "),
            Some(Duration::from_millis(1500))
        );
        assert_eq!(
            check("retry-after-ms", "250"),
            Some(Duration::from_millis(250))
        );
        assert_eq!(check("retry-after", "999999999"), Some(MAX_WAIT));
        let soon = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(60));
        let wait = check("retry-after", &soon).unwrap();
        assert!(wait > Duration::from_secs(50) && wait <= Duration::from_secs(60));
        assert_eq!(
            check("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"),
            Some(Duration::ZERO)
        );
        for nonsense in ["", "-1", "soon", "NaN", "inf", "1e400"] {
            assert_eq!(check("retry-after", nonsense), None, "{nonsense}");
        }
    }
}
