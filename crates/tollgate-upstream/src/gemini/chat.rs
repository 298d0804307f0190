//! Chats through `generateContent` and `streamGenerateContent`.

use async_trait::async_trait;
use tollgate_chat::Format;
use tollgate_chat::generate_content::GenerateContent;

use super::chat_models;
use super::client::{Gemini, model_path};
use crate::adapter;
use crate::chat::{ChatBody, ChatCall, ChatModel, ChatProvider};
use crate::error::{ProviderError, UpstreamErrorKind};

static FORMATS: [&dyn Format; 1] = [&GenerateContent];

#[async_trait]
impl ChatProvider for Gemini {
    fn formats(&self) -> &[&'static dyn Format] {
        &FORMATS
    }

    fn model(&self, upstream_model: &str) -> ChatModel {
        chat_models::model(upstream_model)
    }

    async fn send(&self, call: ChatCall<'_>) -> Result<ChatBody, ProviderError> {
        let method = if call.stream {
            "streamGenerateContent?alt=sse"
        } else {
            "generateContent"
        };
        let path = [model_path(call.model).as_str(), ":", method].concat();
        let uri = adapter::uri(&self.endpoint.base, &path)?;
        let header = self.access.header(&self.client, call.key).await;
        let header = header.map_err(|error| chat_error(&error))?;
        let key = call.key;
        let result = self.client.send_chat(call, uri, header).await;
        if let Err(error) = &result {
            self.access.discard_if_rejected(key, error.status).await;
        }
        result
    }
}

/// The error of a chat for which no access token could be fetched.
fn chat_error(error: &ProviderError) -> ProviderError {
    let kind = match error.kind {
        UpstreamErrorKind::KeyRejected => UpstreamErrorKind::KeyRejected,
        UpstreamErrorKind::RateLimited => UpstreamErrorKind::RateLimited,
        _ => UpstreamErrorKind::Unavailable,
    };
    ProviderError::new(kind, error.message.clone())
}
