//! Replicate: pictures, films and speech of any model there, by configured mapping, made in its queue.

mod answer;
mod models;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::json;
use tollgate_core::{Secret, TaskKind};

use crate::channel::{Channel, ChannelModel, known_options};
use crate::egress;
use crate::mapped::{self, Mapping, Order, Request, poll_all, submit_all, tickets};
use crate::provider::{
    Attempt, ImageCall, ImageProvider, Polled, Provider, ProviderError, Queue, QueueCall, Rhythm,
    Settings, SpeechCall, SpeechProvider, Started, Style, VideoCall, VideoProvider,
};
use crate::wire::{Ask, Slots, Wire, segment};
use answer::Prediction;
use models::PRESETS;

const BASE_URL: &str = "https://api.replicate.com/v1";
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const POLL_TIME: Duration = Duration::from_secs(30);

/// Checks the options of a channel's models.
pub(crate) fn check(channel: &Channel) -> Result<(), String> {
    let of_models = ["input", "constants", "output", "with_images"];
    known_options(channel, &[], &of_models)?;
    mapped::check(channel, PRESETS)
}

/// Opens the provider for one channel.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let base = channel.base_url.as_deref().unwrap_or(BASE_URL);
    let replicate = Arc::new(Replicate {
        wire: Wire::new(channel, egress),
        base: base.trim_end_matches('/').to_owned(),
    });
    Provider {
        image: Some(replicate.clone()),
        video: Some(replicate.clone()),
        speech: Some(replicate.clone()),
        queue: Some(replicate),
        ..Provider::default()
    }
}

struct Replicate {
    wire: Wire,
    base: String,
}

impl Replicate {
    async fn begin(
        &self,
        attempt: &Attempt<'_>,
        order: &Order<'_>,
    ) -> Result<Started, ProviderError> {
        let mapping = Mapping::for_call(attempt.model, PRESETS)?;
        let mut calls = Vec::new();
        for (index, count) in (0..).zip(mapping.calls(order)) {
            let mut slots = Slots::new();
            let request = mapping.request(order, index, count, &mut slots)?;
            calls.push(self.submit(request, slots, attempt.key));
        }
        submit_all(calls).await
    }

    /// Submits one prediction; returns its id.
    async fn submit(
        &self,
        request: Request,
        slots: Slots,
        key: Option<&Secret>,
    ) -> Result<String, ProviderError> {
        let (path, version) = models::place(&request.upstream);
        let mut body = json!({ "input": request.input });
        if let Some(version) = version {
            body["version"] = version.into();
        }
        let url = [&self.base, path.as_str()].concat();
        let ask = Ask::post_parts(url, JSON, slots.fill(&body)).once();
        let answer = self.wire.ask(ask.authorized("Bearer ", key)?).await?;
        answer::accepted(&self.wire, &answer)
    }

    fn prediction(&self, id: &str) -> String {
        format!("{}/predictions/{}", self.base, segment(id))
    }

    async fn ask(&self, call: &QueueCall<'_>, id: String) -> Result<mapped::Task, ProviderError> {
        let ask = Ask::get(self.prediction(&id)).within(POLL_TIME);
        let answer = self.wire.ask(ask.authorized("Bearer ", call.key)?).await?;
        Ok(match answer::prediction(&self.wire, &answer)? {
            Prediction::Open => mapped::Task::Open,
            Prediction::Failed(error) => mapped::Task::Failed(error),
            Prediction::Done(output) => {
                let mapping = Mapping::for_call(call.model, PRESETS)?;
                let links = mapping.outputs.links(&output).into_iter();
                let link = |url| Ok(self.wire.link(&self.base, url, HeaderMap::new()));
                mapped::Task::Done(links.map(link).collect())
            }
        })
    }
}

#[async_trait]
impl ImageProvider for Replicate {
    fn style(&self, _: &ChannelModel) -> Style {
        Style::Queued
    }

    async fn start(&self, call: ImageCall<'_>) -> Result<Started, ProviderError> {
        self.begin(&call.attempt, &Order::of_pictures(&call)).await
    }
}

#[async_trait]
impl VideoProvider for Replicate {
    async fn start(&self, call: VideoCall<'_>) -> Result<Started, ProviderError> {
        self.begin(&call.attempt, &Order::of_film(&call)).await
    }
}

#[async_trait]
impl SpeechProvider for Replicate {
    fn style(&self, _: &ChannelModel) -> Style {
        Style::Queued
    }

    async fn start(&self, call: SpeechCall<'_>) -> Result<Started, ProviderError> {
        self.begin(&call.attempt, &Order::of_speech(&call)).await
    }
}

#[async_trait]
impl Queue for Replicate {
    fn rhythm(&self, kind: TaskKind) -> Rhythm {
        match kind {
            TaskKind::Video => Rhythm::every(5),
            TaskKind::Image | TaskKind::Speech => Rhythm::every(2),
        }
    }

    async fn poll(&self, call: QueueCall<'_>) -> Result<Polled, ProviderError> {
        poll_all(&call, |id| self.ask(&call, id)).await
    }

    async fn cancel(&self, call: QueueCall<'_>) -> Result<(), ProviderError> {
        for id in tickets(call.ticket).into_iter().flatten() {
            let url = [&self.prediction(&id), "/cancel"].concat();
            let ask = Ask::bare(Method::POST, url).within(POLL_TIME);
            let answer = self.wire.ask(ask.authorized("Bearer ", call.key)?).await?;
            // What has ended, or is not known any more, needs no cancelling.
            if !answer.status.is_success() && !matches!(answer.status.as_u16(), 400 | 404 | 422) {
                return Err(answer::refusal(&self.wire, &answer));
            }
        }
        Ok(())
    }
}
