//! Google's Gemini API: the generate-content format.

mod models;

use std::sync::Arc;

use async_trait::async_trait;
use http::HeaderName;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tollgate_chat::Format;
use tollgate_chat::generate_content::GenerateContent;

use crate::channel::Channel;
use crate::chat::{ChatBody, ChatCall, ChatError, ChatModel, ChatProvider};
use crate::egress;
use crate::provider::{Provider, Settings};
use crate::wire::{self, Wire};

const BASE_URL: &str = "https://generativelanguage.googleapis.com";
/// The version that has tools, system instructions and thinking.
const VERSION: &str = "/v1beta";
/// Never the query's `key`: URLs end up in logs.
const KEY: HeaderName = HeaderName::from_static("x-goog-api-key");

/// What stays as it is in a model's id; a slash parts `tunedModels/x`.
const ID: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

static FORMATS: [&dyn Format; 1] = [&GenerateContent];

/// Opens the provider for one channel.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let base = channel.base_url.as_deref().unwrap_or(BASE_URL);
    let gemini = Gemini {
        wire: Wire::new(channel, egress),
        base: [base.trim_end_matches('/'), VERSION].concat(),
    };
    Provider {
        chat: Some(Arc::new(gemini)),
        ..Provider::default()
    }
}

struct Gemini {
    wire: Wire,
    base: String,
}

#[async_trait]
impl ChatProvider for Gemini {
    fn formats(&self) -> &[&'static dyn Format] {
        &FORMATS
    }

    fn model(&self, upstream_model: &str) -> ChatModel {
        models::model(upstream_model)
    }

    async fn send(&self, call: ChatCall<'_>) -> Result<ChatBody, ChatError> {
        let uri = wire::uri(&self.base, &path(call.model, call.stream))?;
        let key = call
            .key
            .map(|key| wire::secret_value("", key))
            .transpose()?;
        let key = key.map(|value| (KEY, value));
        self.wire.post(call, uri, key).await
    }
}

/// The path behind the version.
fn path(model: &str, stream: bool) -> String {
    let folder = if model.contains('/') { "/" } else { "/models/" };
    let model = utf8_percent_encode(model, ID);
    let method = if stream {
        "streamGenerateContent?alt=sse"
    } else {
        "generateContent"
    };
    format!("{folder}{model}:{method}")
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn the_model_is_in_the_path() {
        assert_eq!(
            path("gemini-2.5-pro", false),
            "/models/gemini-2.5-pro:generateContent"
        );
        assert_eq!(
            path("tunedModels/x", true),
            "/tunedModels/x:streamGenerateContent?alt=sse"
        );
        assert_eq!(
            path("a?key=b#c d", false),
            "/models/a%3Fkey%3Db%23c%20d:generateContent"
        );
    }
}
