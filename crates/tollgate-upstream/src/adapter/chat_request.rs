//! Sends one chat request to a provider: headers, timeouts, the check of the response's content type, errors of the upstream.

use std::time::Duration;

use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use tollgate_chat::{Format, UpstreamError};

use super::error_classification::classify_error;
use super::http_request::ProviderClient;
use super::http_request::{IDENTITY, JSON, read_error_body};
use super::{redaction, retry_after};
use crate::channel::Channel;
use crate::chat::{ChatBody, ChatCall};
use crate::egress::{EgressError, ResponseBody, Timeouts, body};
use crate::error::{ProviderError, UpstreamErrorKind};

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

impl ProviderClient {
    /// Sends `call`'s body to `uri` with the provider's own `headers`.
    pub(crate) fn send_chat<'a, H>(
        &'a self,
        call: ChatCall<'a>,
        uri: Uri,
        provider_headers: H,
    ) -> impl Future<Output = Result<ChatBody, ProviderError>> + Send + use<'a, H>
    where
        H: IntoIterator<Item = (HeaderName, HeaderValue)>,
    {
        let mut request = Request::new(body(call.body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, if call.stream { EVENT_STREAM } else { JSON });
        headers.insert(ACCEPT_ENCODING, IDENTITY);
        headers.extend(provider_headers);
        if let Some(trace) = call.trace {
            trace.insert_into(headers);
        }
        let timeouts = Timeouts {
            connect: Some(call.timeouts.connect),
            first_byte: call.timeouts.first_byte,
            idle: call.timeouts.idle,
        };
        let sending = self.egress.send(request, timeouts);
        let (stream, format) = (call.stream, call.format);
        async move {
            let response = sending.await.map_err(|error| ProviderError::from(&error))?;
            let is_success = response.status().is_success();
            if is_success && has_requested_type(response.headers(), stream) {
                return Ok(ChatBody::Http(response.into_body()));
            }
            Err(Box::pin(self.chat_error(response, format)).await)
        }
    }

    /// The error of a response that is not a success or not of the requested type.
    async fn chat_error(
        &self,
        response: Response<ResponseBody>,
        format: &dyn Format,
    ) -> ProviderError {
        let (head, rest) = response.into_parts();
        let text = read_error_body(rest).await;
        let upstream_error = format.read_error(head.status.as_u16(), &text);
        if head.status.is_success() && upstream_error.status.is_none() {
            return unexpected_type(head.status, &head.headers);
        }
        let status = Some(head.status.as_u16());
        let mut error = ProviderError::from_upstream(&self.channel, status, upstream_error);
        error.retry_after = retry_after::parse(&head.headers).or(error.retry_after);
        error
    }
}

/// The error of a successful response that is not a chat response, such as an HTML page.
fn unexpected_type(status: StatusCode, headers: &HeaderMap) -> ProviderError {
    let content_type = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
    tracing::warn!(
        content_type = content_type.unwrap_or_default(),
        "an upstream's response is not of the requested type: check the channel's base_url"
    );
    ProviderError {
        status: Some(status.as_u16()),
        ..ProviderError::new(
            UpstreamErrorKind::Unavailable,
            "the upstream's response is not a chat response",
        )
    }
}

/// Whether a response has the requested type and is not compressed. One without a content type is accepted.
fn has_requested_type(headers: &HeaderMap, stream: bool) -> bool {
    let is_compressed = headers.get(CONTENT_ENCODING).is_some_and(|v| v != IDENTITY);
    if is_compressed {
        return false;
    }
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return true;
    };
    let value = value.to_str().unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    if stream {
        return essence.eq_ignore_ascii_case("text/event-stream");
    }
    let is = |name: &str| essence.eq_ignore_ascii_case(name);
    let suffix_start = essence.len().checked_sub("+json".len());
    let suffix = suffix_start.and_then(|at| essence.get(at..));
    is("application/json")
        || is("text/json")
        || suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case("+json"))
}

impl ProviderError {
    /// The error of a chat in a format for which the channel has no URL.
    pub(crate) fn unsupported_format() -> Self {
        Self::new(
            UpstreamErrorKind::Connect,
            "the channel has no address for requests of this format",
        )
    }

    /// The error that an upstream on `channel` reported. `status` is the HTTP status; `None` for an error inside a successful response (the error
    /// event of a stream), whose body may contain a status.
    pub fn from_upstream(channel: &Channel, status: Option<u16>, error: UpstreamError) -> Self {
        let http_status = status.or(error.status).unwrap_or(500);
        // 400 and 200 are used for many errors; the status in the body is more precise.
        let meant_status = match error.status {
            Some(in_body) if http_status <= 400 => in_body,
            _ => http_status,
        };
        let message = redaction::redact(&error.message, channel);
        Self {
            kind: classify_error(meant_status, &error.code, &error.message),
            status: Some(http_status),
            message: if message.is_empty() {
                format!("the upstream responded with HTTP status {http_status}")
            } else {
                message
            },
            code: Some(redaction::redact(&error.code, channel)).filter(|code| !code.is_empty()),
            param: error.param.map(|param| redaction::redact(&param, channel)),
            details: error.details.and_then(|details| {
                let text = redaction::redact(&details.to_string(), channel);
                // A truncated text is not valid JSON.
                serde_json::from_str(&text).ok()
            }),
            retry_after: error.retry_after.map(|s| Duration::from_secs(s.into())),
        }
    }
}

impl From<&EgressError> for ProviderError {
    fn from(error: &EgressError) -> Self {
        let (kind, message) = match error {
            EgressError::Connect | EgressError::Unresolved | EgressError::InvalidUrl(_) => (
                UpstreamErrorKind::Connect,
                "no connection could be made to the upstream",
            ),
            EgressError::TimedOut(_) => (
                UpstreamErrorKind::TimedOut,
                "the upstream did not respond in time",
            ),
            EgressError::TooLarge { .. } => (
                UpstreamErrorKind::TooLarge,
                "the upstream's response is too large",
            ),
            _ => (
                UpstreamErrorKind::Unavailable,
                "the connection to the upstream broke off before the response was complete",
            ),
        };
        Self::new(kind, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_accepted_by_their_content_type() {
        let check = |content_type: Option<&'static str>, stream: bool| {
            let mut headers = HeaderMap::new();
            if let Some(content_type) = content_type {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
            }
            has_requested_type(&headers, stream)
        };
        assert!(check(Some("text/event-stream; charset=utf-8"), true));
        assert!(check(Some("Text/Event-Stream"), true));
        assert!(check(Some("application/json;charset=UTF-8"), false));
        assert!(check(Some("application/problem+json"), false));
        assert!(check(None, true) && check(None, false));
        assert!(!check(Some("application/json"), true));
        assert!(!check(Some("text/event-stream"), false));
        assert!(!check(Some("text/html"), false) && !check(Some("text/html"), true));
        let mut compressed = HeaderMap::new();
        compressed.insert(CONTENT_ENCODING, HeaderValue::from_static("br"));
        assert!(!has_requested_type(&compressed, true));
    }
}
