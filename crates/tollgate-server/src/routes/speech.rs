//! Speech: one kind of task behind three ways in.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use tollgate_core::TaskKind;
use tollgate_media::Endpoint;

use super::images::submit;
use super::tasks::{TaskId, find};
use crate::access::Caller;
use crate::app::App;
use crate::http::reply::{self, Failure};
use crate::http::trace::RequestId;
use crate::task_view::{self, View};

/// `POST /v1/audio/speech`.
pub async fn speech(
    app: State<Arc<App>>,
    caller: Caller,
    request_id: Extension<RequestId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let endpoint = Endpoint::AudioSpeech;
    submit(&app, &caller, endpoint, &request_id, &headers, body).await
}

/// `POST /native/v1/audio/tts`, with the provider's own field names.
pub async fn native(
    app: State<Arc<App>>,
    caller: Caller,
    request_id: Extension<RequestId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let endpoint = Endpoint::NativeSpeech;
    submit(&app, &caller, endpoint, &request_id, &headers, body).await
}

/// `POST /v1/multimodal/audio/generations`.
pub async fn multimodal(
    app: State<Arc<App>>,
    caller: Caller,
    request_id: Extension<RequestId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let endpoint = Endpoint::MultimodalAudio;
    submit(&app, &caller, endpoint, &request_id, &headers, body).await
}

/// `GET /native/v1/audio/tts/<task_id>`: the record of a speech task.
pub async fn native_task(
    app: State<Arc<App>>,
    caller: Caller,
    TaskId(task_id): TaskId,
) -> Result<Response, Failure> {
    let task = find(&app, &caller, &task_id).await?;
    if task.kind != TaskKind::Speech {
        return Err(task_view::unknown().into());
    }
    Ok(reply::json(&task_view::view(&app, &task, View::Record)?))
}
