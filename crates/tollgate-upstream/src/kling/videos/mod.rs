//! Videos, by the newer APIs and by the older ones.

mod models;
mod new_api;
mod old_api;
mod plan;
mod provider_job_id;

use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue};
use serde_json::Value;
use tollgate_core::{Secret, TaskKind};
use tollgate_media::Job;
use tollgate_media::video::VideoJob;

use super::response::{self, State};
use super::{Kling, auth};
use crate::adapter::{
    Adjustments, HttpRequest, InlineFiles, deliver_results, percent_encode, poll_error,
};
use crate::channel::ChannelModel;
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::{
    ExecutionMode, FindCall, Found, InputFile, PollInterval, Polled, Queue, QueueCall, Started,
    VideoCall, VideoProvider,
};
use models::Api;
use plan::Plan;
use provider_job_id::{KlingJobId, Place};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const POLL_TIME: Duration = Duration::from_secs(30);
/// How the older APIs refuse the id of a task that they are asked for: a wrong value, or nothing there.
const ID_CODES: [i64; 2] = [1201, 1203];

/// One video on its way out.
struct VideoRequest<'a> {
    job: &'a VideoJob,
    plan: &'a Plan,
    /// The model's name in the API.
    name: &'a str,
    /// The first frame and the last.
    images: &'a [InputFile],
    external_id: &'a str,
}

/// How a job's video is asked for.
struct Choice<'m> {
    place: Place,
    /// The model's name there.
    name: &'m str,
    plan: Plan,
    /// What of the plan differs from the job.
    changes: Adjustments,
}

impl<'m> Choice<'m> {
    /// Of a video of so many images.
    fn of(
        job: &VideoJob,
        images: usize,
        model: &'m ChannelModel,
        key: Option<&Secret>,
    ) -> Result<Self, ProviderError> {
        let is_signed = key.is_some_and(|key| auth::pair(key).is_some());
        let (api, name, makes) = models::choose(&model.upstream, is_signed)?;
        let (plan, changes) = Plan::of(job, images, makes, api)?;
        let place = match (api, images) {
            (Api::Newer, _) => Place::Newer,
            (Api::Older, 0) => Place::Text,
            (Api::Older, _) => Place::Image,
        };
        Ok(Self {
            place,
            name,
            plan,
            changes,
        })
    }
}

/// A success that says nothing of use may have made a video all the same: it can be looked for by our id.
fn may_have_been_made(error: ProviderError) -> ProviderError {
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

/// What is written down of a task that was made or found; `None` if the answer names none.
fn provider_job_id(place: Place, task: &Value, job: &VideoJob) -> Option<String> {
    let id = match place {
        Place::Newer => &task["id"],
        Place::Text | Place::Image => &task["task_id"],
    };
    let provider_job_id = KlingJobId {
        place,
        id: id.as_str().filter(|id| !id.is_empty())?,
        is_marked: job.watermark == Some(true),
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
        let choice = Choice::of(job, images.len(), attempt.model, attempt.key)?;
        let (place, changes) = (choice.place, choice.changes);
        let video = VideoRequest {
            job,
            plan: &choice.plan,
            name: choice.name,
            images,
            external_id: attempt.external_id,
        };
        let path = place.path().unwrap_or_else(|| new_api::path(&video));
        let url = [&self.base, path.as_str()].concat();
        let make = || {
            let mut slots = InlineFiles::new();
            let body = match place {
                Place::Newer => new_api::body(&video, &mut slots),
                Place::Text | Place::Image => old_api::body(&video, &mut slots),
            };
            HttpRequest::post_body(&url, JSON, slots.into_body(&body)).creating()
        };
        changes.report_to(attempt.sink);
        let asked = self.created(attempt.key, make).await;
        let made = asked.map_err(may_have_been_made)?;
        // Whatever it made without naming it can be looked for by our id.
        let missing_job_id_error = || {
            let words = "the upstream's answer names no task";
            ProviderError::new(UpstreamErrorKind::OutcomeUnknown, words)
        };
        let provider_job_id =
            provider_job_id(place, &made, job).ok_or_else(missing_job_id_error)?;
        Ok(Started::Accepted(provider_job_id))
    }
}

#[async_trait]
impl Queue for Kling {
    fn poll_interval(&self, _: TaskKind) -> PollInterval {
        PollInterval::every(10)
    }

    async fn poll(&self, call: QueueCall<'_>) -> Result<Polled, ProviderError> {
        let provider_job_id = KlingJobId::read(call.provider_job_id);
        let id = percent_encode(provider_job_id.id);
        let url = match provider_job_id.place.path() {
            Some(path) => format!("{}{path}/{id}", self.base),
            None => format!("{}/tasks?task_ids={id}", self.base),
        };
        let asked = self.data(call.key, || HttpRequest::get(&url).with_timeout(POLL_TIME));
        let told = match asked.await {
            Ok(told) => told,
            Err(error) => return poll_error(error),
        };
        let task = match provider_job_id.place {
            Place::Newer => {
                let mut tasks = told.as_array().into_iter().flatten();
                tasks
                    .find(|task| task["id"] == provider_job_id.id)
                    .map(new_api::task)
            }
            Place::Text | Place::Image => Some(old_api::task(&told)),
        };
        let Some(task) = task else {
            return Ok(Polled::Failed(ProviderError::new(
                UpstreamErrorKind::Failed,
                "the upstream does not know the task any more",
            )));
        };
        match task.state {
            State::Open => Ok(Polled::Pending(None)),
            State::Failed => Ok(Polled::Failed(response::failure(&self.client, task.reason))),
            State::Completed => {
                let links = task.outputs.iter().filter_map(|output| match output {
                    output if provider_job_id.is_marked => output.marked.or(output.plain),
                    output => output.plain,
                });
                let link = |url| Ok(self.client.link(&self.base, url, HeaderMap::new()));
                deliver_results(call.sink, links.map(link).collect()).await
            }
        }
    }

    async fn find(&self, call: FindCall<'_>) -> Result<Found, ProviderError> {
        let Job::Video(job) = call.job else {
            return Ok(Found::CannotTell);
        };
        let choice = Choice::of(job, job.images.len(), call.model, call.key)?;
        let place = choice.place;
        let id = percent_encode(call.external_id);
        let url = match place.path() {
            Some(path) => format!("{}{path}/{id}", self.base),
            None => format!("{}/tasks?external_task_ids={id}", self.base),
        };
        let asked = self.exchange(call.key, || HttpRequest::get(&url).with_timeout(POLL_TIME));
        let answer = asked.await?;
        let is_of_id = response::code(&answer).is_some_and(|code| ID_CODES.contains(&code));
        let task = match (place, is_of_id) {
            // The id is one that a submission may have: it is refused only where nothing has it.
            (Place::Text | Place::Image, true) => Value::Null,
            (Place::Text | Place::Image, false) => response::data(&self.client, &answer)?,
            (Place::Newer, _) => match response::data(&self.client, &answer)? {
                Value::Array(tasks) => tasks.into_iter().next().unwrap_or_default(),
                other => other,
            },
        };
        Ok(match provider_job_id(place, &task, job) {
            Some(provider_job_id) => {
                choice.changes.report_to(call.sink);
                Found::Accepted(provider_job_id)
            }
            None if task.is_null() => Found::Nothing,
            None => Found::CannotTell,
        })
    }
}
