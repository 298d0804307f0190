//! Films, by the newer APIs and by the older ones.

mod models;
mod newer;
mod older;
mod plan;
mod ticket;

use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue};
use serde_json::Value;
use tollgate_core::{Secret, TaskKind};
use tollgate_media::Job;
use tollgate_media::video::VideoJob;

use super::answer::{self, State};
use super::{Kling, auth};
use crate::channel::ChannelModel;
use crate::provider::{
    FindCall, Found, InputFile, Polled, ProviderError, ProviderErrorKind, Queue, QueueCall, Rhythm,
    Started, Style, VideoCall, VideoProvider,
};
use crate::wire::{Ask, Changes, Slots, hand_over, segment, unpolled};
use models::Api;
use plan::Plan;
use ticket::{Place, Ticket};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const POLL_TIME: Duration = Duration::from_secs(30);
/// How the older APIs refuse the id of a task that they are asked for: a wrong value, or nothing there.
const ID_CODES: [i64; 2] = [1201, 1203];

/// One film on its way out.
struct Film<'a> {
    job: &'a VideoJob,
    plan: &'a Plan,
    /// The model's name in the API.
    name: &'a str,
    /// The first frame and the last.
    images: &'a [InputFile],
    external_id: &'a str,
}

/// How a job's film is asked for.
struct Choice<'m> {
    place: Place,
    /// The model's name there.
    name: &'m str,
    plan: Plan,
    /// What of the plan differs from the job.
    changes: Changes,
}

impl<'m> Choice<'m> {
    /// Of a film of so many images.
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

/// A success that says nothing of use may have made a film all the same: it can be looked for by our id.
fn may_have_been_made(error: ProviderError) -> ProviderError {
    let is_success = error
        .status
        .is_some_and(|status| (200..300).contains(&status));
    if is_success && error.kind == ProviderErrorKind::Retryable {
        return ProviderError {
            kind: ProviderErrorKind::Unknown,
            ..error
        };
    }
    error
}

/// What is written down of a task that was made or found; none where the answer names none.
fn ticket(place: Place, task: &Value, job: &VideoJob) -> Option<String> {
    let id = match place {
        Place::Newer => &task["id"],
        Place::Text | Place::Image => &task["task_id"],
    };
    let ticket = Ticket {
        place,
        id: id.as_str().filter(|id| !id.is_empty())?,
        is_marked: job.watermark == Some(true),
    };
    Some(ticket.to_string())
}

#[async_trait]
impl VideoProvider for Kling {
    fn style(&self, _: &ChannelModel) -> Style {
        Style::Queued
    }

    async fn start(&self, call: VideoCall<'_>) -> Result<Started, ProviderError> {
        let VideoCall {
            attempt,
            job,
            images,
        } = call;
        let choice = Choice::of(job, images.len(), attempt.model, attempt.key)?;
        let (place, changes) = (choice.place, choice.changes);
        let film = Film {
            job,
            plan: &choice.plan,
            name: choice.name,
            images,
            external_id: attempt.external_id,
        };
        let path = place.path().unwrap_or_else(|| newer::path(&film));
        let url = [&self.base, path.as_str()].concat();
        let make = || {
            let mut slots = Slots::new();
            let body = match place {
                Place::Newer => newer::body(&film, &mut slots),
                Place::Text | Place::Image => older::body(&film, &mut slots),
            };
            Ask::post_parts(&url, JSON, slots.fill(&body)).once()
        };
        changes.tell(attempt.delivery);
        let asked = self.created(attempt.key, make).await;
        let made = asked.map_err(may_have_been_made)?;
        // Whatever it made without naming it can be looked for by our id.
        let unnamed = || {
            let words = "the upstream's answer names no task";
            ProviderError::new(ProviderErrorKind::Unknown, words)
        };
        let ticket = ticket(place, &made, job).ok_or_else(unnamed)?;
        Ok(Started::Accepted(ticket))
    }
}

#[async_trait]
impl Queue for Kling {
    fn rhythm(&self, _: TaskKind) -> Rhythm {
        Rhythm::every(10)
    }

    async fn poll(&self, call: QueueCall<'_>) -> Result<Polled, ProviderError> {
        let ticket = Ticket::read(call.ticket);
        let id = segment(ticket.id);
        let url = match ticket.place.path() {
            Some(path) => format!("{}{path}/{id}", self.base),
            None => format!("{}/tasks?task_ids={id}", self.base),
        };
        let asked = self.data(call.key, || Ask::get(&url).within(POLL_TIME));
        let told = match asked.await {
            Ok(told) => told,
            Err(error) => return unpolled(error),
        };
        let task = match ticket.place {
            Place::Newer => {
                let mut tasks = told.as_array().into_iter().flatten();
                tasks.find(|task| task["id"] == ticket.id).map(newer::task)
            }
            Place::Text | Place::Image => Some(older::task(&told)),
        };
        let Some(task) = task else {
            return Ok(Polled::Failed(ProviderError::new(
                ProviderErrorKind::Failed,
                "the upstream does not know the task any more",
            )));
        };
        match task.state {
            State::Open => Ok(Polled::Waiting(None)),
            State::Failed => Ok(Polled::Failed(answer::failure(&self.wire, task.reason))),
            State::Done => {
                let links = task.outputs.iter().filter_map(|output| match output {
                    output if ticket.is_marked => output.marked.or(output.plain),
                    output => output.plain,
                });
                let link = |url| Ok(self.wire.link(&self.base, url, HeaderMap::new()));
                hand_over(call.delivery, links.map(link).collect()).await
            }
        }
    }

    async fn find(&self, call: FindCall<'_>) -> Result<Found, ProviderError> {
        let Job::Video(job) = call.job else {
            return Ok(Found::CannotTell);
        };
        let choice = Choice::of(job, job.images.len(), call.model, call.key)?;
        let place = choice.place;
        let id = segment(call.external_id);
        let url = match place.path() {
            Some(path) => format!("{}{path}/{id}", self.base),
            None => format!("{}/tasks?external_task_ids={id}", self.base),
        };
        let asked = self.exchange(call.key, || Ask::get(&url).within(POLL_TIME));
        let answer = asked.await?;
        let is_of_id = answer::code(&answer).is_some_and(|code| ID_CODES.contains(&code));
        let task = match (place, is_of_id) {
            // The id is one that a submission may have: it is refused only where nothing has it.
            (Place::Text | Place::Image, true) => Value::Null,
            (Place::Text | Place::Image, false) => answer::data(&self.wire, &answer)?,
            (Place::Newer, _) => match answer::data(&self.wire, &answer)? {
                Value::Array(tasks) => tasks.into_iter().next().unwrap_or_default(),
                other => other,
            },
        };
        Ok(match ticket(place, &task, job) {
            Some(ticket) => {
                choice.changes.tell(call.delivery);
                Found::Accepted(ticket)
            }
            None if task.is_null() => Found::Nothing,
            None => Found::CannotTell,
        })
    }
}
