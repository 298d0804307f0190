//! A small HTTP client for tools: complete bodies, a time limit, no retries.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap};
use hyper::{Method, Request, StatusCode};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(30);

/// An HTTP client that keeps connections.
#[derive(Clone)]
pub(crate) struct Client(Pool<HttpConnector, Full<Bytes>>);

/// A response that was received completely: as many bytes as its head announced.
pub(crate) struct HttpResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A request to send.
pub(crate) struct HttpRequest<'a> {
    method: Method,
    url: String,
    headers: Vec<(&'static str, &'a str)>,
    body: Bytes,
}

impl<'a> HttpRequest<'a> {
    /// A request without a body.
    pub(crate) fn get(url: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            url: url.into(),
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    /// A request with a body.
    pub(crate) fn post(
        url: impl Into<String>,
        content_type: &'a str,
        body: impl Into<Bytes>,
    ) -> Self {
        Self {
            method: Method::POST,
            url: url.into(),
            headers: vec![(CONTENT_TYPE.as_str(), content_type)],
            body: body.into(),
        }
    }

    /// A request with a JSON body.
    pub(crate) fn json(url: impl Into<String>, body: &Value) -> Self {
        Self::post(url, "application/json", body.to_string())
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &'static str, value: &'a str) -> Self {
        self.headers.push((name, value));
        self
    }
}

impl Client {
    /// A client without connections.
    pub(crate) fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self(Pool::builder(TokioExecutor::new()).build(connector))
    }

    /// Sends a request with `key` and waits for the complete response. After an error it is not known whether the server processed the request.
    pub(crate) async fn send(
        &self,
        key: &str,
        to_send: HttpRequest<'_>,
    ) -> Result<HttpResponse, String> {
        let mut request = Request::builder().method(to_send.method).uri(&to_send.url);
        request = request.header(AUTHORIZATION, format!("Bearer {key}"));
        for (name, value) in to_send.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(to_send.body));
        let request = request.map_err(|e| format!("{}: {e}", to_send.url))?;
        let exchange = async {
            let response = self.0.request(request).await.map_err(|e| e.to_string())?;
            let (head, body) = response.into_parts();
            let body = body.collect().await.map_err(|e| e.to_string())?;
            Ok(HttpResponse {
                status: head.status,
                headers: head.headers,
                body: body.to_bytes(),
            })
        };
        let response = timeout(LIMIT, exchange).await;
        response
            .unwrap_or_else(|_| Err(format!("no response from {} within {LIMIT:?}", to_send.url)))
    }
}

impl HttpResponse {
    /// The body as JSON; null if it is not JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Status and body, for an error message.
    pub(crate) fn describe(&self) -> String {
        let body = String::from_utf8_lossy(&self.body);
        let short: String = body.chars().take(300).collect();
        format!("{} {short}", self.status.as_u16())
    }
}
