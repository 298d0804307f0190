//! A request to a chat endpoint, with the values that its route read from path, query and headers.

use axum::body::Body;
use http::{HeaderMap, Method};
use tollgate_core::ApiError;

use crate::auth::caller::Caller;
use crate::auth::keys::presented_keys;
use crate::chat::context::ChatContext;
use crate::chat::endpoint::Endpoint;
use crate::chat::error::ChatErrorResponse;
use crate::http::request_id::RequestId;
use crate::http::request_notes::RequestNotes;

/// One request to a chat endpoint.
pub struct ChatRequest {
    /// The chat endpoint that the client called.
    pub endpoint: Endpoint,
    /// The model, and whether a stream is requested, if the path contains them.
    pub model_in_path: Option<(String, bool)>,
    /// Whether the stream is one JSON array: for `streamGenerateContent` under `/gemini` without `alt=sse`.
    pub json_array: bool,
    /// The key in the query (`?key=`), if the endpoint accepts one there.
    pub query_key: Option<String>,
    /// The request's headers.
    pub headers: HeaderMap,
    /// The request's id.
    pub request_id: RequestId,
    /// Notes for the log line.
    pub notes: RequestNotes,
    /// The body, of which nothing has been read.
    pub body: Body,
}

impl ChatRequest {
    /// A request whose body contains the model.
    pub fn new(
        endpoint: Endpoint,
        headers: HeaderMap,
        request_id: RequestId,
        notes: RequestNotes,
        body: Body,
    ) -> Self {
        Self {
            endpoint,
            model_in_path: None,
            json_array: false,
            query_key: None,
            headers,
            request_id,
            notes,
            body,
        }
    }
}

/// Authenticates a request and admits it by the rate limits of its key.
///
/// # Errors
/// 401 without a valid key, 403 if the account is disabled, 429 over a limit; the errors of the database; 503 if limits cannot be counted and
/// `limits.on_redis_loss` is `closed`.
pub async fn authenticate(
    context: &ChatContext,
    headers: &HeaderMap,
    query_key: Option<&str>,
    notes: &RequestNotes,
    method: &Method,
) -> Result<Caller, ChatErrorResponse> {
    let presented = presented_keys(headers, query_key);
    let key = context.auth.authenticate_any(&presented).await;
    let key = key.map_err(ApiError::from)?;
    notes.set_key(&key);
    let now = context.clock.now();
    Ok(Caller::admit(&context.limits, key, method, now).await?)
}
