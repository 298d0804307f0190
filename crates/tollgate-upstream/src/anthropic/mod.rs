//! Anthropic: the Messages API. <https://docs.anthropic.com/en/api/messages>

mod chat_models;
mod headers;
mod usage;

use std::sync::Arc;

use async_trait::async_trait;
use http::Uri;
use tollgate_chat::Format;
use tollgate_chat::messages::Messages;

use crate::adapter::{self, ProviderClient};
use crate::channel::Channel;
use crate::chat::{ChatBody, ChatCall, ChatModel, ChatProvider};
use crate::egress;
use crate::error::ProviderError;
use crate::provider::{EnvironmentChannel, Provider, Settings, UsageReport};
use headers::{BETA, KEY, OUR_VERSION, VERSION};

pub(crate) const BASE_URL: &str = "https://api.anthropic.com";
const PATH: &str = "/v1/messages";

static FORMATS: [&dyn Format; 1] = [&Messages];

/// The usual environment variables of the key, and the models of a first configuration.
pub(crate) const ENVIRONMENT: EnvironmentChannel = EnvironmentChannel {
    keys: &["ANTHROPIC_API_KEY"],
    base_url: Some("ANTHROPIC_BASE_URL"),
    models: &[
        "claude-haiku-4-5-20251001",
        "claude-sonnet-4-5-20250929",
        "claude-sonnet-4-5-20250929-thinking",
        "claude-opus-4-1-20250805",
        "claude-opus-4-1-20250805-thinking",
    ],
};

/// Opens the provider for one channel.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let base = channel.base_url.as_deref().unwrap_or(BASE_URL);
    let base = base.trim_end_matches('/');
    let anthropic = Anthropic {
        client: ProviderClient::new(channel, egress),
        uri: adapter::uri(base, PATH).ok(),
    };
    let usage = channel.admin_key.clone().map(|admin_key| {
        let (http, base) = (ProviderClient::new(channel, egress), base.to_owned());
        Arc::new(usage::AnthropicUsage {
            http,
            base,
            admin_key,
        }) as Arc<dyn UsageReport>
    });
    Provider {
        usage,
        chat: Some(Arc::new(anthropic)),
        ..Provider::default()
    }
}

struct Anthropic {
    client: ProviderClient,
    /// The URI of the Messages endpoint; `None` if the base URL is not a valid URL.
    uri: Option<Uri>,
}

#[async_trait]
impl ChatProvider for Anthropic {
    fn formats(&self) -> &[&'static dyn Format] {
        &FORMATS
    }

    fn model(&self, upstream_model: &str) -> ChatModel {
        chat_models::model(upstream_model)
    }

    async fn send(&self, call: ChatCall<'_>) -> Result<ChatBody, ProviderError> {
        let uri = self.uri.clone();
        let uri = uri.ok_or_else(ProviderError::unsupported_format)?;
        let key = call
            .key
            .map(|key| adapter::secret_value("", key))
            .transpose()?;
        let key = key.map(|value| (KEY, value));
        // Clients may send the header several times; all values are forwarded.
        let beta: Vec<_> = call.headers.get_all(&BETA).iter().cloned().collect();
        let beta = beta.into_iter().map(|value| (BETA, value));
        let own = [(VERSION, OUR_VERSION)].into_iter().chain(key).chain(beta);
        self.client.send_chat(call, uri, own).await
    }
}
