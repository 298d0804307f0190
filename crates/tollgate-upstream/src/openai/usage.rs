//! Reads token counts by model and day from OpenAI's usage API. <https://platform.openai.com/docs/api-reference/usage/completions>

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tollgate_core::Secret;

use super::client::{BEARER, Client};
use crate::adapter::HttpRequest;
use crate::error::ProviderError;
use crate::provider::UsageReport;
use crate::reported_usage::{ReportedUsage, UsagePeriod};
use crate::usage_report::{DAYS_OF_PAGE, SECONDS_OF_DAY, count, read_pages};

pub(super) struct OpenAiUsage {
    pub(super) client: Arc<Client>,
    pub(super) admin_key: Secret,
}

#[async_trait]
impl UsageReport for OpenAiUsage {
    async fn report(&self, period: UsagePeriod) -> Result<Vec<ReportedUsage>, ProviderError> {
        let (from, until) = (period.from * SECONDS_OF_DAY, period.until * SECONDS_OF_DAY);
        let url = self.client.url(&format!(
            "/organization/usage/completions?start_time={from}&end_time={until}&bucket_width=1d&group_by=model&limit={DAYS_OF_PAGE}"
        ));
        let key = |request: HttpRequest| request.with_authorization(BEARER, Some(&self.admin_key));
        read_pages(&self.client.http, &url, key, read_bucket).await
    }
}

fn read_bucket(bucket: &Value) -> Option<Vec<ReportedUsage>> {
    let day = bucket["start_time"].as_i64()?.div_euclid(SECONDS_OF_DAY);
    let results = bucket["results"].as_array()?.iter();
    let usage = results.map(|result| ReportedUsage {
        day,
        model: result["model"].as_str().unwrap_or_default().to_owned(),
        input: count(result, "input_tokens") + count(result, "input_audio_tokens"),
        output: count(result, "output_tokens") + count(result, "output_audio_tokens"),
    });
    Some(usage.collect())
}
