//! What a quote is made for.

use http::HeaderMap;
use serde_json::Value;

use crate::auth::caller::Caller;

/// What a quote is made for.
pub struct QuoteRequest<'a> {
    /// The path that the request would be sent to, as the client wrote it.
    pub path: &'a str,
    /// The request's body.
    pub request: &'a Value,
    /// The size of the text that the body came in, in bytes.
    pub body_bytes: usize,
    /// The headers of the request for the quote; those that change a submission count.
    pub headers: &'a HeaderMap,
    /// Who would send it. `None` for an admin, who may use every model.
    pub caller: Option<&'a Caller>,
}
