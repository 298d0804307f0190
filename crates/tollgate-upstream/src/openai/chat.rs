//! Chats through Chat Completions and Responses, of OpenAI and of compatible servers.

use std::sync::Arc;

use async_trait::async_trait;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue, Uri};
use tollgate_chat::Format;
use tollgate_chat::chat_completions::ChatCompletions;
use tollgate_chat::responses::Responses;
use url::Url;

use super::chat_models;
use super::client::BASE_URL;
use crate::adapter::{self, ProviderClient};
use crate::channel::Channel;
use crate::chat::{ChatBody, ChatCall, ChatModel, ChatProvider};
use crate::egress;
use crate::error::ProviderError;

/// A request header that OpenAI documents for finding a request again; other servers ignore it.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-client-request-id");

/// The formats, best first.
static FORMATS: [&dyn Format; 2] = [&ChatCompletions, &Responses];

pub(super) struct OpenAi {
    client: ProviderClient,
    /// Whether the server is OpenAI itself rather than a compatible server.
    is_openai: bool,
    formats: Vec<&'static dyn Format>,
    /// Only the Responses format, for models that do not support Chat Completions.
    responses_only: Vec<&'static dyn Format>,
    /// The URI of each format, in the order of `formats`; `None` if the base URL is not a valid URL.
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
    pub(super) fn new(channel: &Arc<Channel>, egress: &egress::Client) -> Self {
        let base = channel.base_url.as_deref().unwrap_or(BASE_URL);
        let host = |text: &str| Some(Url::parse(text).ok()?.host_str()?.to_owned());
        let formats = channel.chat_formats(&FORMATS);
        let is_responses = |format: &&dyn Format| format.name() == Responses.name();
        Self {
            client: ProviderClient::new(channel, egress),
            is_openai: host(base) == host(BASE_URL),
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
        if chat_models::is_responses_only(upstream_model) && !self.responses_only.is_empty() {
            return &self.responses_only;
        }
        &self.formats
    }

    fn model(&self, upstream_model: &str) -> ChatModel {
        ChatModel {
            upstream_id: upstream_model.to_owned(),
            capabilities: chat_models::capabilities(upstream_model, self.is_openai),
            reasoning: None,
        }
    }

    async fn send(&self, call: ChatCall<'_>) -> Result<ChatBody, ProviderError> {
        let name = call.format.name();
        let index = self.formats.iter().position(|f| f.name() == name);
        let uri = index.and_then(|index| self.uris[index].clone());
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
