//! Selects the text format of `/metrics`, Prometheus or OpenMetrics, by what a scraper accepts.

use http::{HeaderMap, HeaderValue, header};

/// A text format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// Prometheus's own format.
    Prometheus,
    /// OpenMetrics 1.0, which supports exemplars.
    OpenMetrics,
}

impl TextFormat {
    /// OpenMetrics if `headers` accept it with at least the same priority as plain text, else Prometheus's format.
    pub fn accepted_by(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::ACCEPT).iter();
        let ranges = values.filter_map(|value| value.to_str().ok());
        let (mut open_metrics, mut plain) = (0.0_f32, 0.0_f32);
        for range in ranges.flat_map(|value| value.split(',')) {
            let media_type = range.split(';').next().unwrap_or_default().trim();
            let parameter = |name: &str| {
                let mut pairs = range.split(';').skip(1).filter_map(|p| p.split_once('='));
                let found = pairs.find(|(key, _)| key.trim().eq_ignore_ascii_case(name));
                found.map(|(_, value)| value.trim().trim_matches('"'))
            };
            let quality = parameter("q").map_or(1.0, |q| q.parse().unwrap_or(0.0));
            let is = |name: &str| media_type.eq_ignore_ascii_case(name);
            if is("application/openmetrics-text") {
                // 0.0.1 was a draft of what is now 1.0.0.
                if matches!(parameter("version"), None | Some("1.0.0")) {
                    open_metrics = open_metrics.max(quality);
                }
            } else if is("text/plain") || is("text/*") || is("*/*") {
                plain = plain.max(quality);
            }
        }
        match open_metrics > 0.0 && open_metrics >= plain {
            true => Self::OpenMetrics,
            false => Self::Prometheus,
        }
    }

    /// The content type of the text.
    pub fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Prometheus => "text/plain; version=0.0.4",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_are_sent_if_the_client_does_not_prefer_the_other_format() {
        for (accept, is_open) in [
            (None, false),
            (Some("*/*"), false),
            (Some("text/plain"), false),
            (Some("application/openmetrics-text"), true),
            (Some("application/openmetrics-text; version=1.0.0"), true),
            (Some("application/openmetrics-text; version=0.0.1"), false),
            (Some("application/openmetrics-text; version=2.0.0"), false),
            (Some("application/openmetrics-text;q=0"), false),
            (
                Some("application/openmetrics-text;q=0.2, text/plain;q=0.5"),
                false,
            ),
            (
                Some("text/plain;q=0.5,Application/OpenMetrics-Text;Version=\"1.0.0\";q=0.5"),
                true,
            ),
            // What Prometheus 2.53 and 3.5 send.
            (
                Some(
                    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,\
                     text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                ),
                true,
            ),
            (
                Some(
                    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                     application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,\
                     text/plain;version=0.0.4;q=0.2,/;q=0.1",
                ),
                true,
            ),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            }
            let expected = match is_open {
                true => TextFormat::OpenMetrics,
                false => TextFormat::Prometheus,
            };
            assert_eq!(TextFormat::accepted_by(&headers), expected, "{accept:?}");
        }
    }
}
