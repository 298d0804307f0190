//! Sends one HTTP request to a provider of images, videos or speech, and reads its complete response.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use serde_json::Value;
use tollgate_core::Secret;
use url::Url;

use super::{redaction, retry_after};
use crate::channel::Channel;
use crate::egress::{
    BodyParts, Client, EgressError, RequestBody, ResponseBody, SentOnce, Timeouts, body,
};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::Link;
use crate::trace_headers::TraceHeaders;

/// Default timeout of a request that submits or polls a job.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// Default timeout of a request whose body is longer than [`LONG_BODY`]. It includes the upload: reference images are up to 360 MB in base64, which
/// take 300 s at 10 Mbit/s.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(300);
/// The longest body, in bytes, that does not delay the response noticeably.
const LONG_BODY: u64 = 1024 * 1024;
/// Default maximum size of a response that contains no files, in bytes.
const DEFAULT_MAX_BYTES: usize = 4 * 1024 * 1024;
/// The maximum number of bytes of an error's body that are read.
const ERROR_BODY_MAX_BYTES: usize = 64 * 1024;
/// The timeout for reading an error's body.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const IDENTITY: HeaderValue = HeaderValue::from_static("identity");

/// The HTTP client of one channel.
pub(crate) struct ProviderClient {
    pub(super) channel: Arc<Channel>,
    pub(super) egress: Client,
}

/// A request to a provider.
pub(crate) struct HttpRequest {
    method: Method,
    uri: String,
    headers: HeaderMap,
    body: RequestBody,
    /// The timeout until the head of the response, and between two chunks of its body.
    timeout: Duration,
    /// Maximum size of the response in bytes.
    max_bytes: usize,
    /// Whether the request creates something, so that it must not be sent again if its response is lost.
    pub(super) creates: bool,
}

impl HttpRequest {
    fn new(method: Method, uri: impl Into<String>) -> Self {
        Self {
            method,
            uri: uri.into(),
            headers: HeaderMap::new(),
            body: body(Bytes::new()),
            timeout: DEFAULT_TIMEOUT,
            max_bytes: DEFAULT_MAX_BYTES,
            creates: false,
        }
    }

    /// A GET request.
    pub(crate) fn get(uri: impl Into<String>) -> Self {
        Self::new(Method::GET, uri)
    }

    /// A request without a body.
    pub(crate) fn without_body(method: Method, uri: impl Into<String>) -> Self {
        Self::new(method, uri)
    }

    /// A POST request with a JSON body.
    pub(crate) fn post(uri: impl Into<String>, json: &Value) -> Self {
        Self {
            body: body(json.to_string()),
            ..Self::new(Method::POST, uri).header(CONTENT_TYPE, JSON)
        }
    }

    /// A POST request with a body of that content type. Its timeout depends on the length of the body.
    pub(crate) fn post_body(
        uri: impl Into<String>,
        content_type: HeaderValue,
        body: BodyParts,
    ) -> Self {
        let timeout = if body.len() > LONG_BODY {
            UPLOAD_TIMEOUT
        } else {
            DEFAULT_TIMEOUT
        };
        Self {
            body: body.into(),
            timeout,
            ..Self::new(Method::POST, uri).header(CONTENT_TYPE, content_type)
        }
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Adds an `authorization` header of `prefix` and the key, if there is a key.
    pub(crate) fn with_authorization(
        self,
        prefix: &str,
        key: Option<&Secret>,
    ) -> Result<Self, ProviderError> {
        self.with_key_header(AUTHORIZATION, prefix, key)
    }

    /// Adds the header `name` of `prefix` and the key, if there is a key.
    pub(crate) fn with_key_header(
        self,
        name: HeaderName,
        prefix: &str,
        key: Option<&Secret>,
    ) -> Result<Self, ProviderError> {
        match key {
            Some(key) => Ok(self.header(name, secret_value(prefix, key)?)),
            None => Ok(self),
        }
    }

    /// Adds the trace context for the server, if `trace` is set.
    pub(crate) fn with_trace(mut self, trace: Option<&TraceHeaders>) -> Self {
        if let Some(trace) = trace {
            trace.insert_into(&mut self.headers);
        }
        self
    }

    /// Accepts a response of any type, such as audio.
    pub(crate) fn accept_any(self) -> Self {
        self.header(ACCEPT, HeaderValue::from_static("*/*"))
    }

    /// Sets the timeout until the head of the response, and between two chunks of its body.
    pub(crate) fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum size of the response.
    pub(crate) fn with_max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Marks a request that must not be sent twice: if its response is lost after sending, the error is
    /// [`UpstreamErrorKind::OutcomeUnknown`].
    pub(crate) fn creating(mut self) -> Self {
        self.creates = true;
        self
    }
}

/// A provider's complete response, of any status.
pub(crate) struct HttpResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl HttpResponse {
    /// The body as JSON; `null` if it is not JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Whether the response is a success whose body begins with a JSON object, so that the provider sent it and not a proxy.
    pub(crate) fn begins_as_json(&self) -> bool {
        self.status.is_success() && self.body.trim_ascii_start().starts_with(b"{")
    }
}

impl ProviderClient {
    pub(crate) fn new(channel: &Arc<Channel>, egress: &Client) -> Self {
        Self {
            channel: Arc::clone(channel),
            egress: egress.clone(),
        }
    }

    /// Sends a request and reads the complete response, whatever its status.
    ///
    /// # Errors
    ///
    /// Only connection errors; a response with an error status is returned as a response.
    pub(crate) fn send(
        &self,
        request: HttpRequest,
    ) -> BoxFuture<'_, Result<HttpResponse, ProviderError>> {
        // Boxed, because otherwise the compiler would prove in each provider anew that this future is `Send`.
        let exchange = async move {
            let (max_bytes, creates) = (request.max_bytes, request.creates);
            let (head, rest) = self.send_for_head(request).await?.into_parts();
            let body = if head.status.is_success() {
                let body = rest.collect(max_bytes).await;
                body.map_err(|error| transport_error(&error, creates))?
            } else {
                read_error_body(rest).await.into()
            };
            Ok(HttpResponse {
                status: head.status,
                headers: head.headers,
                body,
            })
        };
        exchange.boxed()
    }

    /// Sends a request and returns with the head of the response, whatever its status.
    pub(crate) async fn send_for_head(
        &self,
        request: HttpRequest,
    ) -> Result<Response<ResponseBody>, ProviderError> {
        let (timeout, creates) = (request.timeout, request.creates);
        let uri = Uri::try_from(request.uri).map_err(|_| {
            let message = "the channel's address or the upstream's model id makes no valid URL";
            ProviderError::new(UpstreamErrorKind::UnsupportedByChannel, message)
        })?;
        let mut http_request = Request::new(request.body);
        *http_request.method_mut() = request.method;
        *http_request.uri_mut() = uri;
        *http_request.headers_mut() = request.headers;
        let headers = http_request.headers_mut();
        headers.entry(ACCEPT).or_insert(JSON);
        headers.insert(ACCEPT_ENCODING, IDENTITY);
        if creates {
            http_request.extensions_mut().insert(SentOnce);
        }
        let timeouts = Timeouts {
            connect: self.channel.time_limits.connect,
            first_byte: timeout,
            idle: timeout,
        };
        let sent = self.egress.send(http_request, timeouts).await;
        sent.map_err(|error| transport_error(&error, creates))
    }

    /// An error of `kind` with the provider's `message`, redacted; status and `retry-after` are the response's.
    pub(crate) fn response_error(
        &self,
        kind: UpstreamErrorKind,
        response: &HttpResponse,
        message: &str,
    ) -> ProviderError {
        let status = response.status.as_u16();
        let mut message = self.redact(message);
        if message.is_empty() {
            message = format!("the upstream responded with HTTP status {status}");
        }
        ProviderError {
            status: Some(status),
            retry_after: retry_after::parse(&response.headers),
            ..ProviderError::new(kind, message)
        }
    }

    /// The error of a failed task, or of one of several results, with the provider's `message`, redacted.
    pub(crate) fn task_error(&self, kind: UpstreamErrorKind, message: &str) -> ProviderError {
        let message = self.redact(message);
        if message.is_empty() {
            return ProviderError::new(kind, "the upstream failed without an error message");
        }
        ProviderError::new(kind, message)
    }

    /// A provider's message without the channel's keys and addresses.
    pub(crate) fn redact(&self, message: &str) -> String {
        redaction::redact(message, &self.channel)
    }

    /// The link to a result. `headers`, which contain the key, are sent only if the URL has the origin of `base`.
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

/// Reads the beginning of an error's body: at most [`ERROR_BODY_MAX_BYTES`] within [`ERROR_BODY_TIMEOUT`].
pub(super) async fn read_error_body(mut body: ResponseBody) -> Vec<u8> {
    let mut text = Vec::new();
    let reading = async {
        while let Ok(Some(chunk)) = body.chunk().await {
            let capacity = ERROR_BODY_MAX_BYTES - text.len();
            text.extend_from_slice(&chunk[..chunk.len().min(capacity)]);
            if text.len() == ERROR_BODY_MAX_BYTES {
                break;
            }
        }
    };
    // After the timeout, the bytes that have arrived are used.
    let _ = tokio::time::timeout(ERROR_BODY_TIMEOUT, reading).await;
    text
}

/// A header value of `prefix` and the key, marked as sensitive so that it is never logged.
pub(crate) fn secret_value(prefix: &str, key: &Secret) -> Result<HeaderValue, ProviderError> {
    let text = [prefix, key.expose()].concat();
    let mut value = HeaderValue::try_from(text).map_err(|_| {
        ProviderError::new(
            UpstreamErrorKind::KeyRejected,
            "the channel's key has characters that no header can hold",
        )
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// `base` and `path` as one URI. The configuration checks base URLs, so an invalid URI is caused by the model's name.
pub(crate) fn uri(base: &str, path: &str) -> Result<Uri, ProviderError> {
    let text = [base.trim_end_matches('/'), path].concat();
    Uri::try_from(text).map_err(|_| {
        ProviderError::new(
            UpstreamErrorKind::ModelNotFound,
            "no upstream has a model of this name",
        )
    })
}

/// The error of a request without a complete response. `creates`: see [`HttpRequest::creating`].
pub(crate) fn transport_error(error: &EgressError, creates: bool) -> ProviderError {
    use UpstreamErrorKind::{OutcomeUnknown, Unavailable};
    let (kind, message) = match error {
        _ if creates && error.may_have_been_sent() => (
            OutcomeUnknown,
            "the connection to the upstream was lost before its response was complete",
        ),
        EgressError::Connect | EgressError::Unresolved | EgressError::InvalidUrl(_) => {
            (Unavailable, "no connection could be made to the upstream")
        }
        EgressError::TimedOut(_) => (Unavailable, "the upstream did not respond in time"),
        EgressError::TooLarge { .. } => (Unavailable, "the upstream's response is too large"),
        _ => (
            Unavailable,
            "the connection to the upstream broke off before the response was complete",
        ),
    };
    ProviderError::new(kind, message)
}

/// An error while reading the response of a creating request: the results were created, so the request must not be repeated.
pub(super) fn after_creation(error: ProviderError) -> ProviderError {
    match error.kind {
        UpstreamErrorKind::Unavailable => ProviderError {
            kind: UpstreamErrorKind::OutcomeUnknown,
            ..error
        },
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_body_has_more_time_until_the_response() {
        for (bytes, expected) in [(0, 60), (LONG_BODY, 60), (360 * LONG_BODY, 300)] {
            let mut body = BodyParts::new();
            body.text("{}");
            body.base64("photo.jpg", bytes / 4 * 3 - bytes.min(3));
            let request = HttpRequest::post_body("https://a.example", JSON, body);
            assert_eq!(request.timeout, Duration::from_secs(expected), "{bytes}");
        }
    }

    #[test]
    fn a_key_with_a_line_break_is_rejected_and_not_printed() {
        let error = secret_value("Bearer ", &Secret::new("sk-1\r\nx: y")).unwrap_err();
        assert_eq!(error.kind, UpstreamErrorKind::KeyRejected);
        assert!(!error.message.contains("sk-1"));
        let value = secret_value("Bearer ", &Secret::new("sk-1")).unwrap();
        assert!(value.is_sensitive() && !format!("{value:?}").contains("sk-1"));
    }
}
