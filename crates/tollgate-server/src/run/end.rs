//! The end of a turn: what the attempt means for the task, written down with the money.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Millis, crash};
use tollgate_store::{AttemptEnd, Delivered, End, Ended, Finish, Leased, Retry, StoreError};
use tollgate_upstream::provider::Done;
use tollgate_upstream::{ProviderError, ProviderErrorKind};

use super::{Attempt, Run, Stop, follow};
use crate::app::App;
use crate::delivery::Shelf;
use crate::inputs;

/// Attempts that may fail before the task does.
const ATTEMPTS: i64 = 5;
/// Pause after the first failed attempt; doubles with each.
const FIRST_PAUSE: Millis = 200;
/// How often a write that ends a task is tried again while the database is away.
const WRITE_TRIES: u32 = 40;

/// What an attempt came to.
pub(super) struct Made {
    /// Of one that is done although results are missing.
    is_partial: bool,
    /// Why results are missing, or why there are none.
    error: Option<ProviderError>,
}

impl From<Result<Done, ProviderError>> for Made {
    fn from(made: Result<Done, ProviderError>) -> Self {
        match made {
            Ok(mut done) => Self {
                is_partial: true,
                error: done.refused.pop(),
            },
            Err(error) => Self {
                is_partial: false,
                error: Some(error),
            },
        }
    }
}

/// The deadline is over; a provider that still works on it is told to stop.
pub(super) async fn timed_out(run: &Run) -> Stop {
    let task = &run.leased.task;
    follow::call_off(&run.app, task);
    let seconds = run.app.config.time_limits.task_ms(task.kind) / 1000;
    let message = format!("the task did not end within its time limit of {seconds} seconds");
    Stop::End(failure("timeout", message), None)
}

/// The job or family is not one of this version.
pub(super) fn unreadable(leased: &Leased) -> Stop {
    let task = &leased.task;
    tracing::error!(
        task = task.id,
        family = task.family,
        "a stored job cannot be read"
    );
    let message = "this version cannot read the task's job".to_owned();
    Stop::End(failure("server_error", message), None)
}

pub(super) fn failure(code: &str, message: String) -> End {
    End::Failed {
        code: code.to_owned(),
        message,
    }
}

/// Decides what the attempt means for the task. Whatever was delivered is kept and paid for; with nothing
/// delivered the provider's error decides.
pub(super) fn judge(run: &Run, attempt: &Attempt, shelf: &Shelf, made: Made) -> Stop {
    let Made { is_partial, error } = made;
    let ended = |outcome| AttemptEnd {
        number: attempt.number,
        outcome,
        error: error.as_ref().map(|e| e.message.clone()),
    };
    if let Some((files, result)) = shelf.result() {
        let outcome = match (&error, is_partial) {
            (None, _) => "done",
            (Some(_), true) => "partial",
            (Some(_), false) => "failed",
        };
        let delivered = Delivered::of(run.leased.task.kind, files);
        return Stop::End(End::Completed { delivered, result }, Some(ended(outcome)));
    }
    let kind = error.as_ref().map(|e| e.kind);
    tracing::warn!(
        task = run.leased.task.id,
        channel = attempt.seat.open.channel.name,
        attempt = attempt.number,
        kind = ?kind,
        error = error.as_ref().map(|e| e.message.as_str()),
        "an attempt failed"
    );
    let message = error
        .as_ref()
        .map_or("the upstream made nothing", |e| e.message.as_str())
        .to_owned();
    match kind {
        Some(ProviderErrorKind::Interrupted) => Stop::Leave,
        Some(kind) if kind.may_be_tried_again() && run.leased.failed_attempts + 1 < ATTEMPTS => {
            Stop::Again(ended("failed"))
        }
        Some(ProviderErrorKind::Moderated) => {
            let message = format!("{}: {message}", crate::safety::REFUSAL);
            Stop::End(failure("moderated", message), Some(ended("moderated")))
        }
        Some(ProviderErrorKind::Rejected) => {
            Stop::End(failure("invalid_request", message), Some(ended("rejected")))
        }
        Some(ProviderErrorKind::Unknown) => {
            let message = "the upstream's answer was lost; the request was not repeated".to_owned();
            Stop::End(failure("unknown_outcome", message), Some(ended("unknown")))
        }
        Some(
            ProviderErrorKind::KeyRefused
            | ProviderErrorKind::QuotaExhausted
            | ProviderErrorKind::ModelMissing
            | ProviderErrorKind::ChannelUnfit,
        ) => {
            // What it says of the gateway's own keys and bills is the operator's business: it is in the log.
            let message = "no upstream could take the task at the moment: try again later";
            let failure = failure("provider_error", message.to_owned());
            Stop::End(failure, Some(ended("failed")))
        }
        _ => Stop::End(failure("provider_error", message), Some(ended("failed"))),
    }
}

/// 9. State, result and money in one transaction; tried again while the database is away, because the work is done.
pub(super) async fn write_down(app: &Arc<App>, leased: &Leased, job: &str, stop: Stop) {
    if let Err(e) = write(app, leased, job, stop).await {
        // The lease runs out and the task is taken up again, here or elsewhere.
        let task_id = &leased.task.id;
        tracing::error!(task = task_id, error = %e, "cannot write down how a task ended");
    }
}

async fn write(app: &Arc<App>, leased: &Leased, job: &str, stop: Stop) -> Result<(), StoreError> {
    let task = &leased.task;
    match stop {
        Stop::Leave => Ok(()),
        Stop::Wait(pause) => {
            let due_at = (app.clock.now() + pause).min(task.deadline_at.max(app.clock.now()));
            app.store.postpone(&task.id, leased.fence, due_at).await
        }
        Stop::Again(attempt) => {
            let now = app.clock.now();
            let pause = FIRST_PAUSE << leased.failed_attempts.clamp(0, 8);
            let retry = Retry {
                task_id: task.id.clone(),
                fence: leased.fence,
                attempt,
                due_at: (now + pause).min(task.deadline_at.max(now)),
                now,
            };
            app.store.try_again(retry).await.map(drop)
        }
        Stop::End(end, attempt) => {
            let completed = matches!(end, End::Completed { .. });
            let finish = Finish {
                task_id: task.id.clone(),
                user_id: task.user_id.clone(),
                key_id: task.key_id.clone(),
                fence: leased.fence,
                end,
                attempt,
                now: app.clock.now(),
            };
            let ended = patiently(app, finish).await?;
            crash::point("run.after_finish");
            if matches!(ended, Ended::Done { .. }) {
                let how = if completed { "completed" } else { "failed" };
                app.metrics.task_ended(&task.family, how);
                if task.callback_url.is_some() {
                    app.callbacks.wake();
                }
                inputs::discard(app, task.kind, job).await;
            }
            tracing::info!(task = task.id, request_id = leased.request_id, completed, ended = ?ended, "task ended");
            Ok(())
        }
    }
}

async fn patiently(app: &App, finish: Finish) -> Result<Ended, StoreError> {
    for _ in 1..WRITE_TRIES {
        match app.store.finish(finish.clone()).await {
            Err(StoreError::Unavailable(_) | StoreError::Overloaded) => {
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
            done => return done,
        }
    }
    app.store.finish(finish).await
}
