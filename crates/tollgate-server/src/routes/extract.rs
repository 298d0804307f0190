//! Values that handlers extract from a request: the authenticated caller, a task id in the path, the caller's task with that id.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;
use tollgate_core::{ApiError, id};
use tollgate_store::Task;

use crate::auth::caller::Caller;
use crate::http::errors;
use crate::http::reply::ErrorResponse;
use crate::http::request_notes::RequestNotes;
use crate::state::App;
use crate::tasks::view;

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ErrorResponse> {
        let key = app.auth.authenticate(&parts.headers).await;
        let key = key.map_err(|error| ErrorResponse::from(ApiError::from(error)))?;
        if let Some(notes) = parts.extensions.get::<RequestNotes>() {
            notes.set_key(&key);
        }
        let now = app.clock.now();
        Ok(Self::admit(&app.limits, key, &parts.method, now).await?)
    }
}

/// The task id in a path. Text that is not UTF-8 is replaced by the empty id, which no task has.
pub struct TaskId(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for TaskId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        Ok(Self(path.map_or_else(|_| String::new(), |Path(id)| id)))
    }
}

/// Finds the caller's task with that id.
///
/// # Errors
/// 404 if there is none.
pub(super) async fn find_task(app: &App, caller: &Caller, task_id: &str) -> Result<Task, ApiError> {
    if !id::is_task_id(task_id) {
        return Err(view::task_not_found());
    }
    let task = app
        .store
        .polled_task(task_id)
        .await
        .map_err(errors::from_store)?;
    task.filter(|task| task.user_id == caller.key.user_id)
        .ok_or_else(view::task_not_found)
}
