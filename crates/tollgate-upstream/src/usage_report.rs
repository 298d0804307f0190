//! Reads the pages of a provider's usage API: tokens by model and day.

use http::Uri;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::adapter::{HttpRequest, ProviderClient};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::reported_usage::ReportedUsage;

/// The number of seconds in a day.
pub(crate) const SECONDS_OF_DAY: i64 = 86_400;
/// The number of days of one page; both APIs allow no more.
pub(crate) const DAYS_OF_PAGE: u32 = 31;
/// The maximum number of pages that are read of one report.
const MAX_PAGES: usize = 1_000;

/// Reads every page of a report. `first` is the URL of the first page, `request` adds the key, and `read` reads the content of a bucket.
pub(crate) async fn read_pages(
    http: &ProviderClient,
    first: &str,
    request: impl Fn(HttpRequest) -> Result<HttpRequest, ProviderError>,
    read: impl Fn(&Value) -> Option<Vec<ReportedUsage>>,
) -> Result<Vec<ReportedUsage>, ProviderError> {
    let mut usage = Vec::new();
    let mut url = first.to_owned();
    for _ in 0..MAX_PAGES {
        if url.parse::<Uri>().is_err() {
            return Err(malformed());
        }
        let response = http.send(request(HttpRequest::get(&url))?).await?;
        let page = response.json();
        if !response.status.is_success() {
            let message = page["error"]["message"].as_str().unwrap_or("no message");
            let kind = match response.status.as_u16() {
                401 | 403 => UpstreamErrorKind::KeyRejected,
                _ => UpstreamErrorKind::Unavailable,
            };
            let message = http.redact(&format!("status {}: {message}", response.status.as_u16()));
            return Err(ProviderError::new(kind, message));
        }
        let buckets = page["data"].as_array().ok_or_else(malformed)?;
        for bucket in buckets {
            usage.extend(read(bucket).ok_or_else(malformed)?);
        }
        let Some(next) = next_page(&page)? else {
            return Ok(usage);
        };
        url = format!(
            "{first}&page={}",
            utf8_percent_encode(next, NON_ALPHANUMERIC)
        );
    }
    Err(malformed())
}

/// The name of the page after `page`. `None` if `page` is the last one.
fn next_page(page: &Value) -> Result<Option<&str>, ProviderError> {
    if page["has_more"] != true {
        return Ok(None);
    }
    page["next_page"].as_str().map(Some).ok_or_else(malformed)
}

fn malformed() -> ProviderError {
    let message = "the usage API's response does not match its documentation";
    ProviderError::new(UpstreamErrorKind::Unavailable, message)
}

/// A count in an object; 0 if it is missing.
pub(crate) fn count(object: &Value, name: &str) -> u64 {
    object[name].as_u64().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_incomplete_report_without_a_next_page_is_an_error() {
        for (page, expected) in [
            (
                json!({ "has_more": true, "next_page": "p2" }),
                Ok(Some("p2")),
            ),
            (json!({ "has_more": false, "next_page": null }), Ok(None)),
            (json!({ "has_more": false, "next_page": "p2" }), Ok(None)),
            (json!({}), Ok(None)),
            (
                json!({ "has_more": true, "next_page": null }),
                Err(malformed()),
            ),
            (json!({ "has_more": true }), Err(malformed())),
        ] {
            assert_eq!(next_page(&page), expected, "{page}");
        }
    }
}
