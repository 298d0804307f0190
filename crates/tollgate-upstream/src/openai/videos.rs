//! Videos: `/videos`, the API of Sora and of compatible servers. <https://platform.openai.com/docs/api-reference/videos>

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tollgate_core::TaskKind;
use tollgate_media::image::ImageFormat;

use super::client::{BEARER, Client, key_header};
use super::{errors, models, sizes};
use crate::adapter::{
    Adjustments, HttpRequest, MultipartForm, deliver_results, missing_job_id_error, percent_encode,
    poll_error,
};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::{PollInterval, Polled, Queue, QueueCall, Started, VideoCall, VideoProvider};
use crate::raster;

/// The formats of the reference image that the server accepts.
const ACCEPTED_FORMATS: &[ImageFormat] = &[ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Webp];
/// The timeout of a poll.
const POLL_TIME: Duration = Duration::from_secs(30);

pub(super) struct Videos(pub(super) Arc<Client>);

#[async_trait]
impl VideoProvider for Videos {
    async fn start(&self, call: VideoCall<'_>) -> Result<Started, ProviderError> {
        let client = &self.0;
        let id = call.attempt.model.id_by(models::IDS);
        let Some(mut size) = call.job.size.pixels else {
            return Err(ProviderError::new(
                UpstreamErrorKind::Rejected,
                "the size of the video is unknown",
            ));
        };
        let mut changes = Adjustments::for_unsupported_fields(call.job, &[]);
        if models::is_sora(id) {
            let legal = sizes::video_size(id, size);
            changes.replace_value("size", size.to_string(), legal.to_string(), sizes::WHY);
            size = legal;
        }
        changes.report_to(call.attempt.sink);
        // The default of `seconds` differs between servers: it is always sent.
        let fields = [
            ("model", id),
            ("prompt", call.job.prompt.as_str()),
            ("seconds", &call.job.seconds.to_string()),
            ("size", &size.to_string()),
        ];
        let url = client.url("/videos");
        let request = match call.images {
            [] => {
                let fields = fields.map(|(name, value)| (name.to_owned(), Value::from(value)));
                HttpRequest::post(url, &Value::Object(fields.into_iter().collect()))
            }
            [first] => {
                // The server rejects a reference of any other size.
                let image = raster::covering(first, size, ACCEPTED_FORMATS).await?;
                let mut form = MultipartForm::new();
                for (name, value) in fields {
                    form.text(name, value);
                }
                form.image("input_reference", "reference", &image);
                let (content_type, parts) = form.finish();
                HttpRequest::post_body(url, content_type, parts)
            }
            _ => {
                return Err(ProviderError::new(
                    UpstreamErrorKind::UnsupportedByChannel,
                    "the upstream accepts one reference image",
                ));
            }
        };
        let request = request
            .with_authorization(BEARER, call.attempt.key)?
            .with_trace(call.attempt.trace)
            .creating();
        let response = client.http.send(request).await?;
        let json = response.json();
        let provider_job_id = ["id", "task_id"]
            .iter()
            .find_map(|name| json[name].as_str());
        match provider_job_id
            .filter(|provider_job_id| response.status.is_success() && !provider_job_id.is_empty())
        {
            Some(provider_job_id) => Ok(Started::Accepted(provider_job_id.to_owned())),
            None => Err(missing_job_id_error(
                &response,
                client.response_error(&response),
            )),
        }
    }
}

#[async_trait]
impl Queue for Videos {
    fn poll_interval(&self, _: TaskKind) -> PollInterval {
        PollInterval::every(10)
    }

    async fn poll(&self, call: QueueCall<'_>) -> Result<Polled, ProviderError> {
        let client = &self.0;
        let video = percent_encode(call.provider_job_id);
        let record_url = client.url(&format!("/videos/{video}"));
        let request = HttpRequest::get(&record_url)
            .with_authorization(BEARER, call.key)?
            .with_timeout(POLL_TIME);
        let response = client.http.send(request).await?;
        let json = response.json();
        let status = json["status"]
            .as_str()
            .filter(|_| response.status.is_success());
        match status {
            Some("queued" | "in_progress") => Ok(Polled::Pending(percent(&json["progress"]))),
            Some("completed") => self.deliver(&call, &record_url, &json).await,
            Some("failed") => {
                let error = errors::task_error(&client.http, &json["error"]);
                Ok(Polled::Failed(error))
            }
            Some(state @ ("cancelled" | "expired")) => Ok(Polled::Failed(ProviderError::new(
                UpstreamErrorKind::Failed,
                format!("the upstream's task is {state}"),
            ))),
            _ => poll_error(client.response_error(&response)),
        }
    }
}

impl Videos {
    /// Delivers a finished video. OpenAI serves it at a path below the job's URL and requires the key.
    async fn deliver(
        &self,
        call: &QueueCall<'_>,
        record_url: &str,
        json: &Value,
    ) -> Result<Polled, ProviderError> {
        let client = &self.0.http;
        let base = &self.0.base;
        let content = format!("{record_url}/content");
        let headers = key_header(call.key)?;
        let link = |url: &str| vec![Ok(client.link(base, url, headers.clone()))];
        let delivered = deliver_results(call.sink, link(&content)).await;
        let is_missing = match &delivered {
            Ok(Polled::Failed(_)) => true,
            // One download per poll: after a truncated download, no other URL is requested.
            Err(error) => error
                .status
                .is_some_and(|status| (400..500).contains(&status)),
            Ok(_) => false,
        };
        // Some servers put a link into the job's JSON instead.
        let urls = [&json["metadata"]["url"], &json["url"], &json["video_url"]];
        let mut urls = urls.iter().filter_map(|url| url.as_str());
        match urls.find(|url| !url.is_empty()).filter(|_| is_missing) {
            Some(url) => deliver_results(call.sink, link(url)).await,
            None => delivered,
        }
    }
}

/// The progress in percent, from a number or from a text with `%`.
fn percent(progress: &Value) -> Option<u8> {
    let number = match progress {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().trim_end_matches('%').trim().parse().ok()?,
        _ => return None,
    };
    (0.0..=100.0).contains(&number).then_some(number as u8)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn progress_is_read_as_number_and_as_text() {
        for (progress, expected) in [
            (json!(40), Some(40)),
            (json!(99.6), Some(99)),
            (json!("40%"), Some(40)),
            (json!(" 7 % "), Some(7)),
            (json!(101), None),
            (json!(-1), None),
            (json!("soon"), None),
            (json!(null), None),
        ] {
            assert_eq!(percent(&progress), expected, "{progress}");
        }
    }
}
