//! The trait and types of providers of chat.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use http::HeaderMap;
use tollgate_chat::messages::Messages;
use tollgate_chat::{Format, hub};
use tollgate_core::Secret;

use crate::egress::{EgressError, ResponseBody};
use crate::error::ProviderError;
use crate::trace_headers::TraceHeaders;

/// Sends chat requests to an upstream.
#[async_trait]
pub trait ChatProvider: Send + Sync {
    /// The formats that the provider supports, best first. Requests in one of them are forwarded unchanged; others are translated to the first.
    fn formats(&self) -> &[&'static dyn Format];

    /// The formats for one model, if some models support fewer than others.
    fn formats_for(&self, upstream_model: &str) -> &[&'static dyn Format] {
        let _ = upstream_model;
        self.formats()
    }

    /// The properties of the model with the configured id `upstream_model`.
    fn model(&self, upstream_model: &str) -> ChatModel;

    /// Whether the provider's server stores conversations as threads, so that requests may have the `thread` of the messages format. True for a
    /// server of that format: if it stores none, it returns an error itself.
    fn stores_threads(&self, upstream_model: &str) -> bool {
        let mut formats = self.formats_for(upstream_model).iter();
        formats.any(|format| format.name() == Messages.name())
    }

    /// Sends one request. Returns when the head of a successful response (2xx with the right content type) has arrived; anything else is an error.
    /// Dropping the future or the body aborts the exchange with the upstream at once.
    async fn send(&self, call: ChatCall<'_>) -> Result<ChatBody, ProviderError>;
}

/// The properties of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatModel {
    /// The model id in the upstream request, without the suffix `-thinking`, which only the gateway uses.
    pub upstream_id: String,
    /// The fields and values that the model supports.
    pub capabilities: hub::ModelCapabilities,
    /// The reasoning that the model's name implies, used if the client sets none.
    pub reasoning: Option<hub::Reasoning>,
}

/// One chat call.
pub struct ChatCall<'a> {
    /// One of [`ChatProvider::formats`]: the format of `body` and of the response.
    pub format: &'static dyn Format,
    /// [`ChatModel::upstream_id`].
    pub model: &'a str,
    /// Whether a stream is requested.
    pub stream: bool,
    /// The request, in `format`.
    pub body: Bytes,
    /// The key to use. `None` if the channel has no keys.
    pub key: Option<&'a Secret>,
    /// The client's headers: a provider forwards only the headers of its own protocol that the adapter lists (`anthropic-beta`).
    pub headers: &'a HeaderMap,
    /// The request's id, for providers with a request-id header.
    pub request_id: &'a str,
    /// The trace context that the provider's server receives. `None` if the channel forwards none or the chat is not traced.
    pub trace: Option<&'a TraceHeaders>,
    /// The number of earlier attempts at this request that failed.
    pub failed_attempts: u32,
    /// The timeouts of this call.
    pub timeouts: ChatTimeouts,
}

/// Timeouts of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatTimeouts {
    /// The timeout for a connection: DNS lookup, TCP and TLS.
    pub connect: Duration,
    /// The timeout from sending the request to the head of the response.
    pub first_byte: Duration,
    /// The timeout between two chunks of the response.
    pub idle: Duration,
}

/// The body of a successful response, read chunk by chunk.
pub enum ChatBody {
    /// A body from the network.
    Http(ResponseBody),
    /// A locally generated body (sandbox).
    Local(BoxStream<'static, Result<Bytes, EgressError>>),
}

impl ChatBody {
    /// The next chunk. `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, EgressError> {
        use futures_util::StreamExt as _;
        match self {
            Self::Http(body) => body.chunk().await,
            Self::Local(stream) => stream.next().await.transpose(),
        }
    }
}
