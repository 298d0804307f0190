//! Types that the steps of one turn share: a task in a worker, its attempt, and how the turn ends.

use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

use tokio_util::sync::CancellationToken;
use tollgate_core::{Adjustment, Millis};
use tollgate_media::{AnyFamily, Job};
use tollgate_store::{AttemptEnd, LeasedTask, TaskEnd};
use tollgate_upstream::{Channel, TraceHeaders};

use crate::otel::context::SpanContext;
use crate::otel::{OpenAttempt, TaskTrace};
use crate::routing::ChannelPermit;
use crate::tasks::context::TaskContext;
use crate::tasks::progress::Progress;
use crate::tasks::results::ResultStorage;

/// How long a task is postponed if every channel of its model is at its `max_concurrency`.
pub(super) const CHANNELS_FULL_PAUSE: Millis = 250;
/// How long a task is postponed if no channel can accept it, or the database failed.
pub(super) const NO_CHANNEL_PAUSE: Millis = 2_000;
/// How long a task is postponed while the gateway's own storage accepts no writes.
pub(super) const NO_STORAGE_PAUSE: Millis = 2_000;

/// How a turn of work on a task ends.
pub(super) enum TurnEnd {
    /// The task ends. Contains how its attempt ended, if there was one.
    Finish(TaskEnd, Option<AttemptEnd>),
    /// The attempt failed, and the task is retried.
    Retry(AttemptEnd),
    /// The task returns to the queue for that long; an attempt in a provider's queue stays open.
    Postpone(Millis),
    /// Nothing is written: the task was ended by others, its lease is lost, the process shuts down, or the database does not accept writes.
    Abandon,
}

/// A task in a worker.
pub(super) struct TaskRun {
    pub(super) context: Arc<TaskContext>,
    pub(super) leased: LeasedTask,
    pub(super) family: AnyFamily,
    /// Cancelled when the task was ended by others, its lease is lost, or the process shuts down.
    pub(super) stop: CancellationToken,
    pub(super) progress: Arc<Progress>,
    /// The channel of the attempt that this turn works on. Not set before an attempt begins.
    pub(super) channel: OnceLock<String>,
    /// The span of the attempt that this turn works on. Not set before an attempt begins, and without a sampled trace.
    pub(super) span: OnceLock<OpenAttempt>,
}

impl TaskRun {
    /// Records that this turn works on an attempt that started at `started`.
    pub(super) fn trace_attempt(&self, number: i64, channel: &Channel, started: SystemTime) {
        let _ = self.channel.set(channel.name.clone());
        if let Some(trace) = TaskTrace::for_leased(&self.leased) {
            let (name, kind) = (&channel.name, &channel.kind);
            let _ = self
                .span
                .set(trace.attempt(number, name, Some(kind), started));
        }
    }

    /// Ends the span of this turn's attempt, with this kind of error if it failed.
    pub(super) fn end_attempt_span(&self, error: Option<&str>) {
        if let (Some(span), Some(trace)) = (self.span.get(), TaskTrace::for_leased(&self.leased)) {
            trace.end_attempt(span, error);
        }
    }

    /// The trace headers of the attempt for the provider of `channel`. `None` if the channel forwards none, without a sampled trace, or before an
    /// attempt begins.
    pub(super) fn trace_headers(&self, channel: &Channel) -> Option<TraceHeaders> {
        TaskTrace::for_leased(&self.leased)?.headers(channel, self.span.get()?)
    }

    /// The span of the attempt that this turn works on. `None` without a sampled trace, or before an attempt begins.
    pub(super) fn attempt_span(&self) -> Option<SpanContext> {
        self.span.get().map(OpenAttempt::context)
    }

    /// A new storage for the results of a call that generates up to `max_files` files.
    pub(super) fn result_storage(&self, max_files: u32) -> ResultStorage {
        let (kind, ttl) = (self.leased.task.kind, self.family.link_ttl());
        ResultStorage::new(&self.context, &self.progress, kind, max_files, ttl)
    }
}

/// An attempt that a provider is working on.
pub(super) struct Attempt {
    pub(super) number: i64,
    pub(super) permit: ChannelPermit,
    /// `None` if an earlier turn started it.
    pub(super) started_at: Option<Instant>,
    /// Differences between what was requested from the provider and the job.
    pub(super) adjustments: Vec<Adjustment>,
}

/// How many files the job generates.
pub(super) fn requested_files(job: &Job) -> u32 {
    match job {
        Job::Image(job) => job.n,
        // The last frame is a separate file.
        Job::Video(job) if job.return_last_frame == Some(true) => 2,
        Job::Video(_) | Job::Speech(_) => 1,
    }
}
