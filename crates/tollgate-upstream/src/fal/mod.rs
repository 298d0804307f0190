//! fal: pictures, films and speech of any model there, by configured mapping, made in its queue.

mod answer;
mod models;
mod place;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::Value;
use tollgate_core::Secret;

use crate::channel::Channel;
use crate::egress;
use crate::mapped::{self, Preset, Request, Service, State};
use crate::provider::{Link, Provider, ProviderError, ProviderErrorKind, Settings};
use crate::wire::{Answer, Ask, Slots, Wire, segment};
use models::PRESETS;
use place::Place;

const BASE_URL: &str = "https://queue.fal.run";
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const POLL_TIME: Duration = Duration::from_secs(30);
/// The largest output: it holds links, but some models tell much beside.
const LARGEST_OUTPUT: usize = 16 * 1024 * 1024;

/// Checks the options of a channel's models.
pub(crate) fn check(channel: &Channel) -> Result<(), String> {
    mapped::check(channel, PRESETS)
}

/// Opens the provider for one channel.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let base = channel.base_url.as_deref().unwrap_or(BASE_URL);
    mapped::open(Fal {
        wire: Wire::new(channel, egress),
        base: base.trim_end_matches('/').to_owned(),
    })
}

struct Fal {
    wire: Wire,
    base: String,
}

impl Fal {
    async fn exchange(&self, ask: Ask, key: Option<&Secret>) -> Result<Answer, ProviderError> {
        let ask = ask.within(POLL_TIME).at_most(LARGEST_OUTPUT);
        self.wire.ask(ask.authorized("Key ", key)?).await
    }
}

/// A ticket says where the request is followed.
#[async_trait]
impl Service for Fal {
    const PRESETS: &'static [Preset] = PRESETS;

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

    async fn look(&self, ticket: &str, key: Option<&Secret>) -> Result<State, ProviderError> {
        let place = Place::of_ticket(ticket).on(&self.base);
        let answer = self.exchange(Ask::get(&place.status), key).await?;
        if let Some(state) = answer::unfinished(&self.wire, &answer)? {
            return Ok(state);
        }
        let answer = self.exchange(Ask::get(&place.response), key).await?;
        answer::output(&self.wire, &answer)
    }

    fn result(&self, output: &Value, index: usize, url: &str) -> Result<Link, ProviderError> {
        if answer::is_blacked_out(output, index) {
            let words = "the upstream's safety checker refused this result";
            return Err(ProviderError::new(ProviderErrorKind::Moderated, words));
        }
        Ok(self.wire.link(&self.base, url, HeaderMap::new()))
    }

    async fn cancel(&self, ticket: &str, key: Option<&Secret>) -> Result<(), ProviderError> {
        let place = Place::of_ticket(ticket).on(&self.base);
        let ask = Ask::bare(Method::PUT, &place.cancel);
        let answer = self.exchange(ask, key).await?;
        // 400: it has ended already. 404: it is not known any more.
        match answer.status.as_u16() {
            200..=299 | 400 | 404 => Ok(()),
            _ => Err(answer::refusal(&self.wire, &answer)),
        }
    }
}
