//! The input of a quote.

use http::HeaderMap;
use serde_json::Value;

use crate::auth::caller::Caller;

/// The input of a quote.
pub struct QuoteRequest<'a> {
    /// The path that the request would be sent to, as the client wrote it.
    pub path: &'a str,
    /// The request's body.
    pub request: &'a Value,
    /// The size in bytes of the JSON text that contained the body.
    pub body_bytes: usize,
    /// The headers of the request for the quote; those that would change a submission also change the quote.
    pub headers: &'a HeaderMap,
    /// The caller. `None` for an admin, who may use every model.
    pub caller: Option<&'a Caller>,
}
