//! A provider of mapped models: what its own folder says, and everything else.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tollgate_core::{Secret, TaskKind};

use super::fan::{Task, poll_all, submit_all, tickets};
use super::order::Order;
use super::output::Outputs;
use super::{Mapping, Preset, Request};
use crate::channel::ChannelModel;
use crate::provider::{
    Attempt, ImageCall, ImageProvider, Link, Polled, Provider, ProviderError, Queue, QueueCall,
    Rhythm, SpeechCall, SpeechProvider, Started, Style, VideoCall, VideoProvider,
};
use crate::wire::Slots;

/// What one such provider does in its own way.
#[async_trait]
pub(crate) trait Service: Send + Sync + 'static {
    /// Fields of models that need no options.
    const PRESETS: &'static [Preset];

    /// Submits one call; returns the ticket that it is followed by. `slots` hold the files of the request's input.
    async fn submit(
        &self,
        request: Request,
        slots: Slots,
        key: Option<&Secret>,
    ) -> Result<String, ProviderError>;

    /// Asks once how far a call is.
    async fn look(&self, ticket: &str, key: Option<&Secret>) -> Result<State, ProviderError>;

    /// A link that is result number `index` of `output`, or why that result is missing.
    fn result(&self, output: &Value, index: usize, url: &str) -> Result<Link, ProviderError>;

    /// Tells that a call is not wanted any more. One that has ended, or is not known any more, needs no telling.
    async fn cancel(&self, ticket: &str, key: Option<&Secret>) -> Result<(), ProviderError>;
}

/// Where a call stands.
pub(crate) enum State {
    /// Not finished.
    Open,
    /// The model's output.
    Done(Value),
    /// It ended without one.
    Failed(ProviderError),
}

/// The provider of `service`'s models.
pub(crate) fn open(service: impl Service) -> Provider {
    let mapped = Arc::new(Mapped(service));
    Provider {
        image: Some(mapped.clone()),
        video: Some(mapped.clone()),
        speech: Some(mapped.clone()),
        queue: Some(mapped),
        ..Provider::default()
    }
}

struct Mapped<S>(S);

impl<S: Service> Mapped<S> {
    async fn begin(
        &self,
        attempt: &Attempt<'_>,
        order: &Order<'_>,
    ) -> Result<Started, ProviderError> {
        let mapping = Mapping::for_call(attempt.model, S::PRESETS)?;
        let mut calls = Vec::new();
        for (index, count) in (0..).zip(mapping.calls(order)) {
            let mut slots = Slots::new();
            let request = mapping.request(order, index, count, &mut slots)?;
            calls.push(self.0.submit(request, slots, attempt.key));
        }
        mapping.changes(order).tell(attempt.delivery);
        submit_all(calls).await
    }

    async fn look(&self, call: &QueueCall<'_>, ticket: String) -> Result<Task, ProviderError> {
        Ok(match self.0.look(&ticket, call.key).await? {
            State::Open => Task::Open,
            State::Failed(error) => Task::Failed(error),
            State::Done(output) => {
                let outputs: Outputs = Mapping::for_call(call.model, S::PRESETS)?.outputs;
                let links = outputs.links(&output).into_iter().enumerate();
                let results = links.map(|(index, url)| self.0.result(&output, index, url));
                Task::Done(results.collect())
            }
        })
    }
}

#[async_trait]
impl<S: Service> ImageProvider for Mapped<S> {
    fn style(&self, _: &ChannelModel) -> Style {
        Style::Queued
    }

    async fn start(&self, call: ImageCall<'_>) -> Result<Started, ProviderError> {
        self.begin(&call.attempt, &Order::of_pictures(&call)).await
    }
}

#[async_trait]
impl<S: Service> VideoProvider for Mapped<S> {
    async fn start(&self, call: VideoCall<'_>) -> Result<Started, ProviderError> {
        self.begin(&call.attempt, &Order::of_film(&call)).await
    }
}

#[async_trait]
impl<S: Service> SpeechProvider for Mapped<S> {
    fn style(&self, _: &ChannelModel) -> Style {
        Style::Queued
    }

    async fn start(&self, call: SpeechCall<'_>) -> Result<Started, ProviderError> {
        self.begin(&call.attempt, &Order::of_speech(&call)).await
    }
}

#[async_trait]
impl<S: Service> Queue for Mapped<S> {
    fn rhythm(&self, kind: TaskKind) -> Rhythm {
        match kind {
            TaskKind::Video => Rhythm::every(5),
            TaskKind::Image | TaskKind::Speech => Rhythm::every(2),
        }
    }

    async fn poll(&self, call: QueueCall<'_>) -> Result<Polled, ProviderError> {
        poll_all(&call, |ticket| self.look(&call, ticket)).await
    }

    async fn cancel(&self, call: QueueCall<'_>) -> Result<(), ProviderError> {
        for ticket in tickets(call.ticket).into_iter().flatten() {
            self.0.cancel(&ticket, call.key).await?;
        }
        Ok(())
    }
}
