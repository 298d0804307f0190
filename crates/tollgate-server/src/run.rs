//! A task's whole life in a worker, from the lease to the settled charge, as one numbered story.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tollgate_core::{Millis, crash};
use tollgate_media::image::{Family, ImageJob};
use tollgate_store::{
    AttemptBegun, AttemptEnd, AttemptStart, Delivered, End, Ended, Finish, Leased, Retry,
    StoreError,
};
use tollgate_upstream::{ImageCall, ProviderError, ProviderErrorKind};

use crate::app::App;
use crate::delivery::Shelf;
use crate::inputs::{self, Inputs};
use crate::routing::{Choice, Seat, Trouble};

/// Attempts that may fail before the task does.
const ATTEMPTS: i64 = 5;
/// Pause after the first failed attempt; doubles with each.
const FIRST_PAUSE: Millis = 200;
/// How long a task waits when every channel of its model is full, and when there is none.
const FULL_PAUSE: Millis = 250;
const NONE_PAUSE: Millis = 2_000;
/// How often a write that ends a task is tried again while the database is away.
const WRITE_TRIES: u32 = 40;

/// Why the work on a task stopped.
enum Stop {
    /// The task ends so.
    End(End, Option<AttemptEnd>),
    /// It is tried again after the failed attempt.
    Again(AttemptEnd),
    /// It goes back to the queue for that long, no attempt made.
    Wait(Millis),
    /// It is not ours any more, or we are leaving: nothing is to be written.
    Leave,
}

/// Runs one leased task. `stop` fires when the task ended elsewhere, its lease is lost, or the process drains.
pub async fn run(app: &Arc<App>, leased: Leased, stop: CancellationToken) {
    let task_id = leased.task.id.clone();
    let left = leased.task.deadline_at - app.clock.now();
    let limit = Duration::from_millis(u64::try_from(left).unwrap_or(0));
    let work = tokio::time::timeout(limit, work(app, &leased, &stop));
    let outcome = tokio::select! {
        biased;
        () = stop.cancelled() => Stop::Leave,
        outcome = work => outcome.unwrap_or_else(|_| timed_out(app)),
    };
    if let Err(e) = write_down(app, &leased, outcome).await {
        // The lease runs out and the task is taken up again, here or elsewhere.
        tracing::error!(task = task_id, error = %e, "cannot write down how a task ended");
    }
}

fn timed_out(app: &App) -> Stop {
    let seconds = app.config.time_limits.image_ms() / 1000;
    let message = format!("the task did not end within its time limit of {seconds} seconds");
    Stop::End(failure("timeout", message), None)
}

async fn work(app: &Arc<App>, leased: &Leased, stop: &CancellationToken) -> Stop {
    let task = &leased.task;

    // 1. The job, as validated at submission. One that cannot be read any more fails; it cost nothing.
    let (Some(family), Ok(mut job)) = (
        Family::by_name(&task.family),
        serde_json::from_str::<ImageJob>(&leased.job),
    ) else {
        tracing::error!(
            task = task.id,
            family = task.family,
            "a stored job cannot be read"
        );
        return Stop::End(
            failure(
                "server_error",
                "this version cannot read the task's job".to_owned(),
            ),
            None,
        );
    };

    // 2. A seat on a channel; the ones whose attempts failed come last.
    let tried = match leased.failed_attempts {
        0 => Vec::new(),
        _ => app
            .store
            .failed_channels(&task.id)
            .await
            .unwrap_or_default(),
    };
    let seat = match app.routing().channels.choose_image(&task.model, &tried) {
        Choice::Seat(seat) => seat,
        Choice::Full => {
            app.workers.crowded();
            return Stop::Wait(FULL_PAUSE);
        }
        Choice::Resting(_) | Choice::None => return Stop::Wait(NONE_PAUSE),
    };

    // 3. The references, fetched through the egress guard and checked; sizes that follow them.
    let inputs = match inputs::prepare(app, family, &mut job, task.deadline_at).await {
        Ok(inputs) => inputs,
        Err(e) => return Stop::End(failure("invalid_request", e.message), None),
    };

    // 4. The attempt is on disk before the provider hears of it.
    let start = AttemptStart {
        task_id: task.id.clone(),
        fence: leased.fence,
        channel: seat.open.channel.name.clone(),
        external_id: None,
        queued: false,
        key_print: None,
        abandon: None,
        now: app.clock.now(),
    };
    let number = match app.store.begin_attempt(start).await {
        Ok(AttemptBegun::Begun(number)) => number,
        Ok(AttemptBegun::StillOpen | AttemptBegun::LostLease) => return Stop::Leave,
        Err(e) => {
            tracing::warn!(task = task.id, error = %e, "cannot begin an attempt");
            return Stop::Wait(NONE_PAUSE);
        }
    };
    crash::point("run.after_attempt");

    // 5. The provider makes the pictures; each is on our disk before the next is taken.
    let shelf = Shelf::new(app, leased, job.n, family.links);
    let made = call(&seat, leased, &job, &inputs, &shelf, stop).await;
    report(&seat, &task.model, &made);

    // 6. What came of it.
    crash::point("run.before_finish");
    judge(leased, &seat, number, shelf, made)
}

async fn call(
    seat: &Seat,
    leased: &Leased,
    job: &ImageJob,
    inputs: &Inputs,
    shelf: &Shelf,
    stop: &CancellationToken,
) -> Result<Vec<ProviderError>, ProviderError> {
    let unfit = || {
        ProviderError::new(
            ProviderErrorKind::ChannelUnfit,
            "the channel makes no pictures",
        )
    };
    let provider = seat.open.provider.image.as_ref().ok_or_else(unfit)?;
    let upstream_model = seat
        .open
        .channel
        .upstream_model(&leased.task.model)
        .ok_or_else(unfit)?;
    let call = ImageCall {
        task_id: &leased.task.id,
        job,
        upstream_model,
        references: &inputs.references,
        mask: inputs.mask.as_ref(),
        failed_attempts: u32::try_from(leased.failed_attempts).unwrap_or(0),
        delivery: shelf,
        cancel: stop.child_token(),
    };
    provider.generate(call).await.map(|done| done.refused)
}

/// Tells the channel's health what happened.
fn report(seat: &Seat, model: &str, made: &Result<Vec<ProviderError>, ProviderError>) {
    match made.as_ref().err().map(|e| e.kind) {
        Some(ProviderErrorKind::Retryable) => seat.failed(model, Trouble::Down),
        Some(ProviderErrorKind::ChannelUnfit) => seat.failed(model, Trouble::ModelMissing),
        Some(ProviderErrorKind::Unknown | ProviderErrorKind::Interrupted) => {}
        _ => seat.succeeded(),
    }
}

/// Decides what the attempt means for the task. Whatever was delivered is kept and paid for; with nothing
/// delivered the provider's error decides.
fn judge(
    leased: &Leased,
    seat: &Seat,
    number: i64,
    shelf: Shelf,
    made: Result<Vec<ProviderError>, ProviderError>,
) -> Stop {
    let channel = &seat.open.channel.name;
    let (outcome, error) = match made {
        Ok(mut refused) => ("partial", refused.pop()),
        Err(e) => ("failed", Some(e)),
    };
    let ended = |outcome| AttemptEnd {
        number,
        outcome,
        error: error.as_ref().map(|e| e.message.clone()),
    };
    if let Some((units, result)) = shelf.result() {
        let outcome = if error.is_none() { "done" } else { outcome };
        let delivered = Delivered::Units(units);
        return Stop::End(End::Completed { delivered, result }, Some(ended(outcome)));
    }
    let error_kind = error.as_ref().map(|e| e.kind);
    tracing::warn!(
        task = leased.task.id,
        channel,
        attempt = number,
        kind = ?error_kind,
        error = error.as_ref().map(|e| e.message.as_str()),
        "an attempt failed"
    );
    let message = error
        .as_ref()
        .map_or("the provider made no picture", |e| e.message.as_str());
    match error_kind {
        Some(ProviderErrorKind::Interrupted) => Stop::Leave,
        Some(ProviderErrorKind::Retryable | ProviderErrorKind::ChannelUnfit)
            if leased.failed_attempts + 1 < ATTEMPTS =>
        {
            Stop::Again(ended("failed"))
        }
        Some(ProviderErrorKind::Moderated) => {
            let message = format!("{}: {message}", crate::safety::REFUSAL);
            Stop::End(failure("moderated", message), Some(ended("moderated")))
        }
        Some(ProviderErrorKind::Rejected) => Stop::End(
            failure("invalid_request", message.to_owned()),
            Some(ended("rejected")),
        ),
        Some(ProviderErrorKind::Unknown) => {
            let message =
                "the provider's answer is unknown; the request was not repeated".to_owned();
            Stop::End(failure("unknown_outcome", message), Some(ended("unknown")))
        }
        _ => Stop::End(
            failure("provider_error", message.to_owned()),
            Some(ended("failed")),
        ),
    }
}

fn failure(code: &str, message: String) -> End {
    End::Failed {
        code: code.to_owned(),
        message,
    }
}

/// 7. State, result and money in one transaction; tried again while the database is away, because the work is done.
async fn write_down(app: &Arc<App>, leased: &Leased, stop: Stop) -> Result<(), StoreError> {
    let task = &leased.task;
    match stop {
        Stop::Leave => Ok(()),
        Stop::Wait(pause) => {
            app.store
                .postpone(&task.id, leased.fence, app.clock.now() + pause)
                .await
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
                app.metrics
                    .task_ended(&task.family, if completed { "completed" } else { "failed" });
                inputs::discard(app, &leased.job).await;
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
