//! `POST /v1/images/generations` and `/v1/images/edits`: a body in, a receipt out.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use tollgate_media::Endpoint;

use crate::access::Caller;
use crate::app::App;
use crate::http::body::{self, DATA_URI_LIMIT};
use crate::http::reply::{self, Failure};
use crate::http::trace::RequestId;
use crate::submit::{self, Request};

/// `POST /v1/images/generations`.
pub async fn generations(
    app: State<Arc<App>>,
    caller: Caller,
    request_id: Extension<RequestId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    submit(
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
) -> Result<Response, Failure> {
    submit(
        &app,
        &caller,
        Endpoint::ImageEdits,
        &request_id,
        &headers,
        body,
    )
    .await
}

/// Takes a submission of any kind; its body is JSON.
pub(super) async fn submit(
    app: &Arc<App>,
    caller: &Caller,
    endpoint: Endpoint,
    request_id: &RequestId,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let body = body::read_json(headers, body, DATA_URI_LIMIT, &app.body_budget).await?;
    let request = Request {
        caller,
        endpoint,
        headers,
        body: &body.value,
        request_id,
    };
    let receipt = submit::submit(app, request).await?;
    Ok(reply::json_text(receipt))
}
