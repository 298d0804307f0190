//! A received request, for the fake to check and for tests to inspect.

use bytes::Bytes;
use http::request::Parts;
use serde_json::Value;

use crate::form::{self, Part};
use crate::tokens::Tokens;

/// A request that a fake has received.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    /// The method: `GET`, `POST` …
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The text after `?`; empty if there is none.
    pub query: String,
    /// The headers, in the order in which they arrived.
    pub headers: Vec<(String, String)>,
    /// The body as JSON; null if it is not JSON.
    pub body: Value,
    /// The body's parts, if it is a form.
    pub parts: Vec<Part>,
    /// The rule by which the fake rejected the request, if it did.
    pub rejected_by: Option<&'static str>,
    /// What the provider bills for the request so far, if it is a chat for which something was generated: the usage, or the part that was sent of a
    /// stream that ended early.
    pub billed: Option<Tokens>,
}

impl ReceivedRequest {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) async fn read(head: &Parts, body: &Bytes) -> Self {
        let header = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        };
        let mut request = Self {
            method: head.method.as_str().to_owned(),
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            headers: head.headers.iter().map(header).collect(),
            body: Value::Null,
            parts: Vec::new(),
            rejected_by: None,
            billed: None,
        };
        if request.has_form() {
            let content_type = request.header("content-type").unwrap_or_default();
            request.parts = form::parse_parts(content_type, body).await;
        } else {
            request.body = serde_json::from_slice(body).unwrap_or_default();
        }
        request
    }

    /// The token of the `Authorization` header, if it has this scheme.
    pub(crate) fn authorization(&self, scheme: &str) -> Option<&str> {
        let (known, token) = self.header("authorization")?.split_once(' ')?;
        known.eq_ignore_ascii_case(scheme).then(|| token.trim())
    }

    /// The first value of the query parameter with this name, decoded.
    pub(crate) fn query_value(&self, name: &str) -> Option<String> {
        self.query_values(name).into_iter().next()
    }

    /// Every value of the query parameter with this name, decoded.
    pub(crate) fn query_values(&self, name: &str) -> Vec<String> {
        let pairs = self.query.split('&');
        let pairs = pairs.filter_map(|pair| pair.split_once('='));
        let values = pairs.filter(|(key, _)| *key == name);
        let decoded = values.map(|(_, value)| percent_encoding::percent_decode_str(value));
        decoded
            .map(|text| text.decode_utf8_lossy().into_owned())
            .collect()
    }

    /// Whether the content type is JSON.
    pub(crate) fn has_json(&self) -> bool {
        self.has_type("application/json")
    }

    /// Whether the content type is `multipart/form-data`.
    pub(crate) fn has_form(&self) -> bool {
        self.has_type("multipart/form-data")
    }

    fn has_type(&self, wanted: &str) -> bool {
        let value = self.header("content-type").unwrap_or_default();
        let media_type = value.split(';').next().unwrap_or_default().trim();
        media_type.eq_ignore_ascii_case(wanted)
    }
}
