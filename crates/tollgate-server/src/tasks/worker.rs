//! Runs a task in a worker, from the lease to the settled charge, in numbered steps.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tollgate_core::{ErrorKind, crash};
use tollgate_media::{AnyFamily, Job};
use tollgate_store::LeasedTask;
use tollgate_upstream::UpstreamErrorKind;
use tollgate_upstream::provider::Started;

use crate::routing::ChannelPermit;
use crate::tasks::attempt::{self, NewAttempt, ProviderCall};
use crate::tasks::cancel::cancel_at_provider;
use crate::tasks::context::TaskContext;
use crate::tasks::finish::{self, failure};
use crate::tasks::inputs::{self, Inputs};
use crate::tasks::poll::{self, Resumed};
use crate::tasks::progress::Progress;
use crate::tasks::turn::{NO_STORAGE_PAUSE, TaskRun, TurnEnd, requested_files};
use crate::tasks::work_permit::WorkPermit;

/// Runs one turn of a leased task. `work` counts the task among those that this process works on; `stop` fires when the task was ended by others, its
/// lease is lost, or the process shuts down.
pub async fn run(
    context: Arc<TaskContext>,
    leased: LeasedTask,
    work: WorkPermit,
    stop: CancellationToken,
) {
    let (task_id, job) = (leased.task.id.clone(), leased.job.clone());
    let time_left = leased.task.deadline_at - context.clock.now();
    let timeout = Duration::from_millis(u64::try_from(time_left).unwrap_or(0));
    let Some(family) = AnyFamily::by_name(&leased.task.family) else {
        let end = finish::fail_unreadable_job(&leased);
        return finish::write_turn_end(&context, &leased, None, &job, end).await;
    };
    let run = TaskRun {
        progress: Progress::new(&context.store, &context.clock, &leased),
        stop: stop.clone(),
        context,
        leased,
        family,
        channel: OnceLock::new(),
        span: OnceLock::new(),
    };
    // Boxed: thousands of these wait at the same time, most of them in a part that needs little memory.
    let turn = tokio::time::timeout(timeout, Box::pin(run_turn(&run, work)));
    let end = tokio::select! {
        biased;
        () = stop.cancelled() => TurnEnd::Abandon,
        // If the deadline has passed, a turn that would only postpone the task must not complete first.
        () = std::future::ready(()), if time_left <= 0 => time_out(&run),
        end = turn => end.unwrap_or_else(|_| time_out(&run)),
    };
    tracing::debug!(task = task_id, "a turn of a task ended");
    let channel = run.channel.get().map(String::as_str);
    finish::write_turn_end(&run.context, &run.leased, channel, &job, end).await;
}

async fn run_turn(run: &TaskRun, mut work: WorkPermit) -> TurnEnd {
    let leased = &run.leased;
    let task = &leased.task;

    // 1. Read the job as it was validated at submission. If it cannot be parsed, the task fails at no cost.
    let Ok(mut job) = Job::from_text(task.kind, &leased.job) else {
        return finish::fail_unreadable_job(leased);
    };
    let max_files = requested_files(&job);

    // 2. Resume an attempt that an earlier turn left in a provider's queue. It is never simply started again.
    let mut lost_attempt = None;
    if let Some(open) = leased.queued_attempt.clone() {
        match poll::resume(run, &open, &job).await {
            Resumed::Attempt(attempt, provider_job_id) => {
                return poll::poll_until_finished(run, attempt, provider_job_id, max_files, work)
                    .await;
            }
            Resumed::NeverStarted => lost_attempt = Some(open),
            Resumed::End(end) => return end,
        }
    }

    // 3. and 4. Fetch and check the references, and acquire permits of a channel and of the workers.
    let (channel, inputs) = match prepare_call(run, &mut work, &mut job).await {
        Ok(prepared) => prepared,
        Err(end) => return end,
    };

    // 5. Write the attempt to disk before the provider is called.
    let external_id = tollgate_core::id::short_id("tollgate-");
    let started = attempt::start(run, channel, &external_id, lost_attempt.as_ref());
    let mut attempt = match started.await {
        NewAttempt::Started(attempt) => attempt,
        NewAttempt::End(end) => return end,
    };
    crash::point("run.after_attempt");

    // 6. Call the provider. If it does the work within the call, each result is stored on disk before the next one is read.
    let results = run.result_storage(max_files).with_repeated_downloads();
    let call = ProviderCall {
        run,
        attempt: &attempt,
        external_id: &external_id,
        job: &job,
        inputs: &inputs,
        results: &results,
    };
    let started = Box::pin(call.start()).await;
    crash::point("run.after_start");
    match &started {
        Ok(_) => attempt::record_success(run, &attempt).await,
        Err(error) => attempt
            .permit
            .record_error(&task.model, &task.user_id, error),
    }
    attempt.adjustments = results.adjustments();

    // 7. Poll work that the provider accepted into its queue until it ends there.
    let completed = match started {
        Ok(Started::Accepted(provider_job_id)) => {
            drop((results, inputs));
            if let Err(end) = poll::record_provider_job(run, &attempt, &provider_job_id).await {
                return end;
            }
            crash::point("run.after_provider_job_id");
            return poll::poll_until_finished(run, attempt, provider_job_id, max_files, work).await;
        }
        Ok(Started::Completed(completed)) => Ok(completed),
        Err(error) => match poll::find_lost_start(run, &attempt, &external_id, &job, error).await {
            poll::LostStart::Accepted(provider_job_id) => {
                return poll::poll_until_finished(run, attempt, provider_job_id, max_files, work)
                    .await;
            }
            poll::LostStart::Error(error) => Err(error),
            poll::LostStart::End(end) => return end,
        },
    };

    // 8. Decide what the attempt means for the task.
    crash::point("run.before_finish");
    finish::end_attempt(run, &attempt, &results, completed)
    // 9. `run` writes state, result and money in one transaction.
}

/// Steps 3 and 4: downloads references before any permit of a channel or worker is taken; then acquires these permits, checks the other reference
/// images, and determines the sizes that depend on them.
async fn prepare_call(
    run: &TaskRun,
    work: &mut WorkPermit,
    job: &mut Job,
) -> Result<(ChannelPermit, Inputs), TurnEnd> {
    let mut fetched = None;
    if inputs::needs_fetch(job) {
        fetched = Some(fetch_references(run, work, job).await?);
    }
    let channel = attempt::acquire_permits(run, work, fetched.is_some()).await?;
    let inputs = match fetched {
        Some(inputs) => inputs,
        None => prepare_references(run, job).await?,
    };
    Ok((channel, inputs))
}

/// Downloads the references through the egress guard, within the share of the task's user.
async fn fetch_references(
    run: &TaskRun,
    work: &mut WorkPermit,
    job: &mut Job,
) -> Result<Inputs, TurnEnd> {
    let signals = &run.context.signals;
    attempt::check_channels(run, work).await?;
    work.pause();
    // The pool may claim other tasks now.
    signals.wake_pool();
    let _permit = tokio::select! {
        permit = signals.fetches.acquire(&run.leased.task.user_id) => permit,
        () = signals.draining.cancelled() => return Err(TurnEnd::Postpone(0)),
    };
    prepare_references(run, job).await
}

async fn prepare_references(run: &TaskRun, job: &mut Job) -> Result<Inputs, TurnEnd> {
    let deadline_at = run.leased.task.deadline_at;
    let preparing = inputs::prepare(&run.context, run.family, job, deadline_at);
    Box::pin(preparing).await.map_err(|e| match e.kind {
        ErrorKind::Unavailable => TurnEnd::Postpone(NO_STORAGE_PAUSE),
        _ => TurnEnd::Finish(failure("invalid_request", e.message), None),
    })
}

/// Fails the task because its deadline has passed, and cancels the work at the provider.
fn time_out(run: &TaskRun) -> TurnEnd {
    let task = &run.leased.task;
    if let Some(open) = &run.leased.queued_attempt {
        // The turn may not have resumed this attempt yet.
        let _ = run.channel.set(open.channel.clone());
    }
    let timed_out = UpstreamErrorKind::TimedOut.recorded_name();
    run.end_attempt_span(Some(timed_out));
    cancel_at_provider(&run.context, task);
    let message = finish::time_limit_message(&run.context, task);
    TurnEnd::Finish(failure("timeout", message), None)
}
