//! The delivery log of a task's webhook, and the secret that signs webhooks.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};
use tollgate_core::ApiError;
use tollgate_store::DeliveryAttempt;

use crate::auth::caller::Caller;
use crate::http::errors;
use crate::http::reply::{self, ErrorResponse};
use crate::routes::extract::{TaskId, find_task};
use crate::state::App;

/// `GET /v1/tasks/<task_id>/callbacks`: the URL of the task's webhook, and every attempt to deliver it.
pub async fn delivery_log(
    app: State<Arc<App>>,
    caller: Caller,
    TaskId(task_id): TaskId,
) -> Result<Response, ErrorResponse> {
    let task = find_task(&app, &caller, &task_id).await?;
    let log = app.store.webhook_log(&task.id).await;
    let Some(log) = log.map_err(errors::from_store)? else {
        let pending_url = task.callback_url.filter(|_| !task.state.is_final());
        let url = pending_url.ok_or_else(|| ApiError::not_found("the task has no callback_url"))?;
        return Ok(reply::json(&json!({
            "task_id": task.id, "url": url, "state": "task_unfinished", "next_at": null, "tries": [],
        })));
    };
    let tries: Vec<Value> = log.tries.iter().map(attempt_json).collect();
    Ok(reply::json(&json!({
        "task_id": task.id,
        "url": log.url,
        "state": log.state.name(),
        "next_at": log.next_at.map(|at| at.div_euclid(1000)),
        "tries": tries,
    })))
}

fn attempt_json(attempt: &DeliveryAttempt) -> Value {
    json!({
        "number": attempt.number,
        "at": attempt.at.div_euclid(1000),
        "took_ms": attempt.took_ms,
        "status": attempt.status,
        "error": attempt.error,
    })
}

/// `GET /v1/callbacks/secret`: the secret that signs the webhooks of the calling key's tasks.
pub async fn secret(app: State<Arc<App>>, caller: Caller) -> Result<Response, ErrorResponse> {
    let secret = app.webhooks.secret(&caller.key.id).await?;
    Ok(reply::json(&json!({ "secret": secret.expose() })))
}
