//! Tasks of the calling user: get one, get several, list, cancel.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use bytes::Bytes;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};
use tollgate_core::{ApiError, ErrorKind, id};
use tollgate_store::CancelOutcome;

use crate::auth::caller::Caller;
use crate::http::body::{self, MAX_SMALL_BODY};
use crate::http::errors;
use crate::http::reply::{self, ErrorResponse};
use crate::routes::extract::{TaskId, find_task};
use crate::state::App;
use crate::tasks::cancel::{cancel_at_provider, trace_forced_end};
use crate::tasks::record_cache::{Record, Validity};
use crate::tasks::view::{self, View};

/// Maximum number of ids in one batch.
const MAX_BATCH: usize = 100;
const DEFAULT_PAGE: usize = 20;
const MAX_PAGE: usize = 100;

/// `GET /v1/tasks/<task_id>`. The record is generated once for each change of the task, and cached.
pub async fn get(
    app: State<Arc<App>>,
    caller: Caller,
    TaskId(task_id): TaskId,
) -> Result<Response, ErrorResponse> {
    let ttl = app.config.expiry.tasks_ms();
    let version = app.store.task_version(&task_id);
    let cached = app
        .record_cache
        .get(&task_id, version, app.clock.now(), ttl);
    if let Some(record) = cached {
        if record.user_id != caller.key.user_id {
            return Err(view::task_not_found().into());
        }
        return Ok(reply::json_text(record.body));
    }
    let task = find_task(&app, &caller, &task_id).await?;
    let body = Bytes::from(view::render(&app.files, &task, View::Record)?.to_string());
    let read_at = app.clock.now();
    let validity = match (version, task.ended_at) {
        (Some(version), ended_at) => Some(Validity::WhileVersion(version, ended_at)),
        (None, Some(ended_at)) => Some(Validity::Ended { ended_at, read_at }),
        (None, None) => None,
    };
    if let Some(validity) = validity {
        let record = Record {
            user_id: task.user_id,
            validity,
            body: body.clone(),
        };
        app.record_cache.insert(&task_id, record);
    }
    Ok(reply::json_text(body))
}

/// `GET /v1/images/generations/<task_id>`.
pub async fn generation(
    app: State<Arc<App>>,
    caller: Caller,
    TaskId(task_id): TaskId,
) -> Result<Response, ErrorResponse> {
    let task = find_task(&app, &caller, &task_id).await?;
    Ok(reply::json(&view::render(
        &app.files,
        &task,
        View::Generation,
    )?))
}

/// `POST /v1/tasks/batch`.
pub async fn batch(
    app: State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    let body = body::read_json(
        &headers,
        body,
        MAX_SMALL_BODY,
        app.body_budget.of_user(&caller.key.user_id),
    )
    .await?;
    let name = ["task_ids", "ids"]
        .into_iter()
        .find(|name| body.value.get(name).is_some_and(|ids| !ids.is_null()));
    let name = name.unwrap_or("task_ids");
    let ids = body.value.get(name).and_then(Value::as_array);
    let ids = ids
        .filter(|ids| (1..=MAX_BATCH).contains(&ids.len()) && ids.iter().all(Value::is_string))
        .ok_or_else(|| {
            ApiError::invalid(format!(
                "`{name}` must be an array of 1 to {MAX_BATCH} task id strings"
            ))
        })?;
    let mut records = Vec::with_capacity(ids.len());
    for id in ids {
        records.push(
            match find_task(&app, &caller, id.as_str().unwrap_or_default()).await {
                Ok(task) => view::render(&app.files, &task, View::Bare)?,
                Err(e) if e.kind == ErrorKind::NotFound => view::not_found_entry(id),
                Err(e) => return Err(e.into()),
            },
        );
    }
    Ok(reply::json(&json!({ "code": 200, "data": records })))
}

/// The query of `GET /v1/tasks`.
#[derive(Deserialize)]
pub struct PageQuery {
    limit: Option<String>,
    cursor: Option<String>,
}

/// `GET /v1/tasks?limit=&cursor=`: the user's tasks, newest first.
pub async fn list(
    app: State<Arc<App>>,
    caller: Caller,
    query: Result<Query<PageQuery>, QueryRejection>,
) -> Result<Response, ErrorResponse> {
    let Query(query) = query.map_err(|_| {
        ApiError::invalid("the query must have `limit` and `cursor` at most once, as UTF-8 text")
    })?;
    let limit = match query.limit.as_deref() {
        None => DEFAULT_PAGE,
        Some(text) => text
            .parse()
            .ok()
            .filter(|n| (1..=MAX_PAGE).contains(n))
            .ok_or_else(|| {
                ApiError::invalid(format!(
                    "`limit` must be a whole number from 1 to {MAX_PAGE}"
                ))
            })?,
    };
    if query.cursor.as_deref().is_some_and(|c| !id::is_task_id(c)) {
        return Err(
            ApiError::invalid("`cursor` must be the `next_cursor` of an earlier page").into(),
        );
    }
    let page = app
        .store
        .list_tasks(&caller.key.user_id, limit, query.cursor.as_deref());
    let page = page.await.map_err(errors::from_store)?;
    let records = page
        .tasks
        .iter()
        .map(|task| view::render(&app.files, task, View::Bare));
    let records = records.collect::<Result<Vec<_>, _>>()?;
    Ok(reply::json(
        &json!({ "data": records, "next_cursor": page.next }),
    ))
}

/// `POST /v1/tasks/<task_id>/cancel`.
pub async fn cancel(
    app: State<Arc<App>>,
    caller: Caller,
    TaskId(task_id): TaskId,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    body::skip(&headers, body, MAX_SMALL_BODY).await?;
    let task = find_task(&app, &caller, &task_id).await?;
    match app
        .store
        .cancel_task(&task, app.clock.now())
        .await
        .map_err(errors::from_store)?
    {
        CancelOutcome::Cancelled => {
            app.pool.stop_task(&task.id);
            cancel_at_provider(&app.tasks, &task);
            trace_forced_end(&app.tasks, &task, "cancelled");
            if task.callback_url.is_some() {
                app.tasks.webhook_due.notify_one();
            }
            app.metrics.task_ended(&task.family, "cancelled");
            let task = find_task(&app, &caller, &task_id).await?;
            Ok(reply::json(&view::render(&app.files, &task, View::Record)?))
        }
        CancelOutcome::AlreadyFinal => Err(ApiError::new(
            ErrorKind::Conflict,
            "the task has ended: only unfinished tasks can be cancelled",
        )
        .into()),
        CancelOutcome::NotFound => Err(view::task_not_found().into()),
    }
}
