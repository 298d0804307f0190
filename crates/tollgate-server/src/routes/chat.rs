//! The chat paths: selects the endpoint, and the model if the path contains it. `chat/handler.rs` handles the request.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header, request};
use percent_encoding::percent_decode_str;
use tollgate_chat::generate_content::path::{self, Method, MethodCall};
use tollgate_core::ApiError;

use crate::chat::context::ChatContext;
use crate::chat::endpoint::{self, Endpoint, query_parameter};
use crate::chat::error::ChatErrorResponse;
use crate::chat::request::ChatRequest;
use crate::chat::{count_tokens, handler, models};
use crate::http::reply::ErrorResponse;
use crate::http::request_id::RequestId;
use crate::http::request_notes::RequestNotes;
use crate::state::App;

/// The parts of a request that every chat path needs.
pub struct ChatParts {
    context: Arc<ChatContext>,
    request_id: RequestId,
    notes: RequestNotes,
    uri: Uri,
    headers: HeaderMap,
}

impl FromRequestParts<Arc<App>> for ChatParts {
    type Rejection = ErrorResponse;

    async fn from_request_parts(
        parts: &mut request::Parts,
        app: &Arc<App>,
    ) -> Result<Self, ErrorResponse> {
        let request_id = parts.extensions.get().cloned();
        Ok(Self {
            context: Arc::clone(&app.chat),
            request_id: request_id.ok_or_else(ApiError::internal)?,
            notes: parts.extensions.get().cloned().unwrap_or_default(),
            uri: parts.uri.clone(),
            headers: std::mem::take(&mut parts.headers),
        })
    }
}

impl ChatParts {
    /// The request for `endpoint`, with the key in the query if the endpoint accepts one there.
    fn into_request(self, endpoint: Endpoint, body: Body) -> ChatRequest {
        let query_key = endpoint
            .gemini
            .then(|| query_parameter(&self.uri, "key"))
            .flatten();
        ChatRequest {
            query_key: query_key.map(std::borrow::Cow::into_owned),
            ..ChatRequest::new(endpoint, self.headers, self.request_id, self.notes, body)
        }
    }
}

/// Handles [`ChatOperation::CountTokens`](endpoint::ChatOperation::CountTokens).
pub async fn count_tokens(endpoint: Endpoint, parts: ChatParts, body: Body) -> Response {
    let context = Arc::clone(&parts.context);
    count_tokens::count_messages(&context, parts.into_request(endpoint, body)).await
}

/// `GET …/models` of the providers' APIs and `/v1beta/models`.
pub async fn list_models(parts: ChatParts) -> Response {
    let endpoint = error_endpoint(&parts.uri);
    let context = Arc::clone(&parts.context);
    models::list(&context, parts.into_request(endpoint, Body::empty())).await
}

/// `GET …/models/<model>` of the providers' APIs and `/v1beta/models/<model>`.
pub async fn get_model(parts: ChatParts) -> Response {
    let endpoint = error_endpoint(&parts.uri);
    let name = model_segment(&parts.uri).to_owned();
    let name = percent_decode_str(&name).decode_utf8_lossy();
    let context = Arc::clone(&parts.context);
    let request = parts.into_request(endpoint, Body::empty());
    models::get(&context, request, &name).await
}

fn error_endpoint(uri: &Uri) -> Endpoint {
    endpoint::by_path(uri.path()).unwrap_or(endpoint::BARE_CHAT_COMPLETIONS)
}

/// `OPTIONS` on a chat path: a browser's preflight request, without a key.
pub async fn preflight(headers: HeaderMap) -> Response {
    // The SDKs send a dozen headers of their own, so all requested headers are allowed.
    let requested = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let requested = requested.unwrap_or(HeaderValue::from_static("authorization, content-type"));
    let allowed = [
        (
            header::ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static("GET, POST, OPTIONS"),
        ),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, requested),
        (
            header::ACCESS_CONTROL_MAX_AGE,
            HeaderValue::from_static("86400"),
        ),
    ];
    (StatusCode::NO_CONTENT, allowed).into_response()
}

/// Handles a chat whose body contains the model.
pub async fn model_in_body(endpoint: Endpoint, parts: ChatParts, body: Body) -> Response {
    let context = Arc::clone(&parts.context);
    handler::handle(context, parts.into_request(endpoint, body)).await
}

/// Handles a chat or token count whose path contains the model and the method.
pub async fn model_in_path(endpoint: Endpoint, parts: ChatParts, body: Body) -> Response {
    let context = Arc::clone(&parts.context);
    let uri = parts.uri.clone();
    let mut request = parts.into_request(endpoint, body);
    let MethodCall { model, method } = match path::parse_method_path(model_segment(&uri)) {
        Ok(call) => call,
        Err(error) => {
            let error = ChatErrorResponse::from(ApiError::not_found(error.to_string()));
            return error.into_response(endpoint);
        }
    };
    let is_stream = match method {
        Method::Generate => false,
        Method::Stream => true,
        Method::Count => return count_tokens::count_contents(&context, request, &model).await,
    };
    // `/v1beta` always streams server-sent events; Gemini's own API streams a JSON array unless `alt=sse` is set.
    let is_sse = query_parameter(&uri, "alt").is_some_and(|alt| alt == "sse");
    request.json_array = is_stream && endpoint.gemini && !is_sse;
    request.model_in_path = Some((model, is_stream));
    handler::handle(context, request).await
}

/// The part of the path after `/models/`.
fn model_segment(uri: &Uri) -> &str {
    let split = uri.path().split_once("/models/");
    split.map_or("", |(_, segment)| segment)
}
