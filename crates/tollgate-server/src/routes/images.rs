//! `POST /v1/images/generations` and `/v1/images/edits`: submit an image task, return its receipt.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use tollgate_media::Endpoint;

use crate::auth::caller::Caller;
use crate::http::body::{self, MAX_SMALL_BODY};
use crate::http::body_memory::MAX_BODY_WITH_FILES;
use crate::http::reply::{self, ErrorResponse};
use crate::http::request_id::RequestId;
use crate::state::App;
use crate::tasks::submit::{SubmitRequest, submit};

/// `POST /v1/images/generations`.
pub async fn generations(
    app: State<Arc<App>>,
    caller: Caller,
    request_id: Extension<RequestId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    submit_json(
        &app,
        &caller,
        Endpoint::ImageGenerations,
        &request_id,
        &headers,
        body,
    )
    .await
}

/// `POST /v1/images/edits`.
pub async fn edits(
    app: State<Arc<App>>,
    caller: Caller,
    request_id: Extension<RequestId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    submit_json(
        &app,
        &caller,
        Endpoint::ImageEdits,
        &request_id,
        &headers,
        body,
    )
    .await
}

/// Submits a task of any kind whose body is JSON.
pub(super) async fn submit_json(
    app: &Arc<App>,
    caller: &Caller,
    endpoint: Endpoint,
    request_id: &RequestId,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    let limit = match endpoint.canonical() {
        Endpoint::AudioSpeech => MAX_SMALL_BODY,
        _ => MAX_BODY_WITH_FILES,
    };
    let budget = app.body_budget.of_user(&caller.key.user_id);
    let body = body::read_json(headers, body, limit, budget).await?;
    let request = SubmitRequest {
        caller,
        endpoint,
        headers,
        body: &body.value,
        body_bytes: body.bytes,
        request_id,
    };
    let receipt = submit(&app.tasks, request).await?;
    Ok(reply::json_text(receipt))
}
