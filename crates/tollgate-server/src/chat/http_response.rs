//! The HTTP response of a chat: its body, its type, and the names of the fields that were left out.

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};
use tollgate_store::Key;

use crate::chat::complete;
use crate::chat::endpoint::Endpoint;
use crate::http::reply;

/// A complete response, in the envelope unless responses of the endpoint or of the key are bare.
pub fn complete_response(endpoint: Endpoint, key: &Key, bare: Bytes) -> Response {
    if endpoint.bare || key.limits.bare_envelope {
        return reply::json_text(bare);
    }
    reply::json_text(complete::wrap_in_envelope(endpoint, bare))
}

/// A stream of events, or of the elements of one JSON array.
pub fn event_stream(body: Body, json_array: bool) -> Response {
    let content_type = if json_array {
        "application/json"
    } else {
        "text/event-stream; charset=utf-8"
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // Tells nginx not to buffer the stream.
        (
            HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        ),
    ];
    (headers, body).into_response()
}

/// The names as one header value, separated by commas; commas, spaces and characters outside of ASCII are left out of the names.
pub fn header_list(names: &[String]) -> HeaderValue {
    let clean = |name: &String| {
        name.chars()
            .filter(|c| c.is_ascii_graphic() && *c != ',')
            .collect::<String>()
    };
    let text = names.iter().map(clean).collect::<Vec<_>>().join(", ");
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("some"))
}
