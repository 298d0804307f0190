//! OpenAI and servers with the same API: Chat Completions and Responses; images, videos and speech in [`media`].

mod media;
mod models;

use std::sync::Arc;

use async_trait::async_trait;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue, Uri};
use tollgate_chat::Format;
use tollgate_chat::chat_completions::ChatCompletions;
use tollgate_chat::responses::Responses;
use url::Url;

use crate::adapter::{self, ProviderClient};
use crate::channel::Channel;
use crate::chat::{ChatBody, ChatCall, ChatModel, ChatProvider};
use crate::egress;
use crate::error::ProviderError;
use crate::provider::{Provider, Settings};

pub(crate) use media::{FIELD_SUPPORT, check};

const BASE_URL: &str = "https://api.openai.com/v1";
/// Documented for finding a request again; other servers ignore it.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-client-request-id");

/// The formats, best first.
static FORMATS: [&dyn Format; 2] = [&ChatCompletions, &Responses];

/// Opens the provider for one channel.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let mut provider = Provider {
        chat: Some(Arc::new(OpenAi::new(channel, egress))),
        ..Provider::default()
    };
    media::add(&mut provider, channel, egress);
    provider
}

struct OpenAi {
    client: ProviderClient,
    /// Whether this is OpenAI itself rather than a server like it.
    is_vendor: bool,
    formats: Vec<&'static dyn Format>,
    /// Of those the ones for models that answer under one path only.
    responses_only: Vec<&'static dyn Format>,
    /// In the order of `formats`; `None` if the base URL is no URL.
    uris: Vec<Option<Uri>>,
}

fn path(format: &dyn Format) -> &'static str {
    if format.name() == Responses.name() {
        "/responses"
    } else {
        "/chat/completions"
    }
}

impl OpenAi {
    fn new(channel: &Arc<Channel>, egress: &egress::Client) -> Self {
        let base = channel.base_url.as_deref().unwrap_or(BASE_URL);
        let host = |text: &str| Some(Url::parse(text).ok()?.host_str()?.to_owned());
        let formats = channel.chat_formats(&FORMATS);
        let is_responses = |format: &&dyn Format| format.name() == Responses.name();
        Self {
            client: ProviderClient::new(channel, egress),
            is_vendor: host(base) == host(BASE_URL),
            responses_only: formats.iter().copied().filter(is_responses).collect(),
            uris: formats
                .iter()
                .map(|format| adapter::uri(base, path(*format)).ok())
                .collect(),
            formats,
        }
    }
}

#[async_trait]
impl ChatProvider for OpenAi {
    fn formats(&self) -> &[&'static dyn Format] {
        &self.formats
    }

    fn formats_for(&self, upstream_model: &str) -> &[&'static dyn Format] {
        if models::is_responses_only(upstream_model) && !self.responses_only.is_empty() {
            return &self.responses_only;
        }
        &self.formats
    }

    fn model(&self, upstream_model: &str) -> ChatModel {
        ChatModel {
            upstream_id: upstream_model.to_owned(),
            traits: models::traits(upstream_model, self.is_vendor),
            reasoning: None,
        }
    }

    async fn send(&self, call: ChatCall<'_>) -> Result<ChatBody, ProviderError> {
        let name = call.format.name();
        let place = self.formats.iter().position(|f| f.name() == name);
        let uri = place.and_then(|at| self.uris[at].clone());
        let uri = uri.ok_or_else(ProviderError::unsupported_format)?;
        let key = call
            .key
            .map(|key| adapter::secret_value("Bearer ", key))
            .transpose()?;
        let key = key.map(|value| (AUTHORIZATION, value));
        let id = HeaderValue::from_str(call.request_id).ok();
        let id = id.map(|value| (REQUEST_ID, value));
        self.client
            .send_chat(call, uri, key.into_iter().chain(id))
            .await
    }
}
