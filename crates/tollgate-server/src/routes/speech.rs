//! Speech: one kind of task, submitted at three paths.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use tollgate_core::TaskKind;
use tollgate_media::Endpoint;

use crate::auth::caller::Caller;
use crate::http::reply::{self, ErrorResponse};
use crate::http::request_id::RequestId;
use crate::routes::extract::{TaskId, find_task};
use crate::routes::images::submit_json;
use crate::state::App;
use crate::tasks::view::{self, View};

/// `POST /v1/audio/speech`.
pub async fn speech(
    app: State<Arc<App>>,
    caller: Caller,
    request_id: Extension<RequestId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    let endpoint = Endpoint::AudioSpeech;
    submit_json(&app, &caller, endpoint, &request_id, &headers, body).await
}

/// `POST /native/v1/audio/tts`, with the provider's own field names.
pub async fn native(
    app: State<Arc<App>>,
    caller: Caller,
    request_id: Extension<RequestId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    let endpoint = Endpoint::NativeSpeech;
    submit_json(&app, &caller, endpoint, &request_id, &headers, body).await
}

/// `POST /v1/multimodal/audio/generations`.
pub async fn multimodal(
    app: State<Arc<App>>,
    caller: Caller,
    request_id: Extension<RequestId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    let endpoint = Endpoint::MultimodalAudio;
    submit_json(&app, &caller, endpoint, &request_id, &headers, body).await
}

/// `GET /native/v1/audio/tts/<task_id>`: the record of a speech task.
pub async fn native_task(
    app: State<Arc<App>>,
    caller: Caller,
    TaskId(task_id): TaskId,
) -> Result<Response, ErrorResponse> {
    let task = find_task(&app, &caller, &task_id).await?;
    if task.kind != TaskKind::Speech {
        return Err(view::task_not_found().into());
    }
    Ok(reply::json(&view::render(&app.files, &task, View::Record)?))
}
