//! Replicate: pictures, films and speech of any model there, by configured mapping, made in its queue.

mod answer;
mod models;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::{Value, json};
use tollgate_core::Secret;

use crate::channel::Channel;
use crate::egress;
use crate::mapped::{self, Preset, Request, Service, State};
use crate::provider::{Link, Provider, ProviderError, Settings};
use crate::wire::{Answer, Ask, Slots, Wire, segment};
use models::PRESETS;

const BASE_URL: &str = "https://api.replicate.com/v1";
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const POLL_TIME: Duration = Duration::from_secs(30);

/// Checks the options of a channel's models.
pub(crate) fn check(channel: &Channel) -> Result<(), String> {
    mapped::check(channel, PRESETS)
}

/// Opens the provider for one channel.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let base = channel.base_url.as_deref().unwrap_or(BASE_URL);
    mapped::open(Replicate {
        wire: Wire::new(channel, egress),
        base: base.trim_end_matches('/').to_owned(),
    })
}

struct Replicate {
    wire: Wire,
    base: String,
}

impl Replicate {
    fn prediction(&self, id: &str) -> String {
        format!("{}/predictions/{}", self.base, segment(id))
    }

    async fn exchange(&self, ask: Ask, key: Option<&Secret>) -> Result<Answer, ProviderError> {
        let ask = ask.within(POLL_TIME);
        self.wire.ask(ask.authorized("Bearer ", key)?).await
    }
}

/// A ticket is a prediction's id.
#[async_trait]
impl Service for Replicate {
    const PRESETS: &'static [Preset] = PRESETS;

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

    async fn look(&self, id: &str, key: Option<&Secret>) -> Result<State, ProviderError> {
        let answer = self.exchange(Ask::get(self.prediction(id)), key).await?;
        answer::prediction(&self.wire, &answer)
    }

    fn result(&self, _: &Value, _: usize, url: &str) -> Result<Link, ProviderError> {
        Ok(self.wire.link(&self.base, url, HeaderMap::new()))
    }

    async fn cancel(&self, id: &str, key: Option<&Secret>) -> Result<(), ProviderError> {
        let url = [&self.prediction(id), "/cancel"].concat();
        let answer = self.exchange(Ask::bare(Method::POST, url), key).await?;
        // What has ended, or is not known any more, needs no cancelling.
        match answer.status.as_u16() {
            200..=299 | 400 | 404 | 422 => Ok(()),
            _ => Err(answer::refusal(&self.wire, &answer)),
        }
    }
}
