//! Chat: what a provider of text does for the relay, and how its calls end.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use http::HeaderMap;
use tollgate_chat::{Format, hub};
use tollgate_core::Secret;

use crate::egress::{EgressError, ResponseBody};

/// Answers chat requests.
#[async_trait]
pub trait ChatProvider: Send + Sync {
    /// The formats it speaks, best first. A client whose format is among them is passed through; others are translated to the first.
    fn formats(&self) -> &[&'static dyn Format];

    /// The same for one model, where some are served in fewer formats than others.
    fn formats_for(&self, upstream_model: &str) -> &[&'static dyn Format] {
        let _ = upstream_model;
        self.formats()
    }

    /// What is known of the model behind `upstream_model` (the configured id).
    fn model(&self, upstream_model: &str) -> ChatModel;

    /// Sends one request. Returns once the head of a good answer (2xx with the right content type) is there; everything else is an
    /// error. Dropping the future or the answer's body ends the exchange with the upstream at once.
    async fn send(&self, call: ChatCall<'_>) -> Result<ChatBody, ChatError>;
}

/// What a provider knows of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatModel {
    /// The id that goes over the wire (`…-thinking` of SPEC.md is a spelling of ours: without it).
    pub wire: String,
    /// What it takes and refuses.
    pub traits: hub::ModelTraits,
    /// The thinking that its name asks for where the client says nothing of it.
    pub reasoning: Option<hub::Reasoning>,
}

/// One call.
pub struct ChatCall<'a> {
    /// One of [`ChatProvider::formats`]: what `body` is written in and the answer will be.
    pub format: &'static dyn Format,
    /// [`ChatModel::wire`].
    pub model: &'a str,
    /// Whether a stream is asked for.
    pub stream: bool,
    /// The request, in `format`.
    pub body: Bytes,
    /// The key to use; none where the channel has none.
    pub key: Option<&'a Secret>,
    /// The client's headers: a provider takes those of its own protocol that it knows (`anthropic-beta`), and nothing else.
    pub headers: &'a HeaderMap,
    /// The request's id, for the provider's own request-id header where it has one.
    pub request_id: &'a str,
    /// Attempts at this request that failed before.
    pub failed_attempts: u32,
    /// How long to wait.
    pub timeouts: ChatTimeouts,
}

/// How long to wait for an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatTimeouts {
    /// For a connection: resolving, TCP and TLS.
    pub connect: Duration,
    /// From sending to the head of the answer.
    pub first_byte: Duration,
    /// From one part of the answer to the next.
    pub idle: Duration,
}

/// The body of a good answer, read part by part.
pub enum ChatBody {
    /// From the network.
    Wire(ResponseBody),
    /// Made here (sandbox).
    Local(BoxStream<'static, Result<Bytes, EgressError>>),
}

impl ChatBody {
    /// The next part, or none at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, EgressError> {
        use futures_util::StreamExt as _;
        match self {
            Self::Wire(body) => body.chunk().await,
            Self::Local(stream) => stream.next().await.transpose(),
        }
    }

    /// All of it, if it is no larger than `max` bytes.
    pub async fn collect(mut self, max: usize) -> Result<Bytes, EgressError> {
        let Some(first) = self.chunk().await? else {
            return Ok(Bytes::new());
        };
        // Most replies are one part: no copy.
        let Some(second) = self.chunk().await? else {
            return Ok(first);
        };
        let mut all = bytes::BytesMut::from(first);
        let mut next = Some(second);
        while let Some(part) = next {
            if all.len() + part.len() > max {
                return Err(EgressError::TooLarge { max: max as u64 });
            }
            all.extend_from_slice(&part);
            next = self.chunk().await?;
        }
        Ok(all.freeze())
    }
}

/// Why a call gave no good answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ChatError {
    /// Decides what is tried next.
    pub kind: ChatErrorKind,
    /// The upstream's HTTP status, where there was one.
    pub status: Option<u16>,
    /// For the client: the upstream's words without secrets and host names, or ours.
    pub message: String,
    /// The upstream's machine-readable name of it, if any.
    pub code: Option<String>,
    /// How long the upstream asks to be left alone.
    pub retry_after: Option<Duration>,
}

/// What kind of failure it was (CONTRACT.md › Sharper points).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatErrorKind {
    /// No connection.
    Connect,
    /// No answer in time.
    TimedOut,
    /// 408, 409, 5xx, a broken connection, an answer that is none (HTML, wrong content type).
    Unavailable,
    /// 429: this key has had enough for now.
    RateLimited,
    /// 401, 403: this key is refused.
    KeyRefused,
    /// 402, or a 429/400/403 that says that credit or quota is used up: this key can do nothing until somebody pays.
    QuotaExhausted,
    /// 404, or a 400 that says so: the upstream does not have this model.
    ModelMissing,
    /// Any other 4xx: the client's request is at fault, no other channel would think otherwise.
    Rejected,
}
