//! Generates videos, through the newer APIs and the older ones.

use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue};
use serde_json::Value;
use tollgate_core::{Secret, TaskKind};
use tollgate_media::Job;
use tollgate_media::video::VideoJob;

use super::client::Kling;
use super::models::{self, Api};
use super::provider_job_id::{Endpoint, KlingJobId};
use super::task::State;
use super::video_plan::{Plan, VideoRequest};
use super::{auth, errors, new_api, old_api};
use crate::adapter::{
    Adjustments, HttpRequest, InlineFiles, deliver_results, percent_encode, poll_error,
};
use crate::channel::ChannelModel;
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::{
    ExecutionMode, FindCall, Found, PollInterval, Polled, Queue, QueueCall, Started, VideoCall,
    VideoProvider,
};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const POLL_TIMEOUT: Duration = Duration::from_secs(30);
/// Codes of the older APIs for an unknown task id: an invalid value, or not found.
const ID_CODES: [i64; 2] = [1201, 1203];

/// How a job's video is requested.
struct Choice<'m> {
    endpoint: Endpoint,
    /// The model's name at the endpoint.
    name: &'m str,
    plan: Plan,
    /// The differences between the plan and the job.
    changes: Adjustments,
}

impl<'m> Choice<'m> {
    /// Chooses the request for a video with that number of images.
    fn new(
        job: &VideoJob,
        images: usize,
        model: &'m ChannelModel,
        key: Option<&Secret>,
    ) -> Result<Self, ProviderError> {
        let is_signed = key.is_some_and(|key| auth::pair(key).is_some());
        let (api, name, capabilities) = models::choose(&model.upstream, is_signed)?;
        let (plan, changes) = Plan::new(job, images, capabilities, api)?;
        let endpoint = match (api, images) {
            (Api::Newer, _) => Endpoint::Newer,
            (Api::Older, 0) => Endpoint::Text,
            (Api::Older, _) => Endpoint::Image,
        };
        Ok(Self {
            endpoint,
            name,
            plan,
            changes,
        })
    }
}

/// A successful response that cannot be read may have created a task nevertheless, which can be found by the gateway's id.
fn or_outcome_unknown(error: ProviderError) -> ProviderError {
    let is_success = error
        .status
        .is_some_and(|status| (200..300).contains(&status));
    if is_success && error.kind == UpstreamErrorKind::Unavailable {
        return ProviderError {
            kind: UpstreamErrorKind::OutcomeUnknown,
            ..error
        };
    }
    error
}

/// The id of a task that was created or found; `None` if the response contains none.
fn provider_job_id(endpoint: Endpoint, task: &Value, job: &VideoJob) -> Option<String> {
    let id = match endpoint {
        Endpoint::Newer => &task["id"],
        Endpoint::Text | Endpoint::Image => &task["task_id"],
    };
    let provider_job_id = KlingJobId {
        endpoint,
        id: id.as_str().filter(|id| !id.is_empty())?,
        with_watermark: job.watermark == Some(true),
    };
    Some(provider_job_id.to_string())
}

#[async_trait]
impl VideoProvider for Kling {
    fn execution_mode(&self, _: &ChannelModel) -> ExecutionMode {
        ExecutionMode::Queued
    }

    async fn start(&self, call: VideoCall<'_>) -> Result<Started, ProviderError> {
        let VideoCall {
            attempt,
            job,
            images,
        } = call;
        let choice = Choice::new(job, images.len(), attempt.model, attempt.key)?;
        let (endpoint, changes) = (choice.endpoint, choice.changes);
        let video = VideoRequest {
            job,
            plan: &choice.plan,
            name: choice.name,
            images,
            external_id: attempt.external_id,
        };
        let path = endpoint.path().unwrap_or_else(|| new_api::path(&video));
        let url = [&self.base, path.as_str()].concat();
        let request = || {
            let mut inline_files = InlineFiles::new();
            let body = match endpoint {
                Endpoint::Newer => new_api::body(&video, &mut inline_files),
                Endpoint::Text | Endpoint::Image => old_api::body(&video, &mut inline_files),
            };
            HttpRequest::post_body(&url, JSON, inline_files.into_body(&body))
                .with_trace(attempt.trace)
                .creating()
        };
        changes.report_to(attempt.sink);
        let sent = self.create(attempt.key, request).await;
        let created = sent.map_err(or_outcome_unknown)?;
        // A task whose id is missing in the response can be found by the gateway's id.
        let missing_job_id_error = || {
            let message = "the upstream's response names no task";
            ProviderError::new(UpstreamErrorKind::OutcomeUnknown, message)
        };
        let provider_job_id =
            provider_job_id(endpoint, &created, job).ok_or_else(missing_job_id_error)?;
        Ok(Started::Accepted(provider_job_id))
    }
}

#[async_trait]
impl Queue for Kling {
    fn poll_interval(&self, _: TaskKind) -> PollInterval {
        PollInterval::every(10)
    }

    async fn poll(&self, call: QueueCall<'_>) -> Result<Polled, ProviderError> {
        let provider_job_id = KlingJobId::parse(call.provider_job_id);
        let id = percent_encode(provider_job_id.id);
        let url = match provider_job_id.endpoint.path() {
            Some(path) => format!("{}{path}/{id}", self.base),
            None => format!("{}/tasks?task_ids={id}", self.base),
        };
        let sent = self.send_for_data(call.key, || {
            HttpRequest::get(&url).with_timeout(POLL_TIMEOUT)
        });
        let data = match sent.await {
            Ok(data) => data,
            Err(error) => return poll_error(error),
        };
        let task = match provider_job_id.endpoint {
            Endpoint::Newer => {
                let mut tasks = data.as_array().into_iter().flatten();
                tasks
                    .find(|task| task["id"] == provider_job_id.id)
                    .map(new_api::parse_task)
            }
            Endpoint::Text | Endpoint::Image => Some(old_api::parse_task(&data)),
        };
        let Some(task) = task else {
            return Ok(Polled::Failed(ProviderError::new(
                UpstreamErrorKind::Failed,
                "the upstream no longer has the task",
            )));
        };
        match task.state {
            State::Open => Ok(Polled::Pending(None)),
            State::Failed => Ok(Polled::Failed(errors::task_error(
                &self.client,
                task.message,
            ))),
            State::Completed => {
                let links = task.outputs.iter().filter_map(|output| match output {
                    output if provider_job_id.with_watermark => output.watermarked.or(output.plain),
                    output => output.plain,
                });
                let link = |url| Ok(self.client.link(&self.base, url, HeaderMap::new()));
                deliver_results(call.sink, links.map(link).collect()).await
            }
        }
    }

    async fn find(&self, call: FindCall<'_>) -> Result<Found, ProviderError> {
        let Job::Video(job) = call.job else {
            return Ok(Found::Unknown);
        };
        let choice = Choice::new(job, job.images.len(), call.model, call.key)?;
        let endpoint = choice.endpoint;
        let id = percent_encode(call.external_id);
        let url = match endpoint.path() {
            Some(path) => format!("{}{path}/{id}", self.base),
            None => format!("{}/tasks?external_task_ids={id}", self.base),
        };
        let sent = self.send(call.key, || {
            HttpRequest::get(&url).with_timeout(POLL_TIMEOUT)
        });
        let response = sent.await?;
        let is_of_id = errors::code(&response).is_some_and(|code| ID_CODES.contains(&code));
        let task = match (endpoint, is_of_id) {
            // The gateway's id is valid, so the API rejects it only if no task has it.
            (Endpoint::Text | Endpoint::Image, true) => Value::Null,
            (Endpoint::Text | Endpoint::Image, false) => errors::data(&self.client, &response)?,
            (Endpoint::Newer, _) => match errors::data(&self.client, &response)? {
                Value::Array(tasks) => tasks.into_iter().next().unwrap_or_default(),
                other => other,
            },
        };
        Ok(match provider_job_id(endpoint, &task, job) {
            Some(provider_job_id) => {
                choice.changes.report_to(call.sink);
                Found::Accepted(provider_job_id)
            }
            None if task.is_null() => Found::Nothing,
            None => Found::Unknown,
        })
    }
}
