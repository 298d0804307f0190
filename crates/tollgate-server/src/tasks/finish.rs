//! The end of a turn: decides what the attempt means for the task, and writes it with the money in one transaction.

use std::time::Duration;

use tollgate_core::{Millis, crash};
use tollgate_store::{
    AttemptEnd, Delivered, FinishOutcome, LeasedTask, StoreError, Task, TaskEnd, TaskFinish,
    TaskRetry,
};
use tollgate_upstream::provider::Completed;
use tollgate_upstream::{ProviderError, UpstreamErrorKind};

use crate::otel::{EndedTask, TaskTrace};
use crate::tasks::context::TaskContext;
use crate::tasks::inputs;
use crate::tasks::moderation::REJECTION;
use crate::tasks::results::ResultStorage;
use crate::tasks::turn::{Attempt, TaskRun, TurnEnd};

/// Failed attempts after which the task fails.
const MAX_ATTEMPTS: i64 = 5;
/// Backoff after the first failed attempt; doubled with each further one.
const INITIAL_BACKOFF: Millis = 200;
/// The minimum number of attempts to write the end of a task while the database accepts no writes, and the pause between them.
const WRITE_TRIES: u32 = 40;
const WRITE_RETRY_PAUSE: Duration = Duration::from_millis(250);

/// Fails a task if this version cannot parse its stored job, or does not know its family.
pub(super) fn fail_unreadable_job(leased: &LeasedTask) -> TurnEnd {
    let task = &leased.task;
    tracing::error!(
        task = task.id,
        family = task.family,
        "a stored job cannot be read"
    );
    let message = "this version cannot read the task's job".to_owned();
    TurnEnd::Finish(failure("server_error", message), None)
}

/// The error message for a client whose task did not end by its deadline.
pub(super) fn time_limit_message(context: &TaskContext, task: &Task) -> String {
    let seconds = context.settings.time_limits.task_ms(task.kind) / 1000;
    format!("the task did not end within its time limit of {seconds} seconds")
}

pub(super) fn failure(code: &str, message: String) -> TaskEnd {
    TaskEnd::Failed {
        code: code.to_owned(),
        message,
    }
}

/// Decides what the attempt means for the task. Delivered results are kept and charged; if there are none, the provider's
/// error decides.
pub(super) fn end_attempt(
    run: &TaskRun,
    attempt: &Attempt,
    results: &ResultStorage,
    completed: Result<Completed, ProviderError>,
) -> TurnEnd {
    let is_completed = completed.is_ok();
    let error = match completed {
        Ok(mut completed) => completed.failures.pop(),
        Err(error) => Some(error),
    };
    let metrics = &run.context.metrics;
    let channel = &attempt.permit.open.channel.name;
    let is_ours = |e: &&ProviderError| e.kind == UpstreamErrorKind::Interrupted;
    if let Some(error) = error.as_ref().filter(|e| !is_ours(e)) {
        metrics.channel_error(channel, error.kind.recorded_name());
    }
    run.end_attempt_span(error.as_ref().map(|e| e.kind.recorded_name()));
    let attempt_end = |outcome| AttemptEnd {
        number: attempt.number,
        outcome,
        error: error.as_ref().map(|e| e.message.clone()),
    };
    if let Some((files, result)) = results.result() {
        if let Some(started_at) = attempt.started_at.filter(|_| is_completed) {
            let kind = run.leased.task.kind.name();
            let took = started_at.elapsed();
            metrics.provider_finished(channel, kind, took, run.attempt_span());
        }
        let outcome = match &error {
            None => "done",
            Some(_) if is_completed => "partial",
            Some(_) => "failed",
        };
        let delivered = Delivered::from_files(run.leased.task.kind, files);
        let end = TaskEnd::Completed { delivered, result };
        return TurnEnd::Finish(end, Some(attempt_end(outcome)));
    }
    let kind = error.as_ref().map(|e| e.kind);
    tracing::warn!(
        task = run.leased.task.id,
        channel = channel,
        attempt = attempt.number,
        kind = ?kind,
        error = error.as_ref().map(|e| e.message.as_str()),
        "an attempt failed"
    );
    let message = error.as_ref().map(ProviderError::client_message);
    let message = message.unwrap_or("the upstream returned no result".into());
    let finish = |code, message: String, outcome| {
        TurnEnd::Finish(failure(code, message), Some(attempt_end(outcome)))
    };
    match kind {
        Some(UpstreamErrorKind::Interrupted) => TurnEnd::Abandon,
        Some(kind) if kind.is_retryable() && run.leased.failed_attempts + 1 < MAX_ATTEMPTS => {
            TurnEnd::Retry(attempt_end("failed"))
        }
        Some(UpstreamErrorKind::Moderated) => {
            finish("moderated", format!("{REJECTION}: {message}"), "moderated")
        }
        Some(UpstreamErrorKind::Rejected) => {
            finish("invalid_request", message.into_owned(), "rejected")
        }
        Some(UpstreamErrorKind::OutcomeUnknown) => {
            let message =
                "the upstream's response was lost; the request was not repeated".to_owned();
            finish("unknown_outcome", message, "unknown")
        }
        Some(
            UpstreamErrorKind::KeyRejected
            | UpstreamErrorKind::QuotaExhausted
            | UpstreamErrorKind::ModelNotFound
            | UpstreamErrorKind::UnsupportedByChannel,
        ) => {
            // The upstream's message is about the gateway's own keys and bills, so it is only logged.
            let message = "no upstream could accept the task at the moment: try again later";
            finish("provider_error", message.to_owned(), "failed")
        }
        _ => finish("provider_error", message.into_owned(), "failed"),
    }
}

/// Writes how the turn ended. `channel` is `None` if the turn worked on no attempt.
pub(super) async fn write_turn_end(
    context: &TaskContext,
    leased: &LeasedTask,
    channel: Option<&str>,
    job: &str,
    end: TurnEnd,
) {
    if let Err(e) = try_write_turn_end(context, leased, channel, job, end).await {
        // The lease expires and the task is claimed again, by this node or another.
        let task_id = &leased.task.id;
        tracing::error!(task = task_id, error = %e, "cannot write the outcome of a turn of a task");
    }
}

async fn try_write_turn_end(
    context: &TaskContext,
    leased: &LeasedTask,
    channel: Option<&str>,
    job: &str,
    end: TurnEnd,
) -> Result<(), StoreError> {
    let (task, store, now) = (&leased.task, &context.store, context.clock.now());
    match end {
        TurnEnd::Abandon => Ok(()),
        TurnEnd::Postpone(pause) => {
            let due_at = (now + pause).min(task.deadline_at.max(now));
            store.postpone_task(&task.id, leased.fence, due_at).await
        }
        TurnEnd::Retry(attempt) => {
            let backoff = INITIAL_BACKOFF << leased.failed_attempts.clamp(0, 8);
            let retry = TaskRetry {
                task_id: task.id.clone(),
                fence: leased.fence,
                attempt,
                due_at: (now + backoff).min(task.deadline_at.max(now)),
                now,
            };
            store.retry_task(retry).await.map(drop)
        }
        TurnEnd::Finish(end, attempt) => {
            let completed = matches!(end, TaskEnd::Completed { .. });
            let error = match &end {
                TaskEnd::Completed { .. } => None,
                TaskEnd::Failed { code, .. } => Some(code.clone()),
            };
            let attempts = leased.failed_attempts + i64::from(channel.is_some());
            let finish = TaskFinish {
                task_id: task.id.clone(),
                user_id: task.user_id.clone(),
                key_id: task.key_id.clone(),
                fence: leased.fence,
                end,
                attempt,
                now,
            };
            let outcome = finish_with_retry(context, finish, task.deadline_at).await?;
            crash::point("run.after_finish");
            if matches!(outcome, FinishOutcome::LeaseLost) {
                // Another worker has the task.
                tracing::warn!(
                    task = task.id,
                    "a worker lost its lease before it could write the end of a task"
                );
                return Ok(());
            }
            if matches!(outcome, FinishOutcome::Finished { .. }) {
                count_end(context, leased, completed, now);
                if task.callback_url.is_some() {
                    context.webhook_due.notify_one();
                }
                inputs::delete_private_images_of_text(&context.files, task.kind, job).await;
            }
            let cost = match &outcome {
                FinishOutcome::Finished { cost } => Some(*cost),
                FinishOutcome::AlreadyFinal | FinishOutcome::LeaseLost => None,
            };
            if let (Some(trace), Some(cost)) = (TaskTrace::for_leased(leased), cost) {
                let error = error.as_deref();
                trace.end_task(&EndedTask {
                    channel,
                    attempts,
                    cost,
                    error,
                });
            }
            let cost = cost.map(tracing::field::display);
            tracing::info!(
                task = task.id,
                request_id = leased.request_id,
                key = task.key_id,
                model = task.model,
                channel,
                attempts,
                completed,
                cost,
                ended = ?outcome,
                "task ended"
            );
            Ok(())
        }
    }
}

/// Counts the end of a task in the metrics.
fn count_end(context: &TaskContext, leased: &LeasedTask, completed: bool, now: Millis) {
    let (task, metrics) = (&leased.task, &context.metrics);
    let state = if completed { "completed" } else { "failed" };
    metrics.task_ended(&task.family, state);
    let held = now - task.created_at;
    let span = TaskTrace::for_leased(leased).map(|trace| trace.context());
    metrics.task_settled(task.kind.name(), held, span);
}

/// Ends the task. Its work is done, so the write is retried until `deadline_at` while the database accepts no writes; once the process shuts down,
/// [`WRITE_TRIES`] times in total. If the lease is lost in between, the fence prevents the write.
async fn finish_with_retry(
    context: &TaskContext,
    finish: TaskFinish,
    deadline_at: Millis,
) -> Result<FinishOutcome, StoreError> {
    let mut tries = 1;
    loop {
        let is_last = if context.signals.draining.is_cancelled() {
            tries >= WRITE_TRIES
        } else {
            tries >= WRITE_TRIES && context.clock.now() >= deadline_at
        };
        match context.store.finish_task(finish.clone()).await {
            Err(StoreError::Unavailable(_) | StoreError::DiskFull(_) | StoreError::Overloaded)
                if !is_last =>
            {
                tokio::time::sleep(WRITE_RETRY_PAUSE).await;
            }
            outcome => return outcome,
        }
        tries += 1;
    }
}
