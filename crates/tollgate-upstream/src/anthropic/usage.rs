//! Reads token counts by model and day from Anthropic's usage API. <https://docs.anthropic.com/en/api/admin-api/usage-cost/get-messages-usage-report>

use async_trait::async_trait;
use serde_json::Value;
use tollgate_core::Secret;

use super::headers::{KEY, OUR_VERSION, VERSION};
use crate::adapter::{HttpRequest, ProviderClient};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::UsageReport;
use crate::reported_usage::{ReportedUsage, UsagePeriod};
use crate::usage_report::{DAYS_OF_PAGE, SECONDS_OF_DAY, count, read_pages};

pub(super) struct AnthropicUsage {
    pub(super) http: ProviderClient,
    /// The base URL, without a slash at its end.
    pub(super) base: String,
    pub(super) admin_key: Secret,
}

#[async_trait]
impl UsageReport for AnthropicUsage {
    async fn report(&self, period: UsagePeriod) -> Result<Vec<ReportedUsage>, ProviderError> {
        let (from, until) = (start_of_day(period.from)?, start_of_day(period.until)?);
        let url = format!(
            "{}/v1/organizations/usage_report/messages?starting_at={from}&ending_at={until}&bucket_width=1d&group_by[]=model&limit={DAYS_OF_PAGE}",
            self.base
        );
        let request = |request: HttpRequest| {
            let request = request.header(VERSION, OUR_VERSION);
            request.with_key_header(KEY, "", Some(&self.admin_key))
        };
        read_pages(&self.http, &url, request, read_bucket).await
    }
}

fn start_of_day(day: i64) -> Result<jiff::Timestamp, ProviderError> {
    jiff::Timestamp::from_second(day.saturating_mul(SECONDS_OF_DAY))
        .map_err(|_| ProviderError::new(UpstreamErrorKind::Rejected, "the day is out of range"))
}

fn read_bucket(bucket: &Value) -> Option<Vec<ReportedUsage>> {
    let start: jiff::Timestamp = bucket["starting_at"].as_str()?.parse().ok()?;
    let day = start.as_second().div_euclid(SECONDS_OF_DAY);
    let results = bucket["results"].as_array()?.iter();
    let usage = results.map(|result| {
        let written = &result["cache_creation"];
        ReportedUsage {
            day,
            model: result["model"].as_str().unwrap_or_default().to_owned(),
            input: count(result, "uncached_input_tokens")
                + count(result, "cache_read_input_tokens")
                + count(written, "ephemeral_5m_input_tokens")
                + count(written, "ephemeral_1h_input_tokens"),
            output: count(result, "output_tokens"),
        }
    });
    Some(usage.collect())
}
