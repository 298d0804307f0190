//! Generates videos through `/videos/generations`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Map, Value, json};
use tollgate_core::TaskKind;
use tollgate_media::video::{ImageUse, VideoJob};

use super::client::{BEARER, Client, readable};
use super::{errors, models};
use crate::adapter::{
    Adjustments, HttpRequest, InlineFiles, deliver_results, missing_job_id_error, percent_encode,
    poll_error,
};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::{PollInterval, Polled, Queue, QueueCall, Started, VideoCall, VideoProvider};

/// Maximum number of references of a video.
const MAX_REFERENCES: usize = 7;
/// Maximum length of a video with references, in seconds.
const LONGEST_WITH_REFERENCES: u32 = 10;
/// The timeout of a poll.
const POLL_TIME: Duration = Duration::from_secs(30);

pub(super) struct Videos(pub(super) Arc<Client>);

#[async_trait]
impl VideoProvider for Videos {
    async fn start(&self, call: VideoCall<'_>) -> Result<Started, ProviderError> {
        let client = &self.0;
        let id = call.attempt.model.id_by(models::IDS);
        let role = role(call.job, call.images.len())?;
        let (mut fields, changes) = fields(id, call.job, role)?;
        changes.report_to(call.attempt.sink);
        let images = readable(call.images).await?;
        let mut inline_files = InlineFiles::new();
        let image = |image| json!({"url": inline_files.image(image)});
        let mut images: Vec<Value> = images.iter().map(image).collect();
        match role {
            Role::None => {}
            Role::First => drop(fields.insert("image".into(), images.remove(0))),
            Role::References => drop(fields.insert("reference_images".into(), images.into())),
        }
        let json = HeaderValue::from_static("application/json");
        let url = client.url("/videos/generations");
        let request = HttpRequest::post_body(url, json, inline_files.into_body(&fields.into()))
            .with_authorization(BEARER, call.attempt.key)?
            .with_trace(call.attempt.trace)
            .creating();
        let response = client.http.send(request).await?;
        let json = response.json();
        let provider_job_id = json["request_id"].as_str().filter(|id| !id.is_empty());
        match provider_job_id.filter(|_| response.status.is_success()) {
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
        PollInterval::every(5)
    }

    async fn poll(&self, call: QueueCall<'_>) -> Result<Polled, ProviderError> {
        let client = &self.0;
        let video = percent_encode(call.provider_job_id);
        let request = HttpRequest::get(client.url(&format!("/videos/{video}")))
            .with_authorization(BEARER, call.key)?
            .with_timeout(POLL_TIME);
        let response = client.http.send(request).await?;
        let json = response.json();
        if response.status == StatusCode::ACCEPTED {
            // The body may be empty.
            return Ok(Polled::Pending(percent(&json)));
        }
        if !response.status.is_success() {
            return poll_error(client.response_error(&response));
        }
        let url = json["video"]["url"].as_str().filter(|url| !url.is_empty());
        let is_held_back = json["video"]["respect_moderation"] == false;
        match (json["status"].as_str(), url) {
            (Some("pending"), _) => Ok(Polled::Pending(percent(&json))),
            (Some("done") | None, _) if is_held_back => {
                Ok(Polled::Failed(errors::withheld("video")))
            }
            (Some("done") | None, Some(url)) => {
                let link = client.http.link(&client.base, url, HeaderMap::new());
                deliver_results(call.sink, vec![Ok(link)]).await
            }
            (Some("done"), None) => Ok(Polled::Failed(ProviderError::new(
                UpstreamErrorKind::Failed,
                "the upstream reports a completed video, but returns none",
            ))),
            (Some("failed"), _) => {
                let error = errors::task_error(&client.http, &json["error"]);
                Ok(Polled::Failed(error))
            }
            (Some("expired"), _) => Ok(Polled::Failed(ProviderError::new(
                UpstreamErrorKind::Failed,
                "the upstream reports that the video expired",
            ))),
            _ => Err(client.response_error(&response)),
        }
    }
}

/// How a video uses its images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    None,
    First,
    References,
}

/// How the video of `job` uses `count` images.
fn role(job: &VideoJob, count: usize) -> Result<Role, ProviderError> {
    let unsupported =
        |message: &str| ProviderError::new(UpstreamErrorKind::UnsupportedByChannel, message);
    match (job.image_use, count) {
        (_, 0) => Ok(Role::None),
        (_, count) if count > MAX_REFERENCES => Err(unsupported(
            "the upstream accepts at most 7 reference images",
        )),
        (Some(ImageUse::FirstAndLast), _) => Err(unsupported("the upstream accepts no last frame")),
        (None | Some(ImageUse::FirstFrame), 1) => Ok(Role::First),
        _ if job.seconds > LONGEST_WITH_REFERENCES => Err(unsupported(
            "the upstream generates at most 10 seconds with reference images",
        )),
        _ => Ok(Role::References),
    }
}

/// The fields of the request except images.
fn fields(
    id: &str,
    job: &VideoJob,
    role: Role,
) -> Result<(Map<String, Value>, Adjustments), ProviderError> {
    let Some(size) = job.size.pixels else {
        return Err(ProviderError::new(
            UpstreamErrorKind::Rejected,
            "the size of the video is unknown",
        ));
    };
    let named = job.size.ratio.as_deref();
    let tier = models::tier_of_video(
        job.size.resolution.as_deref(),
        size,
        role == Role::References,
    );
    let mut changes = Adjustments::for_unsupported_fields(job, &[]);
    let requested = job.size.resolution.as_deref();
    if let Some(requested) = requested.filter(|requested| !requested.eq_ignore_ascii_case(tier)) {
        let why = "the provider does not support this tier here: the nearest that it supports";
        changes.replace_value("resolution", requested, tier, why);
    }
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.into(), value));
    put("model", id.into());
    put("prompt", job.prompt.as_str().into());
    put("duration", job.seconds.into());
    // Without a ratio, the video has the ratio of its start image.
    if named.is_some() || role != Role::First {
        let ratio = models::ratio(models::VIDEO_RATIOS, named, size);
        changes.ratio(named, Some(size), ratio);
        put("aspect_ratio", ratio.into());
    }
    put("resolution", tier.into());
    Ok((fields, changes))
}

fn percent(json: &Value) -> Option<u8> {
    let percent = json["progress"].as_f64()?;
    (0.0..=100.0).contains(&percent).then_some(percent as u8)
}
