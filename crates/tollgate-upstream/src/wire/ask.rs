//! One exchange with a provider of media: a request out, the whole answer back.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use serde_json::Value;
use tollgate_core::Secret;
use url::Url;

use super::{IDENTITY, JSON, Wire, clean, read_some, verdict, wait};
use crate::chat::ChatErrorKind;
use crate::egress::{EgressError, Parts, RequestBody, ResponseBody, Timeouts, body};
use crate::provider::{Link, ProviderError, ProviderErrorKind};

/// How long a provider may take to say that it has accepted a job, or how far it is.
const USUAL: Duration = Duration::from_secs(60);
/// How much of an answer is read where it holds no files.
const USUAL_MAX: usize = 4 * 1024 * 1024;

/// A question to a provider.
pub(crate) struct Ask {
    method: Method,
    uri: String,
    headers: HeaderMap,
    body: RequestBody,
    /// Until the head of the answer, and between its parts.
    time: Duration,
    /// Most bytes of the answer.
    pub(super) max: usize,
    /// Whether it makes something, so that it must not be asked again when the answer is lost.
    pub(super) creates: bool,
}

impl Ask {
    fn new(method: Method, uri: impl Into<String>) -> Self {
        Self {
            method,
            uri: uri.into(),
            headers: HeaderMap::new(),
            body: body(Bytes::new()),
            time: USUAL,
            max: USUAL_MAX,
            creates: false,
        }
    }

    /// A GET.
    pub(crate) fn get(uri: impl Into<String>) -> Self {
        Self::new(Method::GET, uri)
    }

    /// A request without a body.
    pub(crate) fn bare(method: Method, uri: impl Into<String>) -> Self {
        Self::new(method, uri)
    }

    /// A POST of JSON.
    pub(crate) fn post(uri: impl Into<String>, json: &Value) -> Self {
        Self {
            body: body(json.to_string()),
            ..Self::new(Method::POST, uri).header(CONTENT_TYPE, JSON)
        }
    }

    /// A POST of `parts`, which are of that type.
    pub(crate) fn post_parts(
        uri: impl Into<String>,
        content_type: HeaderValue,
        parts: Parts,
    ) -> Self {
        Self {
            body: parts.into(),
            ..Self::new(Method::POST, uri).header(CONTENT_TYPE, content_type)
        }
    }

    /// The same with a header.
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// The same with an `authorization` header of `before` and the key, if there is one.
    pub(crate) fn authorized(
        self,
        before: &str,
        key: Option<&Secret>,
    ) -> Result<Self, ProviderError> {
        self.keyed(AUTHORIZATION, before, key)
    }

    /// The same with the header `name` of `before` and the key, if there is one.
    pub(crate) fn keyed(
        self,
        name: HeaderName,
        before: &str,
        key: Option<&Secret>,
    ) -> Result<Self, ProviderError> {
        let Some(key) = key else {
            return Ok(self);
        };
        let value = super::secret_value(before, key);
        let value =
            value.map_err(|e| ProviderError::new(ProviderErrorKind::KeyRefused, e.message))?;
        Ok(self.header(name, value))
    }

    /// The same for an answer that is sound, or whatever else is no JSON.
    pub(crate) fn sound(self) -> Self {
        self.header(ACCEPT, HeaderValue::from_static("*/*"))
    }

    /// The same with that much time until the head of the answer, and between its parts.
    pub(crate) fn within(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// The same with at most that many bytes of answer.
    pub(crate) fn at_most(mut self, bytes: usize) -> Self {
        self.max = bytes;
        self
    }

    /// The same for what must not be sent twice: an answer that is lost after sending is
    /// [`ProviderErrorKind::Unknown`].
    pub(crate) fn once(mut self) -> Self {
        self.creates = true;
        self
    }
}

/// A provider's answer, good or not.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The body as JSON; null where it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Whether it is a success that begins as JSON does, and not some page on the way.
    pub(crate) fn is_begun(&self) -> bool {
        self.status.is_success() && self.body.trim_ascii_start().starts_with(b"{")
    }
}

impl Wire {
    /// Asks and reads the whole answer, whatever its status. Errors are of the way, not of the provider's words.
    pub(crate) async fn ask(&self, ask: Ask) -> Result<Answer, ProviderError> {
        let (max, creates) = (ask.max, ask.creates);
        let (head, rest) = self.open(ask).await?.into_parts();
        let body = if head.status.is_success() {
            let all = rest.collect(max).await;
            all.map_err(|error| lost(&error, creates))?
        } else {
            read_some(rest).await.into()
        };
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body,
        })
    }

    /// Asks and returns with the head of the answer, whatever its status.
    pub(crate) async fn open(&self, ask: Ask) -> Result<Response<ResponseBody>, ProviderError> {
        let uri = Uri::try_from(ask.uri).map_err(|_| {
            let message = "the channel's address or the upstream's model id makes no valid URL";
            ProviderError::new(ProviderErrorKind::ChannelUnfit, message)
        })?;
        let mut request = Request::new(ask.body);
        *request.method_mut() = ask.method;
        *request.uri_mut() = uri;
        *request.headers_mut() = ask.headers;
        let headers = request.headers_mut();
        headers.entry(ACCEPT).or_insert(JSON);
        headers.insert(ACCEPT_ENCODING, IDENTITY);
        let timeouts = Timeouts {
            connect: self.channel.time_limits.connect,
            first_byte: ask.time,
            idle: ask.time,
        };
        let sent = self.client.send(request, timeouts).await;
        sent.map_err(|error| lost(&error, ask.creates))
    }

    /// An error in the provider's words, without secrets. `answer` gives status and the wait that was asked for.
    pub(crate) fn told(
        &self,
        kind: ProviderErrorKind,
        answer: &Answer,
        message: &str,
    ) -> ProviderError {
        let status = answer.status.as_u16();
        let mut message = self.clean(message);
        if message.is_empty() {
            message = format!("the upstream answered with HTTP status {status}");
        }
        ProviderError {
            kind,
            message,
            status: Some(status),
            retry_after: wait::asked(&answer.headers),
        }
    }

    /// A provider's words without keys and addresses of ours.
    pub(crate) fn clean(&self, message: &str) -> String {
        clean::message(message, &self.channel)
    }

    /// Where a result is. `headers` are for the channel's own origin alone.
    pub(crate) fn link(&self, base: &str, url: &str, headers: HeaderMap) -> Link {
        let origin = |text: &str| Url::parse(text).ok().map(|url| url.origin());
        let is_own = origin(base).is_some() && origin(base) == origin(url);
        Link {
            url: url.to_owned(),
            headers: if is_own { headers } else { HeaderMap::new() },
            is_own,
        }
    }
}

/// What a refusal means that is told the way OpenAI tells it and many with it: by HTTP status, a code and a sentence.
pub(crate) fn judged(status: u16, code: &str, message: &str) -> ProviderErrorKind {
    match verdict::kind(status, code, message) {
        ChatErrorKind::RateLimited => ProviderErrorKind::RateLimited,
        ChatErrorKind::KeyRefused => ProviderErrorKind::KeyRefused,
        ChatErrorKind::QuotaExhausted => ProviderErrorKind::QuotaExhausted,
        ChatErrorKind::ModelMissing => ProviderErrorKind::ModelMissing,
        ChatErrorKind::Rejected => ProviderErrorKind::Rejected,
        ChatErrorKind::Connect | ChatErrorKind::TimedOut | ChatErrorKind::Unavailable => {
            ProviderErrorKind::Retryable
        }
    }
}

/// What a lost answer means.
pub(crate) fn lost(error: &EgressError, creates: bool) -> ProviderError {
    use ProviderErrorKind::{Retryable, Unknown};
    let (kind, message) = match error {
        _ if creates && error.may_have_been_sent() => (
            Unknown,
            "the connection to the upstream was lost before its answer was complete",
        ),
        EgressError::Connect | EgressError::Unresolved | EgressError::BadUrl(_) => {
            (Retryable, "no connection could be made to the upstream")
        }
        EgressError::TimedOut(_) => (Retryable, "the upstream did not answer in time"),
        EgressError::TooLarge { .. } => (Retryable, "the upstream's answer is too large"),
        _ => (
            Retryable,
            "the connection to the upstream broke off before the answer was complete",
        ),
    };
    ProviderError::new(kind, message)
}
