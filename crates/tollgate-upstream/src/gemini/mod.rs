//! Google's Gemini API, and the same models on the Agent Platform: chat, images of Gemini and Imagen, videos of Veo.

mod credentials;
mod errors;
mod field_support;
mod imagen;
mod images;
mod model_ids;
mod models;
mod platform;
mod service_account;
mod videos;

use std::sync::Arc;

use async_trait::async_trait;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tollgate_chat::Format;
use tollgate_chat::generate_content::GenerateContent;
use tollgate_core::Secret;

use self::credentials::Access;
use self::platform::Place;
use crate::adapter::{self, HttpRequest, ProviderClient};
use crate::channel::Channel;
use crate::chat::{ChatBody, ChatCall, ChatModel, ChatProvider};
use crate::egress;
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::{Provider, Settings};

pub(crate) use self::field_support::FIELD_SUPPORT;

/// What stays as it is in a model's id; a slash parts `tunedModels/x`.
const ID: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

static FORMATS: [&dyn Format; 1] = [&GenerateContent];

/// Opens the provider for one channel; without capabilities where [`check`] has something against it.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let Ok(place) = Place::of(channel) else {
        return Provider::default();
    };
    let gemini = Arc::new(Gemini {
        client: ProviderClient::new(channel, egress),
        access: Access::new(channel, place.surface),
        place,
    });
    Provider {
        image: Some(gemini.clone()),
        video: Some(gemini.clone()),
        queue: Some(gemini.clone()),
        chat: Some(gemini),
        ..Provider::default()
    }
}

/// Whether the channel's options and keys are such as Google's surfaces take.
pub(crate) fn check(channel: &Channel) -> Result<(), String> {
    credentials::check(channel, Place::of(channel)?.surface)
}

struct Gemini {
    client: ProviderClient,
    access: Access,
    place: Place,
}

impl Gemini {
    /// The address of a model's method.
    fn method(&self, model: &str, method: &str) -> String {
        [&self.place.base, path(model).as_str(), ":", method].concat()
    }

    async fn authorized(
        &self,
        ask: HttpRequest,
        key: Option<&Secret>,
    ) -> Result<HttpRequest, ProviderError> {
        let header = self.access.header(&self.client, key).await?;
        Ok(match header {
            Some((name, value)) => ask.header(name, value),
            None => ask,
        })
    }
}

#[async_trait]
impl ChatProvider for Gemini {
    fn formats(&self) -> &[&'static dyn Format] {
        &FORMATS
    }

    fn model(&self, upstream_model: &str) -> ChatModel {
        models::model(upstream_model)
    }

    async fn send(&self, call: ChatCall<'_>) -> Result<ChatBody, ProviderError> {
        let method = if call.stream {
            "streamGenerateContent?alt=sse"
        } else {
            "generateContent"
        };
        let path = [path(call.model).as_str(), ":", method].concat();
        let uri = adapter::uri(&self.place.base, &path)?;
        let header = self.access.header(&self.client, call.key).await;
        let header = header.map_err(|error| chat_error(&error))?;
        let key = call.key;
        let answer = self.client.send_chat(call, uri, header).await;
        if let Err(error) = &answer {
            self.access.answered(key, error.status).await;
        }
        answer
    }
}

/// Why there is no token for a chat.
fn chat_error(error: &ProviderError) -> ProviderError {
    let kind = match error.kind {
        UpstreamErrorKind::KeyRejected => UpstreamErrorKind::KeyRejected,
        UpstreamErrorKind::RateLimited => UpstreamErrorKind::RateLimited,
        _ => UpstreamErrorKind::Unavailable,
    };
    ProviderError::new(kind, error.message.clone())
}

/// The path of a model behind the version.
fn path(model: &str) -> String {
    let folder = if model.contains('/') { "/" } else { "/models/" };
    [folder, &utf8_percent_encode(model, ID).to_string()].concat()
}

fn not_served(family: &str, served: &str) -> ProviderError {
    ProviderError::new(
        UpstreamErrorKind::UnsupportedByChannel,
        format!("a channel of kind gemini serves {served}, not {family}"),
    )
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn the_model_is_in_the_path() {
        assert_eq!(path("gemini-2.5-pro"), "/models/gemini-2.5-pro");
        assert_eq!(path("tunedModels/x"), "/tunedModels/x");
        assert_eq!(path("a?key=b#c d"), "/models/a%3Fkey%3Db%23c%20d");
    }
}
