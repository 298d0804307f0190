//! Work in a provider's queue: records its provider job id, polls it until it ends, and finds it again after a restart.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Adjustment, Millis, crash};
use tollgate_media::Job;
use tollgate_store::{ProviderJob, QueuedAttempt};
use tollgate_upstream::provider::{
    ExecutionMode, FindCall, Found, PollInterval, Polled, Queue, QueueCall,
};
use tollgate_upstream::{ProviderError, ResultSink, UpstreamErrorKind};

use crate::otel;
use crate::routing::ChannelPermit;
use crate::tasks::attempt;
use crate::tasks::cancel::cancel_provider_job;
use crate::tasks::finish;
use crate::tasks::results::{MAX_DOWNLOADS, RejectResults, ResultStorage, as_final_failure};
use crate::tasks::turn::{Attempt, NO_CHANNEL_PAUSE, TaskRun, TurnEnd};
use crate::tasks::work_permit::WorkPermit;

/// Longest pause before the next poll after a failed one.
const MAX_POLL_PAUSE: Duration = Duration::from_secs(60);
/// How often the gateway tries to write the provider job id while the database is unavailable, and the pause between attempts.
const RECORD_TRIES: u32 = 40;
const RECORD_RETRY_PAUSE: Duration = Duration::from_millis(250);
/// Pause between two searches for work whose response was lost.
const FIND_PAUSE: Duration = Duration::from_secs(2);
/// How often a search that finds nothing is repeated: providers list new work only a moment after accepting it.
const FIND_RETRIES: u32 = 2;
/// How long a task is postponed if a search for its work failed.
const FAILED_FIND_PAUSE: Millis = 2_000;
/// How long a task is postponed if its channel is not configured any more.
const MISSING_CHANNEL_PAUSE: Millis = 30_000;

/// The result of resuming an attempt that an earlier turn left open.
pub(super) enum Resumed {
    /// It is in the provider's queue, under this provider job id.
    Attempt(Attempt, String),
    /// The provider never received it: another attempt may start.
    NeverStarted,
    End(TurnEnd),
}

/// The meaning of an error of the starting call.
pub(super) enum LostStart {
    /// The provider accepted the work nevertheless, with this provider job id.
    Accepted(String),
    /// The attempt failed with this error: that of the call, or `Unavailable` if a search showed that the provider never accepted the work.
    Error(ProviderError),
    /// The turn ends, and the attempt stays open.
    End(TurnEnd),
}

/// Writes the provider job id to the store before anything else is done with it. If the task has ended in between, the work is cancelled at the
/// provider.
pub(super) async fn record_provider_job(
    run: &TaskRun,
    attempt: &Attempt,
    provider_job_id: &str,
) -> Result<(), TurnEnd> {
    let (task, store) = (&run.leased.task, &run.context.store);
    let job = ProviderJob {
        task_id: task.id.clone(),
        fence: run.leased.fence,
        number: attempt.number,
        provider_job_id: provider_job_id.to_owned(),
        adjustments: adjustments_to_text(&attempt.adjustments),
        now: run.context.clock.now(),
    };
    for _ in 0..RECORD_TRIES {
        match store.record_provider_job(job.clone()).await {
            Ok(true) => return Ok(()),
            Ok(false) => {
                let current = store.task(&task.id).await;
                if current.is_ok_and(|task| task.is_some_and(|task| task.state.is_final())) {
                    cancel_provider_job(task, &attempt.permit, provider_job_id).await;
                }
                return Err(TurnEnd::Abandon);
            }
            Err(e) => {
                tracing::error!(task = task.id, error = %e, "cannot write a provider job id");
                tokio::time::sleep(RECORD_RETRY_PAUSE).await;
            }
        }
    }
    // The attempt stays open without a provider job id: another turn searches for it.
    Err(TurnEnd::Abandon)
}

/// Polls the provider until the work has ended there and its results are stored. `work` is released first: it is for active work, and there are many
/// more permits for waiting.
pub(super) async fn poll_until_finished(
    run: &TaskRun,
    mut attempt: Attempt,
    provider_job_id: String,
    max_files: u32,
    work: WorkPermit,
) -> TurnEnd {
    let (task, signals) = (&run.leased.task, &run.context.signals);
    let Some(first_queue) = attempt.permit.open.provider.queue.clone() else {
        tracing::error!(
            task = task.id,
            "a task has a provider job id, but its channel has no queue"
        );
        return TurnEnd::Postpone(NO_CHANNEL_PAUSE);
    };
    let interval = poll_interval(run, &attempt.permit, first_queue.as_ref());
    // If the permits for waiting are used up too, the task waits in the gateway's own queue instead.
    let Ok(_polling) = Arc::clone(&signals.polling).try_acquire_owned() else {
        let pause = Millis::try_from(interval.every.as_millis()).unwrap_or(NO_CHANNEL_PAUSE);
        return TurnEnd::Postpone(pause);
    };
    drop(work);
    signals.wake_pool();
    let mut pause = first_pause(run, &attempt, interval);
    let mut failed_polls = FailedPolls::default();
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            // The provider job id is on disk: the next worker continues with it.
            () = signals.draining.cancelled() => return TurnEnd::Postpone(0),
        }
        crash::point("run.before_poll");
        let queue = attempt.permit.open.provider.queue.clone();
        let queue = queue.unwrap_or_else(|| Arc::clone(&first_queue));
        let results = run.result_storage(max_files);
        for adjustment in &attempt.adjustments {
            results.record_adjustment(adjustment.clone());
        }
        let poll = PollCall {
            run,
            permit: &attempt.permit,
            queue: queue.as_ref(),
            provider_job_id: &provider_job_id,
            max_files,
            results: &results,
        };
        let (completed, next_pause) = match Box::pin(poll.send()).await {
            Ok(Polled::Pending(percent)) => {
                percent.into_iter().for_each(|p| run.progress.report(p));
                (None, interval.every)
            }
            Ok(Polled::Completed(completed)) => (Some(Ok(completed)), interval.every),
            Ok(Polled::Failed(e)) => (Some(Err(e)), interval.every),
            Err(e) => match failed_polls.add(&e, results.was_used(), pause, interval.every) {
                Some(next_pause) => {
                    tracing::warn!(task = task.id, error = %e, "cannot poll a task");
                    // The configuration may have been reloaded: the channel may have another key or address now.
                    let reloadable = run.context.reloadable.current();
                    let routing = &reloadable.routing;
                    routing.renew_permit(&mut attempt.permit, &task.user_id);
                    (None, next_pause)
                }
                None => (Some(Err(as_final_failure(e))), interval.every),
            },
        };
        if let Some(completed) = completed {
            crash::point("run.before_finish");
            return finish::end_attempt(run, &attempt, &results, completed);
        }
        results.discard().await;
        pause = next_pause;
    }
}

/// Counts the polls of a job that failed.
#[derive(Default)]
struct FailedPolls {
    downloads: u32,
}

impl FailedPolls {
    /// Counts a poll that failed after a `pause`; `is_download` if the job had ended and its results could not be obtained. Returns the pause before
    /// the next poll, which is at least `every`, or [`MAX_POLL_PAUSE`] if that is shorter. `None` if no further poll can succeed, or the results were
    /// downloaded [`MAX_DOWNLOADS`] times.
    fn add(
        &mut self,
        error: &ProviderError,
        is_download: bool,
        pause: Duration,
        every: Duration,
    ) -> Option<Duration> {
        self.downloads += u32::from(is_download);
        if !error.kind.is_retryable() || self.downloads >= MAX_DOWNLOADS {
            return None;
        }
        let wanted = error.retry_after.unwrap_or(pause.saturating_mul(2));
        Some(wanted.max(every).min(MAX_POLL_PAUSE))
    }
}

/// The arguments of one request for the state of a provider job.
struct PollCall<'a> {
    run: &'a TaskRun,
    permit: &'a ChannelPermit,
    queue: &'a dyn Queue,
    provider_job_id: &'a str,
    max_files: u32,
    results: &'a ResultStorage,
}

impl PollCall<'_> {
    async fn send(&self) -> Result<Polled, ProviderError> {
        let task = &self.run.leased.task;
        let model = self.permit.open.channel.model(&task.model);
        let model = model.ok_or_else(|| {
            let message = "the channel no longer serves the task's model";
            ProviderError::new(UpstreamErrorKind::UnsupportedByChannel, message)
        })?;
        let call = QueueCall {
            task_id: &task.id,
            kind: task.kind,
            provider_job_id: self.provider_job_id,
            requested: self.max_files,
            model: &model,
            key: self.permit.key(),
            sink: self.results,
        };
        self.queue.poll(call).await
    }
}

/// The channel's configured interval, else the provider's.
fn poll_interval(run: &TaskRun, permit: &ChannelPermit, queue: &dyn Queue) -> PollInterval {
    match permit.open.channel.poll {
        Some(every) => PollInterval {
            first: every,
            every,
        },
        None => queue.poll_interval(run.leased.task.kind),
    }
}

/// The pause before the first poll. For work that an earlier turn left in the queue it is a random part of the interval, because after a restart all
/// such tasks resume at once.
fn first_pause(run: &TaskRun, attempt: &Attempt, interval: PollInterval) -> Duration {
    let open = run.leased.queued_attempt.as_ref();
    if open.is_some_and(|open| open.number == attempt.number) {
        return interval.every.mul_f64(rand::random());
    }
    interval.first
}

/// Resumes an attempt that an earlier turn, on this node or another, left in a provider's queue.
pub(super) async fn resume(run: &TaskRun, open: &QueuedAttempt, job: &Job) -> Resumed {
    let reloadable = run.context.reloadable.current();
    let permit = reloadable.routing.acquire_for_running_work(
        &open.channel,
        open.key_fingerprint.as_deref(),
        &run.leased.task.user_id,
    );
    let Some(permit) = permit else {
        tracing::warn!(
            task = run.leased.task.id,
            channel = open.channel,
            "a task's channel is no longer configured"
        );
        return Resumed::End(TurnEnd::Postpone(MISSING_CHANNEL_PAUSE));
    };
    let started = otel::system_time(open.started_at);
    let mut attempt = Attempt {
        number: open.number,
        permit,
        started_at: None,
        adjustments: adjustments_from_text(open),
    };
    if let Some(provider_job_id) = &open.provider_job_id {
        run.trace_attempt(open.number, &attempt.permit.open.channel, started);
        return Resumed::Attempt(attempt, provider_job_id.clone());
    }
    let external_id = open.external_id.clone().unwrap_or_default();
    let results = run.result_storage(0);
    let found = find_in_queue(run, &attempt.permit, &external_id, job, &results).await;
    let found = match found {
        Ok(found) => found,
        Err(end) => return Resumed::End(end),
    };
    match found {
        Found::Accepted(provider_job_id) => {
            attempt.adjustments = results.adjustments();
            match record_provider_job(run, &attempt, &provider_job_id).await {
                Ok(()) => {
                    run.trace_attempt(open.number, &attempt.permit.open.channel, started);
                    Resumed::Attempt(attempt, provider_job_id)
                }
                Err(end) => Resumed::End(end),
            }
        }
        Found::Nothing => Resumed::NeverStarted,
        Found::Unknown => Resumed::End(postpone_to_deadline(run)),
    }
}

/// Determines the meaning of an error of the starting call: if the provider may have accepted the work, the gateway searches for it and never simply
/// starts it again.
pub(super) async fn find_lost_start(
    run: &TaskRun,
    attempt: &Attempt,
    external_id: &str,
    job: &Job,
    error: ProviderError,
) -> LostStart {
    if error.kind != UpstreamErrorKind::OutcomeUnknown {
        return LostStart::Error(error);
    }
    if attempt::execution_mode(run, &attempt.permit) == ExecutionMode::Direct {
        // Results that are delivered within the call cannot be obtained after the call.
        return LostStart::Error(error);
    }
    // The starting call has already reported its adjustments; the search would report the same ones.
    let found = find_in_queue(run, &attempt.permit, external_id, job, &RejectResults).await;
    let found = match found {
        Ok(found) => found,
        Err(end) => return LostStart::End(end),
    };
    match found {
        Found::Accepted(id) => match record_provider_job(run, attempt, &id).await {
            Ok(()) => LostStart::Accepted(id),
            Err(end) => LostStart::End(end),
        },
        Found::Nothing => LostStart::Error(ProviderError {
            kind: UpstreamErrorKind::Unavailable,
            ..error
        }),
        Found::Unknown => LostStart::End(postpone_to_deadline(run)),
    }
}

/// The task keeps its open attempt until its deadline, and then fails.
fn postpone_to_deadline(run: &TaskRun) -> TurnEnd {
    let task = &run.leased.task;
    tracing::warn!(
        task = task.id,
        "it cannot be determined whether the upstream accepted a task: the task waits for its deadline"
    );
    TurnEnd::Postpone((task.deadline_at - run.context.clock.now()).max(0))
}

/// Searches the provider's queue for work by the gateway's own id for it. If the search fails, the turn ends and the attempt stays open: the next
/// turn searches again, and other tasks can use the worker in between.
async fn find_in_queue(
    run: &TaskRun,
    permit: &ChannelPermit,
    external_id: &str,
    job: &Job,
    sink: &dyn ResultSink,
) -> Result<Found, TurnEnd> {
    let task = &run.leased.task;
    let (Some(queue), Some(model)) = (
        permit.open.provider.queue.as_ref(),
        permit.open.channel.model(&task.model),
    ) else {
        return Ok(Found::Unknown);
    };
    let mut found_nothing = 0;
    loop {
        let call = FindCall {
            job,
            external_id,
            model: &model,
            key: permit.key(),
            sink,
        };
        match queue.find(call).await {
            Ok(Found::Nothing) if found_nothing < FIND_RETRIES => found_nothing += 1,
            Ok(found) => return Ok(found),
            Err(e) => {
                tracing::warn!(task = task.id, error = %e, "cannot search for a task at its provider");
                return Err(TurnEnd::Postpone(FAILED_FIND_PAUSE));
            }
        }
        tokio::time::sleep(FIND_PAUSE).await;
    }
}

/// Adjustments as JSON text, as they are stored. `None` if there are none.
fn adjustments_to_text(adjustments: &[Adjustment]) -> Option<String> {
    (!adjustments.is_empty()).then(|| serde_json::json!(adjustments).to_string())
}

fn adjustments_from_text(open: &QueuedAttempt) -> Vec<Adjustment> {
    let Some(text) = &open.adjustments else {
        return Vec::new();
    };
    serde_json::from_str(text).unwrap_or_else(|e| {
        tracing::error!(attempt = open.number, error = %e, "stored adjustments cannot be read");
        Vec::new()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(2);

    fn failure(retry_after: Option<u64>) -> ProviderError {
        ProviderError {
            retry_after: retry_after.map(Duration::from_secs),
            ..ProviderError::new(UpstreamErrorKind::Unavailable, "no response")
        }
    }

    #[test]
    fn the_pause_after_a_failed_poll_is_at_least_the_interval() {
        let mut failed = FailedPolls::default();
        for (retry_after, pause, next) in [
            (None, 2, 4),
            (None, 0, 2),
            (None, 40, 60),
            (Some(0), 2, 2),
            (Some(17), 2, 17),
            (Some(3_600), 2, 60),
        ] {
            let pause = Duration::from_secs(pause);
            let found = failed.add(&failure(retry_after), false, pause, EVERY);
            assert_eq!(found, Some(Duration::from_secs(next)), "{retry_after:?}");
        }
        let long = Duration::from_secs(3_600);
        let found = failed.add(&failure(None), false, long, long);
        assert_eq!(found, Some(MAX_POLL_PAUSE));
    }

    #[test]
    fn only_failed_downloads_end_a_task() {
        let mut failed = FailedPolls::default();
        let mut is_repeated = |is_download| {
            let pause = failed.add(&failure(None), is_download, EVERY, EVERY);
            pause.is_some()
        };
        for _ in 1..MAX_DOWNLOADS {
            assert!(is_repeated(true));
        }
        assert!(is_repeated(false), "a poll that delivered nothing");
        assert!(!is_repeated(true));
        let rejected = ProviderError::new(UpstreamErrorKind::Rejected, "no");
        let mut failed = FailedPolls::default();
        assert_eq!(failed.add(&rejected, false, EVERY, EVERY), None);
    }
}
