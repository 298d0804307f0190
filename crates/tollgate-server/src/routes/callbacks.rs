//! What became of a task's callback, and the secret that signs them.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use tollgate_core::ApiError;
use tollgate_store::CallbackTry;

use super::tasks::{TaskId, find};
use crate::access::Caller;
use crate::app::App;
use crate::http::reply::{self, Failure};
use crate::{callbacks, errors};

/// `GET /v1/tasks/<task_id>/callbacks`: where the task's end is told, and every try.
pub async fn log(
    app: State<Arc<App>>,
    caller: Caller,
    TaskId(task_id): TaskId,
) -> Result<Response, Failure> {
    let task = find(&app, &caller, &task_id).await?;
    let log = app.store.callback_log(&task.id).await;
    let Some(log) = log.map_err(errors::store)? else {
        let waits = task.callback_url.filter(|_| !task.state.is_final());
        let url = waits.ok_or_else(|| ApiError::not_found("the task has no callback_url"))?;
        return Ok(reply::json(&json!({
            "task_id": task.id, "url": url, "state": "task_unfinished", "next_at": null, "tries": [],
        })));
    };
    let tries: Vec<Value> = log.tries.iter().map(shown).collect();
    Ok(reply::json(&json!({
        "task_id": task.id,
        "url": log.url,
        "state": log.state.name(),
        "next_at": log.next_at.map(|at| at.div_euclid(1000)),
        "tries": tries,
    })))
}

fn shown(tried: &CallbackTry) -> Value {
    json!({
        "number": tried.number,
        "at": tried.at.div_euclid(1000),
        "took_ms": tried.took_ms,
        "status": tried.status,
        "error": tried.error,
    })
}

/// `GET /v1/callbacks/secret`: what callbacks of the calling key's tasks are signed with.
pub async fn secret(app: State<Arc<App>>, caller: Caller) -> Result<Response, Failure> {
    let secret = callbacks::secret(&app, &caller.key.id).await?;
    Ok(reply::json(&json!({ "secret": secret.expose() })))
}
