//! Tasks: list all, show one, cancel one, send its webhook again.

use async_trait::async_trait;
use http::Method;
use serde_json::{Value, json};
use tollgate_core::TaskState;
use tollgate_server::http::admin_error::AdminError;
use tollgate_server::tasks::cancel::{cancel_at_provider, trace_forced_end};
use tollgate_server::tasks::view::{self, View};
use tollgate_storage::file_name::media_type_of;
use tollgate_store::{
    AttemptRecord, Entry, Store, Task, TaskDetails, TaskFilter, WebhookLog, amount_json, time_json,
};

use super::call::{Call, written};
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::list::{self, Item, Listing};
use super::refunds::unit_of_task;
use super::reply::Reply;
use super::scope::Scope;

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::GET,
        path: "/tasks",
        access: Access::Scope(Scope::TasksRead),
        summary: "Tasks, newest first.",
        query: &[
            "from",
            "to",
            "user_id",
            "key_id",
            "kind",
            "model",
            "channel",
            "state",
            "error_code",
            "provider_job_id",
        ],
        body: None,
        returns: Returns::List("task"),
        handler: handler!(list_tasks),
    },
    Endpoint {
        method: Method::GET,
        path: "/tasks/{id}",
        access: Access::Scope(Scope::TasksRead),
        summary: "A task with its record, request, attempts, charge, webhook and files.",
        query: &[],
        body: None,
        returns: Returns::Object("task_detail", 200),
        handler: handler!(get),
    },
    Endpoint {
        method: Method::POST,
        path: "/tasks/{id}/cancel",
        access: Access::Scope(Scope::TasksWrite),
        summary: "Cancels an unfinished task on behalf of its user.",
        query: &[],
        body: Some("action"),
        returns: Returns::Object("task_detail", 200),
        handler: handler!(cancel),
    },
    Endpoint {
        method: Method::POST,
        path: "/tasks/{id}/webhook/resend",
        access: Access::Scope(Scope::TasksWrite),
        summary: "Resends the webhook of an ended task.",
        query: &[],
        body: Some("action"),
        returns: Returns::Object("webhook", 202),
        handler: handler!(resend_webhook),
    },
];

/// The list of tasks that match the filter, newest first.
pub(crate) struct Tasks(pub(crate) TaskFilter);

#[async_trait]
impl Listing for Tasks {
    fn columns(&self) -> &'static [&'static str] {
        &[
            "id",
            "kind",
            "model",
            "state",
            "user_id",
            "key_id",
            "channel",
            "provider_job_id",
            "error_code",
            "held",
            "cost",
            "refunded",
            "created_at",
            "started_at",
            "ended_at",
        ]
    }

    async fn page(
        &self,
        store: &Store,
        after: Option<&[String]>,
        limit: usize,
    ) -> Result<Vec<Item>, AdminError> {
        let before = list::position_id(after)?;
        let tasks = store.admin_list_tasks(&self.0, before, limit).await?;
        let items = tasks.into_iter().map(|task| Item {
            position: vec![task.id.clone()],
            value: task.into_json(),
        });
        Ok(items.collect())
    }
}

async fn list_tasks(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let filter = task_filter(&call)?;
    list::reply(&call, Tasks(filter)).await
}

/// Parses the filter in the query.
///
/// # Errors
/// 400 for an invalid time.
pub(crate) fn task_filter(call: &Call) -> Result<TaskFilter, AdminError> {
    let query = &call.query;
    let (from, to) = query.window(call.now)?;
    let states = query.list("state").map(|names| {
        let is_named = |state: &TaskState| names.iter().any(|name| name == state.name());
        TaskState::ALL.into_iter().filter(is_named).collect()
    });
    Ok(TaskFilter {
        from,
        to,
        user_ids: query.list("user_id"),
        key_ids: query.list("key_id"),
        kinds: query.list("kind"),
        models: query.list("model"),
        channels: query.list("channel"),
        states,
        error_codes: query.list("error_code"),
        provider_job_ids: query.list("provider_job_id"),
    })
}

/// Finds the task of the request's path.
///
/// # Errors
/// 404 if there is none.
pub(crate) async fn find(call: &Call) -> Result<Task, AdminError> {
    let task = call.app.store.task(call.id()).await?;
    task.ok_or_else(|| AdminError::not_found("task"))
}

async fn get(call: Call) -> Result<Reply, AdminError> {
    let task = find(&call).await?;
    call.check_query()?;
    Ok(Reply::json(page(&call, &task).await?))
}

async fn cancel(call: Call) -> Result<Reply, AdminError> {
    let task = find(&call).await?;
    let request = call.action()?;
    let app = &call.app;
    let result = app.store.admin_cancel_task(&request, &task).await;
    let is_first = matches!(&result, Ok(Ok(reply)) if !reply.is_replay);
    if is_first {
        app.pool.stop_task(&task.id);
        cancel_at_provider(&app.tasks, &task);
        trace_forced_end(&app.tasks, &task, "cancelled");
        if task.callback_url.is_some() {
            app.tasks.webhook_due.notify_one();
        }
        app.metrics.task_ended(&task.family, "cancelled");
    }
    let mut result = result;
    if let Ok(Ok(reply)) = &mut result {
        reply.body = page(&call, &find(&call).await?).await?;
    }
    written(result, "task")
}

async fn resend_webhook(call: Call) -> Result<Reply, AdminError> {
    let task = find(&call).await?;
    let request = call.action()?;
    let app = &call.app;
    let mut result = app.store.admin_resend_webhook(&request, &task).await;
    if let Ok(Ok(reply)) = &mut result {
        app.tasks.webhook_due.notify_one();
        let webhook = app.store.webhook_log(&task.id).await?;
        reply.body = webhook.as_ref().map_or(Value::Null, webhook_json);
    }
    written(result, "task")
}

/// All details of a task as JSON.
///
/// # Errors
/// 404 if it was purged meanwhile, 500 if the stored task cannot be parsed, the database's.
pub(crate) async fn page(call: &Call, task: &Task) -> Result<Value, AdminError> {
    let app = &call.app;
    let details = app.store.admin_task_details(&task.id).await?;
    let details = details.ok_or_else(|| AdminError::not_found("task"))?;
    let charge = app.store.task_charge(&task.id).await?;
    let webhook = app.store.webhook_log(&task.id).await?;
    let unreadable = || AdminError::with_status(500, "the stored task cannot be read");
    let record = view::render(&app.files, task, View::Bare).map_err(|_| unreadable())?;
    let files = view::result_files(task).map_err(|_| unreadable())?;
    let files = files.iter().map(|file| {
        json!({
            "url": app.files.url(&file.name),
            "type": media_type_of(&file.name),
            "bytes": file.bytes,
            "expires_at": time_json(file.expires_at * 1000),
        })
    });
    let mut page = details.item.clone();
    let adjustments = record.get("adjustments").cloned();
    page["adjustments"] = adjustments.unwrap_or_else(|| json!([]));
    page["record"] = record;
    let job = charge.as_ref().and_then(|charge| charge.job.as_ref());
    let request = job.map(|(_, job)| serde_json::from_str::<Value>(job));
    page["request"] = request.transpose().map_err(|_| unreadable())?.into();
    page["attempts"] = details
        .attempts
        .iter()
        .map(AttemptRecord::to_json)
        .collect();
    page["charge"] = charge.as_ref().map_or(Value::Null, |charge| {
        charge.to_admin_json(unit_of_task(charge))
    });
    page["entries"] = details.entries.iter().map(Entry::to_json).collect();
    page["webhook"] = webhook.as_ref().map_or(Value::Null, webhook_json);
    page["files"] = files.collect();
    page["timeline"] = Value::Array(timeline(task, &details));
    Ok(page)
}

fn webhook_json(webhook: &WebhookLog) -> Value {
    let tries = webhook.tries.iter().map(|attempt| {
        json!({
            "number": attempt.number,
            "at": time_json(attempt.at),
            "ms": attempt.took_ms,
            "status": attempt.status,
            "error": attempt.error,
        })
    });
    json!({ "url": webhook.url, "state": webhook.state.name(), "tries": tries.collect::<Vec<_>>() })
}

/// The events of a task, the oldest first: its own times, its attempts, and its ledger entries.
fn timeline(task: &Task, details: &TaskDetails) -> Vec<Value> {
    let step = |at: i64, event: &str, amount: Value, attempt: Option<i64>| {
        let step =
            json!({ "at": time_json(at), "event": event, "amount": amount, "attempt": attempt });
        (at, step)
    };
    let mut steps = vec![step(task.created_at, "accepted", Value::Null, None)];
    let is_money = |kind: &str| ["hold", "settle", "release", "refund"].contains(&kind);
    let (held, closed): (Vec<_>, Vec<_>) = details
        .entries
        .iter()
        .filter(|entry| is_money(&entry.kind))
        .partition(|entry| entry.kind == "hold");
    steps.extend(
        held.iter()
            .map(|entry| step(entry.at, "held", amount_json(entry.amount), None)),
    );
    for attempt in &details.attempts {
        let number = Some(attempt.number);
        steps.push(step(
            attempt.started_at,
            "attempt_started",
            Value::Null,
            number,
        ));
        let Some(ended_at) = attempt.ended_at else {
            continue;
        };
        let is_success = task.state == TaskState::Completed
            && details.attempts.last().map(|last| last.number) == number;
        if attempt.outcome.as_deref() == Some("cancelled") {
            continue;
        }
        let event = if is_success {
            "fetched"
        } else {
            "attempt_failed"
        };
        steps.push(step(ended_at, event, Value::Null, number));
    }
    if let Some(at) = details.polled_at {
        let number = details.attempts.last().map(|last| last.number);
        steps.push(step(at, "polled", Value::Null, number));
    }
    for entry in closed {
        let event = match entry.kind.as_str() {
            "settle" => "settled",
            "release" => "released",
            _ => "refunded",
        };
        steps.push(step(entry.at, event, amount_json(entry.amount), None));
    }
    if let Some(ended_at) = task.ended_at {
        steps.push(step(ended_at, "ended", Value::Null, None));
    }
    // The sort is stable: events of the same millisecond stay in the order above.
    steps.sort_by_key(|(at, _)| *at);
    steps.into_iter().map(|(_, step)| step).collect()
}
