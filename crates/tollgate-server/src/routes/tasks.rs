//! Tasks as their user sees them: one, several, all, the end of one.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::response::Response;
use bytes::Bytes;
use http::HeaderMap;
use http::request::Parts;
use serde::Deserialize;
use serde_json::{Value, json};
use tollgate_core::{ApiError, ErrorKind, id};
use tollgate_store::{Cancelled, Task};

use crate::access::Caller;
use crate::app::App;
use crate::errors;
use crate::http::body::{self, SMALL_LIMIT};
use crate::http::reply::{self, Failure};
use crate::records::{Holds, Record};
use crate::run;
use crate::task_view::{self, View};

/// Ids that one batch may ask for (DECISIONS.md › Paths and shapes).
const BATCH_MAX: usize = 100;
const PAGE_DEFAULT: usize = 20;
const PAGE_MAX: usize = 100;

/// The task id in a path. What is not even text is the id of no task.
pub struct TaskId(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for TaskId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        Ok(Self(path.map_or_else(|_| String::new(), |Path(id)| id)))
    }
}

/// `GET /v1/tasks/<task_id>`. The record is made once for each change of the task.
pub async fn get(
    app: State<Arc<App>>,
    caller: Caller,
    TaskId(task_id): TaskId,
) -> Result<Response, Failure> {
    let (kept, stamp) = (app.config.expiry.tasks_ms(), app.store.stamp(&task_id));
    if let Some(record) = app.records.get(&task_id, stamp, app.clock.now(), kept) {
        if record.user_id != caller.key.user_id {
            return Err(task_view::unknown().into());
        }
        return Ok(reply::json_text(record.body));
    }
    let task = find(&app, &caller, &task_id).await?;
    let body = Bytes::from(task_view::view(&app, &task, View::Record)?.to_string());
    let holds = match task.ended_at {
        Some(ended_at) => Some(Holds::SinceEnd(ended_at)),
        None => stamp.map(Holds::WhileStamp),
    };
    if let Some(holds) = holds {
        let record = Record {
            user_id: task.user_id,
            holds,
            body: body.clone(),
        };
        app.records.put(&task_id, record);
    }
    Ok(reply::json_text(body))
}

/// `GET /v1/images/generations/<task_id>`.
pub async fn generation(
    app: State<Arc<App>>,
    caller: Caller,
    TaskId(task_id): TaskId,
) -> Result<Response, Failure> {
    let task = find(&app, &caller, &task_id).await?;
    Ok(reply::json(&task_view::view(
        &app,
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
) -> Result<Response, Failure> {
    let body = body::read_json(&headers, body, SMALL_LIMIT, &app.body_budget).await?;
    let ids = body
        .value
        .get("task_ids")
        .or_else(|| body.value.get("ids"))
        .and_then(Value::as_array);
    let ids = ids
        .filter(|ids| (1..=BATCH_MAX).contains(&ids.len()) && ids.iter().all(Value::is_string))
        .ok_or_else(|| {
            ApiError::invalid(format!(
                "`task_ids` must be an array of 1 to {BATCH_MAX} task id strings"
            ))
        })?;
    let mut records = Vec::with_capacity(ids.len());
    for id in ids {
        records.push(
            match find(&app, &caller, id.as_str().unwrap_or_default()).await {
                Ok(task) => task_view::view(&app, &task, View::Bare)?,
                Err(e) if e.kind == ErrorKind::NotFound => task_view::not_found(id),
                Err(e) => return Err(e.into()),
            },
        );
    }
    Ok(reply::json(&json!({ "code": 200, "data": records })))
}

/// What `GET /v1/tasks` may ask for.
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
) -> Result<Response, Failure> {
    let Query(query) = query.map_err(|_| {
        ApiError::invalid("the query must have `limit` and `cursor` at most once, as UTF-8 text")
    })?;
    let limit = match query.limit.as_deref() {
        None => PAGE_DEFAULT,
        Some(text) => text
            .parse()
            .ok()
            .filter(|n| (1..=PAGE_MAX).contains(n))
            .ok_or_else(|| {
                ApiError::invalid(format!(
                    "`limit` must be a whole number from 1 to {PAGE_MAX}"
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
        .tasks_of(&caller.key.user_id, limit, query.cursor.as_deref());
    let page = page.await.map_err(errors::store)?;
    let records = page
        .tasks
        .iter()
        .map(|task| task_view::view(&app, task, View::Bare));
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
) -> Result<Response, Failure> {
    let task = find(&app, &caller, &task_id).await?;
    match app
        .store
        .cancel(&task, app.clock.now())
        .await
        .map_err(errors::store)?
    {
        Cancelled::Done => {
            app.workers.stop(&task.id);
            run::call_off(&app, &task);
            if task.callback_url.is_some() {
                app.callbacks.wake();
            }
            app.metrics.task_ended(&task.family, "cancelled");
            let task = find(&app, &caller, &task_id).await?;
            Ok(reply::json(&task_view::view(&app, &task, View::Record)?))
        }
        Cancelled::AlreadyFinal => Err(ApiError::new(
            ErrorKind::Conflict,
            "the task has ended: only unfinished tasks can be cancelled",
        )
        .into()),
        Cancelled::NotFound => Err(task_view::unknown().into()),
    }
}

/// The caller's task of that id.
pub(super) async fn find(app: &App, caller: &Caller, task_id: &str) -> Result<Task, ApiError> {
    if !id::is_task_id(task_id) {
        return Err(task_view::unknown());
    }
    let task = app.store.task(task_id).await.map_err(errors::store)?;
    task.filter(|task| task.user_id == caller.key.user_id)
        .ok_or_else(task_view::unknown)
}
