//! Videos: submitted on two paths, read and downloaded on OpenAI's (`/v1/videos`).

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, Method};
use tollgate_core::{ApiError, ErrorKind, TaskKind, TaskState};
use tollgate_media::Endpoint;
use tollgate_store::Task;

use crate::auth::caller::Caller;
use crate::http::form_json::read_json_or_form;
use crate::http::reply::{self, ErrorResponse};
use crate::http::request_id::RequestId;
use crate::routes::extract::{TaskId, find_task};
use crate::routes::files;
use crate::routes::images::submit_json;
use crate::state::App;
use crate::tasks::submit::{SubmitRequest, submit};
use crate::tasks::view::{self, View};

/// `POST /v1/video/generations`.
pub async fn generations(
    app: State<Arc<App>>,
    caller: Caller,
    request_id: Extension<RequestId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    let endpoint = Endpoint::VideoGenerations;
    submit_json(&app, &caller, endpoint, &request_id, &headers, body).await
}

/// `POST /v1/videos`, JSON or a form.
pub async fn create(
    app: State<Arc<App>>,
    caller: Caller,
    request_id: Extension<RequestId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    let budget = app.body_budget.of_user(&caller.key.user_id);
    let body = read_json_or_form(&headers, body, budget).await?;
    let request = SubmitRequest {
        caller: &caller,
        endpoint: Endpoint::Videos,
        headers: &headers,
        body: &body.value,
        body_bytes: body.bytes,
        request_id: &request_id,
    };
    let receipt = submit(&app.tasks, request).await?;
    Ok(reply::json_text(receipt))
}

/// `GET /v1/videos/<task_id>`: OpenAI's video resource.
pub async fn get(
    app: State<Arc<App>>,
    caller: Caller,
    TaskId(task_id): TaskId,
) -> Result<Response, ErrorResponse> {
    let task = find_video(&app, &caller, &task_id).await?;
    Ok(reply::json(&view::render(&app.files, &task, View::Video)?))
}

/// `GET /v1/videos/<task_id>/content`: the video file, complete or in ranges.
pub async fn content(
    app: State<Arc<App>>,
    caller: Caller,
    method: Method,
    headers: HeaderMap,
    TaskId(task_id): TaskId,
) -> Result<Response, ErrorResponse> {
    let task = find_video(&app, &caller, &task_id).await?;
    let file = view::result_files(&task)?.into_iter().next();
    let Some(file) = file else {
        let why = if task.state.is_final() && task.state != TaskState::Completed {
            "the video failed: there is no content"
        } else {
            "the video is not completed yet"
        };
        return Err(ApiError::new(ErrorKind::Conflict, why).into());
    };
    files::send(&app, &file.name, &method, &headers).await
}

/// Finds the caller's video task with that id.
async fn find_video(app: &App, caller: &Caller, task_id: &str) -> Result<Task, ApiError> {
    let task = find_task(app, caller, task_id).await?;
    if task.kind != TaskKind::Video {
        return Err(view::task_not_found());
    }
    Ok(task)
}
