//! Starts an attempt at a task: takes a permit on a channel, writes the attempt's row to the store, calls the provider.

use std::time::{Duration, Instant, SystemTime};

use tollgate_core::Millis;
use tollgate_media::Job;
use tollgate_store::{NewAttempt as AttemptRow, QueuedAttempt, StartOutcome};
use tollgate_upstream::provider::{
    Attempt as ProviderAttempt, ExecutionMode, ImageCall, SpeechCall, Started, VideoCall,
};
use tollgate_upstream::{ProviderError, UpstreamErrorKind};

use crate::otel::TaskTrace;
use crate::routing::{ChannelPermit, Selection};
use crate::tasks::inputs::Inputs;
use crate::tasks::results::ResultStorage;
use crate::tasks::turn::{
    Attempt, CHANNELS_FULL_PAUSE, NO_CHANNEL_PAUSE, NO_STORAGE_PAUSE, TaskRun, TurnEnd,
};
use crate::tasks::work_permit::WorkPermit;

/// The longest time that a task is postponed because of channels in cooldown, before all channels are checked again.
const MAX_COOLDOWN_PAUSE: Millis = 30_000;

/// How long a task waits for a channel at its `max_concurrency` before it returns to the queue, and how many tasks of a user wait for one channel.
/// Tasks whose references were fetched wait without a limit.
const CHANNEL_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_WAITING: usize = 2;

/// Checks whether a channel can accept the task, before its references are fetched. The error is how the turn ends.
pub(super) async fn check_channels(run: &TaskRun, work: &mut WorkPermit) -> Result<(), TurnEnd> {
    let task = &run.leased.task;
    let reloadable = run.context.reloadable.current();
    if reloadable
        .routing
        .is_ready_for_task(task.kind, &task.model, &task.user_id)
    {
        return Ok(());
    }
    acquire_channel(run, work, false).await.map(drop)
}

/// Waits until the task may make a call: for a permit on a channel, then for one of the workers.
pub(super) async fn acquire_permits(
    run: &TaskRun,
    work: &mut WorkPermit,
    has_fetched: bool,
) -> Result<ChannelPermit, TurnEnd> {
    let draining = &run.context.signals.draining;
    let permits = async {
        let channel = acquire_channel(run, work, has_fetched).await?;
        work.acquire_call().await;
        Ok(channel)
    };
    tokio::select! {
        biased;
        permits = permits => permits,
        () = draining.cancelled() => Err(TurnEnd::Postpone(0)),
    }
}

/// Acquires a permit on a channel for the task; channels on which attempts failed come last.
async fn acquire_channel(
    run: &TaskRun,
    work: &mut WorkPermit,
    has_fetched: bool,
) -> Result<ChannelPermit, TurnEnd> {
    let (task, context) = (&run.leased.task, &run.context);
    // If the result cannot be stored, no provider is called.
    if !context.files.is_available().await {
        return Err(TurnEnd::Postpone(NO_STORAGE_PAUSE));
    }
    let failed_channels = failed_channels(run).await;
    let reloadable = context.reloadable.current();
    let routing = &reloadable.routing;
    let selected = routing.select_for_task(task.kind, &task.model, &failed_channels, &task.user_id);
    match selected.await {
        Selection::Permit(permit) => Ok(permit),
        Selection::AllBusy => {
            context.signals.report_full_channels();
            work.pause();
            let wait =
                |max| routing.wait_for_task_channel(task.kind, &task.model, &task.user_id, max);
            let permit = if has_fetched {
                wait(usize::MAX).await
            } else {
                let waited = tokio::time::timeout(CHANNEL_TIMEOUT, wait(MAX_WAITING)).await;
                waited.ok().flatten()
            };
            permit.ok_or(TurnEnd::Postpone(CHANNELS_FULL_PAUSE))
        }
        Selection::CoolingDown(left) => {
            let left = Millis::try_from(left.as_millis()).unwrap_or(MAX_COOLDOWN_PAUSE);
            let pause = left.clamp(CHANNELS_FULL_PAUSE, MAX_COOLDOWN_PAUSE);
            Err(TurnEnd::Postpone(pause))
        }
        Selection::None => Err(TurnEnd::Postpone(NO_CHANNEL_PAUSE)),
    }
}

/// The channels on which earlier attempts of the task failed.
async fn failed_channels(run: &TaskRun) -> Vec<String> {
    match run.leased.failed_attempts {
        0 => Vec::new(),
        _ => {
            let failed = run.context.store.failed_channels(&run.leased.task.id).await;
            failed.unwrap_or_default()
        }
    }
}

/// Records that the provider accepted the task: its channel works, and failures on other channels were not caused by the task.
pub(super) async fn record_success(run: &TaskRun, attempt: &Attempt) {
    attempt.permit.record_success();
    let task = &run.leased.task;
    let mut failed = failed_channels(run).await;
    failed.retain(|channel| *channel != attempt.permit.open.channel.name);
    let reloadable = run.context.reloadable.current();
    let routing = &reloadable.routing;
    routing.confirm_failed_channels(&task.model, &failed, &task.user_id);
}

/// The outcome of [`start`].
pub(super) enum NewAttempt {
    Started(Attempt),
    End(TurnEnd),
}

/// Writes the attempt to the store. `lost` is an earlier attempt that the provider reports it never received.
pub(super) async fn start(
    run: &TaskRun,
    permit: ChannelPermit,
    external_id: &str,
    lost: Option<&QueuedAttempt>,
) -> NewAttempt {
    let (task, context) = (&run.leased.task, &run.context);
    let row = AttemptRow {
        task_id: task.id.clone(),
        fence: run.leased.fence,
        channel: permit.open.channel.name.clone(),
        external_id: Some(external_id.to_owned()),
        queued: execution_mode(run, &permit) == ExecutionMode::Queued,
        key_fingerprint: permit.key_fingerprint(),
        abandon_queued_as: lost.map(|_| "lost"),
        now: context.clock.now(),
    };
    match context.store.start_attempt(row).await {
        Ok(StartOutcome::Started(number)) => {
            run.trace_attempt(number, &permit.open.channel, SystemTime::now());
            if number == 1 {
                let waited = context.clock.now() - task.created_at;
                let span = TaskTrace::for_leased(&run.leased).map(|trace| trace.context());
                let metrics = &context.metrics;
                metrics.task_started(task.kind.name(), waited, span);
            }
            NewAttempt::Started(Attempt {
                number,
                permit,
                started_at: Some(Instant::now()),
                adjustments: Vec::new(),
            })
        }
        Ok(StartOutcome::LeaseLost) => NewAttempt::End(TurnEnd::Abandon),
        // An attempt is open that did not exist when the task was claimed: the next turn resumes it.
        Ok(StartOutcome::EarlierStillQueued) => {
            NewAttempt::End(TurnEnd::Postpone(CHANNELS_FULL_PAUSE))
        }
        Err(e) => {
            tracing::warn!(task = task.id, error = %e, "cannot write an attempt");
            NewAttempt::End(TurnEnd::Postpone(NO_CHANNEL_PAUSE))
        }
    }
}

/// Whether the channel's provider does the task's work within the call or in a queue.
pub(super) fn execution_mode(run: &TaskRun, permit: &ChannelPermit) -> ExecutionMode {
    use tollgate_core::TaskKind::{Image, Speech, Video};
    let provider = &permit.open.provider;
    let Some(model) = permit.open.channel.model(&run.leased.task.model) else {
        return ExecutionMode::Direct;
    };
    let mode = match run.leased.task.kind {
        Image => provider.image.as_ref().map(|p| p.execution_mode(&model)),
        Video => provider.video.as_ref().map(|p| p.execution_mode(&model)),
        Speech => provider.speech.as_ref().map(|p| p.execution_mode(&model)),
    };
    mode.unwrap_or(ExecutionMode::Direct)
}

/// A call that starts the work at the provider.
pub(super) struct ProviderCall<'a> {
    pub(super) run: &'a TaskRun,
    pub(super) attempt: &'a Attempt,
    pub(super) external_id: &'a str,
    pub(super) job: &'a Job,
    pub(super) inputs: &'a Inputs,
    pub(super) results: &'a ResultStorage,
}

impl ProviderCall<'_> {
    /// Starts images, a video or speech.
    pub(super) async fn start(&self) -> Result<Started, ProviderError> {
        let unsupported = || {
            let message = "the channel no longer generates results of this kind";
            ProviderError::new(UpstreamErrorKind::UnsupportedByChannel, message)
        };
        let (leased, permit) = (&self.run.leased, &self.attempt.permit);
        let model = permit.open.channel.model(&leased.task.model);
        let model = model.ok_or_else(unsupported)?;
        let trace = self.run.trace_headers(&permit.open.channel);
        let attempt = ProviderAttempt {
            task_id: &leased.task.id,
            external_id: self.external_id,
            model: &model,
            key: permit.key(),
            failed_attempts: u32::try_from(leased.failed_attempts).unwrap_or(0),
            trace: trace.as_ref(),
            sink: self.results,
            cancel: self.run.stop.child_token(),
        };
        let (provider, inputs) = (&permit.open.provider, self.inputs);
        match self.job {
            Job::Image(job) => {
                let call = ImageCall {
                    attempt,
                    job,
                    references: &inputs.references,
                    mask: inputs.mask.as_ref(),
                };
                let images = provider.image.as_ref().ok_or_else(unsupported)?;
                images.start(call).await
            }
            Job::Video(job) => {
                let call = VideoCall {
                    attempt,
                    job,
                    images: &inputs.references,
                };
                let videos = provider.video.as_ref().ok_or_else(unsupported)?;
                videos.start(call).await
            }
            Job::Speech(job) => {
                let speech = provider.speech.as_ref().ok_or_else(unsupported)?;
                speech.start(SpeechCall { attempt, job }).await
            }
        }
    }
}
