//! fal: pictures, films and speech of any model there, by configured mapping, made in its queue.

mod answer;
mod models;
mod place;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method};
use tollgate_core::{Secret, TaskKind};

use crate::channel::{Channel, ChannelModel, known_options};
use crate::egress;
use crate::mapped::{self, Mapping, Order, Request, poll_all, submit_all, tickets};
use crate::provider::{
    Attempt, ImageCall, ImageProvider, Polled, Provider, ProviderError, ProviderErrorKind, Queue,
    QueueCall, Rhythm, Settings, SpeechCall, SpeechProvider, Started, Style, VideoCall,
    VideoProvider,
};
use crate::wire::{Answer, Ask, Slots, Wire, segment};
use answer::{Output, State};
use models::PRESETS;
use place::Place;

const BASE_URL: &str = "https://queue.fal.run";
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const POLL_TIME: Duration = Duration::from_secs(30);
/// The largest output: it holds links, but some models tell much beside.
const LARGEST_OUTPUT: usize = 16 * 1024 * 1024;

/// Checks the options of a channel's models.
pub(crate) fn check(channel: &Channel) -> Result<(), String> {
    let of_models = ["input", "constants", "output", "with_images"];
    known_options(channel, &[], &of_models)?;
    mapped::check(channel, PRESETS)
}

/// Opens the provider for one channel.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let base = channel.base_url.as_deref().unwrap_or(BASE_URL);
    let fal = Arc::new(Fal {
        wire: Wire::new(channel, egress),
        base: base.trim_end_matches('/').to_owned(),
    });
    Provider {
        image: Some(fal.clone()),
        video: Some(fal.clone()),
        speech: Some(fal.clone()),
        queue: Some(fal),
        ..Provider::default()
    }
}

struct Fal {
    wire: Wire,
    base: String,
}

impl Fal {
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

    /// Submits one request; returns where it is followed.
    async fn submit(
        &self,
        request: Request,
        slots: Slots,
        key: Option<&Secret>,
    ) -> Result<String, ProviderError> {
        let id: Vec<String> = request.upstream.split('/').map(segment).collect();
        let url = format!("{}/{}", self.base, id.join("/"));
        let ask = Ask::post_parts(url, JSON, slots.fill(&request.input)).once();
        let answer = self.wire.ask(ask.authorized("Key ", key)?).await?;
        let place = answer::accepted(&self.wire, &answer)?;
        Ok(place.within(&self.base).ticket())
    }

    async fn exchange(&self, ask: Ask, key: Option<&Secret>) -> Result<Answer, ProviderError> {
        let ask = ask.within(POLL_TIME).at_most(LARGEST_OUTPUT);
        self.wire.ask(ask.authorized("Key ", key)?).await
    }

    async fn ask(
        &self,
        call: &QueueCall<'_>,
        ticket: String,
    ) -> Result<mapped::Task, ProviderError> {
        let place = Place::of_ticket(&ticket).on(&self.base);
        let answer = self.exchange(Ask::get(&place.status), call.key).await?;
        match answer::state(&self.wire, &answer)? {
            State::Open => return Ok(mapped::Task::Open),
            State::Failed(error) => return Ok(mapped::Task::Failed(error)),
            State::Completed => {}
        }
        let answer = self.exchange(Ask::get(&place.response), call.key).await?;
        Ok(match answer::output(&self.wire, &answer)? {
            Output::TooEarly => mapped::Task::Open,
            Output::Failed(error) => mapped::Task::Failed(error),
            Output::Ready(output) => {
                let mapping = Mapping::for_call(call.model, PRESETS)?;
                let links = mapping.outputs.links(&output).into_iter().enumerate();
                let results = links.map(|(index, url)| {
                    if answer::is_blacked_out(&output, index) {
                        let words = "the upstream's safety checker refused this result";
                        return Err(ProviderError::new(ProviderErrorKind::Moderated, words));
                    }
                    Ok(self.wire.link(&self.base, url, HeaderMap::new()))
                });
                mapped::Task::Done(results.collect())
            }
        })
    }
}

#[async_trait]
impl ImageProvider for Fal {
    fn style(&self, _: &ChannelModel) -> Style {
        Style::Queued
    }

    async fn start(&self, call: ImageCall<'_>) -> Result<Started, ProviderError> {
        self.begin(&call.attempt, &Order::of_pictures(&call)).await
    }
}

#[async_trait]
impl VideoProvider for Fal {
    async fn start(&self, call: VideoCall<'_>) -> Result<Started, ProviderError> {
        self.begin(&call.attempt, &Order::of_film(&call)).await
    }
}

#[async_trait]
impl SpeechProvider for Fal {
    fn style(&self, _: &ChannelModel) -> Style {
        Style::Queued
    }

    async fn start(&self, call: SpeechCall<'_>) -> Result<Started, ProviderError> {
        self.begin(&call.attempt, &Order::of_speech(&call)).await
    }
}

#[async_trait]
impl Queue for Fal {
    fn rhythm(&self, kind: TaskKind) -> Rhythm {
        match kind {
            TaskKind::Video => Rhythm::every(5),
            TaskKind::Image | TaskKind::Speech => Rhythm::every(2),
        }
    }

    async fn poll(&self, call: QueueCall<'_>) -> Result<Polled, ProviderError> {
        poll_all(&call, |ticket| self.ask(&call, ticket)).await
    }

    async fn cancel(&self, call: QueueCall<'_>) -> Result<(), ProviderError> {
        for ticket in tickets(call.ticket).into_iter().flatten() {
            let place = Place::of_ticket(&ticket).on(&self.base);
            let ask = Ask::bare(Method::PUT, &place.cancel);
            let answer = self.exchange(ask, call.key).await?;
            // 400: it has ended already. 404: it is not known any more.
            if !answer.status.is_success() && !matches!(answer.status.as_u16(), 400 | 404) {
                return Err(answer::refusal(&self.wire, &answer));
            }
        }
        Ok(())
    }
}
