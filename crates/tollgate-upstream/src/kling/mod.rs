//! Kling: speech, returned within the call, and videos, as tasks in its queue.

mod auth;
mod mp3;
mod response;
mod speech;
mod text_parts;
mod videos;

use std::sync::Arc;

use serde_json::Value;
use tollgate_core::Secret;

use crate::adapter::{HttpRequest, HttpResponse, ProviderClient, missing_job_id_error};
use crate::channel::{Channel, known_options};
use crate::egress;
use crate::error::ProviderError;
use crate::provider::FieldSupport;
use crate::provider::{Provider, Settings};
use auth::Signer;
use speech::Voices;

/// The site outside China. Keys of one site are unknown to the other.
const BASE_URL: &str = "https://api-singapore.klingai.com";
/// A token that is not valid yet, or not any more: clocks differ.
const CLOCK_CODES: [i64; 2] = [1003, 1004];

/// What becomes of the fields of its family.
pub(crate) static FIELD_SUPPORT: &[FieldSupport] = &[FieldSupport {
    family: "native-v3",
    fields: &[
        (
            "input",
            "`text`; over 1000 characters in several calls, cut at sentence ends",
        ),
        (
            "voice",
            "`voice_id`; without one the channel's voice for the language",
        ),
        ("speed", "`voice_speed`, within 0.8 to 2.0, one decimal"),
        (
            "language",
            "`voice_language`; without one `zh` or `en` by the text's script",
        ),
        ("instructions", "not carried: the provider takes none"),
        (
            "external_task_id",
            "not carried: the gateway's own records have it",
        ),
    ],
}];

/// Checks the options of a channel.
pub(crate) fn check(channel: &Channel) -> Result<(), String> {
    known_options(channel, &["voices"], &[])?;
    Voices::of(channel).map(drop)
}

/// Opens the provider for one channel.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let Ok(voices) = Voices::of(channel) else {
        return Provider::default();
    };
    let base = channel.base_url.as_deref().unwrap_or(BASE_URL);
    let kling = Arc::new(Kling {
        client: Arc::new(ProviderClient::new(channel, egress)),
        base: base.trim_end_matches('/').to_owned(),
        signer: Signer::default(),
        voices,
    });
    Provider {
        video: Some(kling.clone()),
        speech: Some(kling.clone()),
        queue: Some(kling),
        ..Provider::default()
    }
}

struct Kling {
    client: Arc<ProviderClient>,
    base: String,
    signer: Signer,
    voices: Voices,
}

impl Kling {
    /// Asks what `make` makes; returns the `data` of the answer.
    async fn data(
        &self,
        key: Option<&Secret>,
        make: impl Fn() -> HttpRequest,
    ) -> Result<Value, ProviderError> {
        let answer = self.exchange(key, make).await?;
        response::data(&self.client, &answer)
    }

    /// The same of a request that creates something.
    async fn created(
        &self,
        key: Option<&Secret>,
        make: impl Fn() -> HttpRequest,
    ) -> Result<Value, ProviderError> {
        let answer = self.exchange(key, make).await?;
        response::data(&self.client, &answer).map_err(|error| missing_job_id_error(&answer, error))
    }

    /// Asks what `make` makes, and once more where only the clock was wrong.
    async fn exchange(
        &self,
        key: Option<&Secret>,
        make: impl Fn() -> HttpRequest,
    ) -> Result<HttpResponse, ProviderError> {
        let ask = || {
            let bearer = key.map(|key| self.signer.bearer(key));
            make().with_authorization("Bearer ", bearer.as_ref())
        };
        let answer = self.client.send(ask()?).await?;
        let is_early_or_late = response::code(&answer).is_some_and(|c| CLOCK_CODES.contains(&c));
        let is_signed = key.is_some_and(|key| auth::pair(key).is_some());
        if is_early_or_late && is_signed && self.signer.set_clock(&answer.headers) {
            tracing::warn!("this machine's clock differs from the upstream's: look at it");
            return self.client.send(ask()?).await;
        }
        Ok(answer)
    }
}
