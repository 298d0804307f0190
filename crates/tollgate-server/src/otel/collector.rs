//! Sends requests to the collector: OTLP over HTTP, in protobuf.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use tollgate_config::Traces;
use tollgate_upstream::egress::{self, Timeouts, body};

use super::proto::{InstrumentationScope, Resource};
use super::semconv;
use super::span::key_value;

const TIMEOUTS: Timeouts = Timeouts {
    connect: Some(Duration::from_secs(5)),
    first_byte: Duration::from_secs(10),
    idle: Duration::from_secs(5),
};
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
/// Bytes of a response of the collector that are read.
const MAX_RESPONSE_BYTES: usize = 65_536;

/// One endpoint of a collector.
pub(super) struct Collector {
    url: String,
    headers: HeaderMap,
    client: egress::Client,
}

/// Why a collector did not accept a message.
#[derive(Debug)]
pub(super) struct SendError {
    /// The error, for the log.
    pub(super) message: String,
    /// Whether the collector may accept the same message later.
    pub(super) is_retryable: bool,
    /// How long the collector requests a pause. `None` if it requests none.
    pub(super) retry_after: Option<Duration>,
}

impl Collector {
    /// The endpoint of the collector at the base URL `endpoint`; `path`, such as `/v1/traces`, is for one kind of message.
    pub(super) fn new(
        endpoint: &str,
        path: &str,
        settings: &Traces,
        client: egress::Client,
    ) -> Self {
        let mut headers = settings.headers.clone();
        headers.insert(CONTENT_TYPE, PROTOBUF);
        Self {
            url: format!("{endpoint}{path}"),
            headers,
            client,
        }
    }

    /// Sends one message. Returns the body of the response; empty if it cannot be read.
    pub(super) async fn send(&self, message: &Bytes) -> Result<Bytes, SendError> {
        let failed = |message: String, is_retryable| SendError {
            message,
            is_retryable,
            retry_after: None,
        };
        let request = Request::post(&self.url).body(body(message.clone()));
        let mut request = request.map_err(|e| failed(e.to_string(), false))?;
        *request.headers_mut() = self.headers.clone();
        let response = self.client.send(request, TIMEOUTS).await;
        let response = response.map_err(|e| failed(e.to_string(), true))?;
        let status = response.status();
        let retry_after = parse_retry_after(response.headers());
        // The body is read to its end, so that the connection can be used again.
        let response_body = response.into_body().collect(MAX_RESPONSE_BYTES).await;
        if status.is_success() {
            return Ok(response_body.unwrap_or_default());
        }
        // The statuses for which OTLP allows retries.
        let is_retryable = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        Err(SendError {
            retry_after,
            ..failed(format!("status {status}"), is_retryable)
        })
    }
}

/// The pause in a `retry-after` in seconds. `None` for a date: the exporter then chooses the pause.
fn parse_retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

/// The resource that sends: this gateway, as the process `node`.
pub(super) fn resource(settings: &Traces, node: &str) -> Resource {
    let attributes = [
        (semconv::SERVICE_NAME, settings.service_name.as_str().into()),
        (semconv::SERVICE_VERSION, env!("CARGO_PKG_VERSION").into()),
        (semconv::SERVICE_INSTANCE_ID, node.into()),
    ];
    Resource {
        attributes: attributes.into_iter().map(key_value).collect(),
    }
}

/// The scope of everything that is sent.
pub(super) fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "tollgate".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}
