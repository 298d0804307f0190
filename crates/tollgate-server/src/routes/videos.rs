//! Films: submitted at two paths, told and sent at OpenAI's.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, Method};
use tollgate_core::{ApiError, ErrorKind, TaskKind, TaskState};
use tollgate_media::Endpoint;

use super::files;
use super::images::submit;
use super::tasks::{TaskId, find};
use crate::access::Caller;
use crate::app::App;
use crate::http::form_json::read_json_or_form;
use crate::http::reply::{self, Failure};
use crate::http::trace::RequestId;
use crate::submit::{self as submission, Request};
use crate::task_view::{self, View};

/// `POST /v1/video/generations`.
pub async fn generations(
    app: State<Arc<App>>,
    caller: Caller,
    request_id: Extension<RequestId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let endpoint = Endpoint::VideoGenerations;
    submit(&app, &caller, endpoint, &request_id, &headers, body).await
}

/// `POST /v1/videos`, JSON or a form.
pub async fn create(
    app: State<Arc<App>>,
    caller: Caller,
    request_id: Extension<RequestId>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let body = read_json_or_form(&headers, body, &app.body_budget).await?;
    let request = Request {
        caller: &caller,
        endpoint: Endpoint::Videos,
        headers: &headers,
        body: &body.value,
        request_id: &request_id,
    };
    let receipt = submission::submit(&app, request).await?;
    Ok(reply::json_text(receipt))
}

/// `GET /v1/videos/<task_id>`: OpenAI's video resource.
pub async fn get(
    app: State<Arc<App>>,
    caller: Caller,
    TaskId(task_id): TaskId,
) -> Result<Response, Failure> {
    let task = film(&app, &caller, &task_id).await?;
    Ok(reply::json(&task_view::view(&app, &task, View::Video)?))
}

/// `GET /v1/videos/<task_id>/content`: the film itself, whole or in part.
pub async fn content(
    app: State<Arc<App>>,
    caller: Caller,
    method: Method,
    headers: HeaderMap,
    TaskId(task_id): TaskId,
) -> Result<Response, Failure> {
    let task = film(&app, &caller, &task_id).await?;
    let file = task_view::files(&task)?.into_iter().next();
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

/// The caller's film of that id.
async fn film(app: &App, caller: &Caller, task_id: &str) -> Result<tollgate_store::Task, ApiError> {
    let task = find(app, caller, task_id).await?;
    if task.kind != TaskKind::Video {
        return Err(task_view::unknown());
    }
    Ok(task)
}
