//! The types that the steps of one turn share: a task in a worker, its attempt, and how the turn ends.

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
/// How long a task is postponed if no channel can take it, or the database failed.
pub(super) const NO_CHANNEL_PAUSE: Millis = 2_000;

/// How long a task is postponed while our own storage takes no writes.
pub(super) const NO_STORAGE_PAUSE: Millis = 2_000;

/// How a turn of work on a task ends.
pub(super) enum TurnEnd {
    /// The task ends; with how its attempt ended, if there was one.
    Finish(TaskEnd, Option<AttemptEnd>),
    /// The attempt failed and another one is to follow.
    Retry(AttemptEnd),
    /// The task goes back to the queue for that long; an attempt that is queued at a provider stays open.
    Postpone(Millis),
    /// The lease is lost or the process shuts down: nothing is written.
    Abandon,
}

/// A task in a worker.
pub(super) struct TaskRun {
    pub(super) context: Arc<TaskContext>,
    pub(super) leased: LeasedTask,
    pub(super) family: AnyFamily,
    /// Fires when the task ended elsewhere, its lease is lost, or the process shuts down.
    pub(super) stop: CancellationToken,
    pub(super) progress: Arc<Progress>,
    /// The channel of the attempt that ended in this turn.
    pub(super) channel: OnceLock<String>,
    /// The span of the attempt that this turn works on. Not set before there is one, and without a sampled trace.
    pub(super) span: OnceLock<OpenAttempt>,
}

impl TaskRun {
    /// This turn works on an attempt that started at `started`.
    pub(super) fn trace_attempt(&self, number: i64, channel: &Channel, started: SystemTime) {
        if let Some(trace) = TaskTrace::of(&self.leased) {
            let (name, kind) = (&channel.name, &channel.kind);
            let _ = self
                .span
                .set(trace.attempt(number, name, Some(kind), started));
        }
    }

    /// The attempt that this turn worked on has ended, with this kind of error if it failed.
    pub(super) fn end_attempt_span(&self, error: Option<&str>) {
        if let (Some(span), Some(trace)) = (self.span.get(), TaskTrace::of(&self.leased)) {
            trace.attempt_ended(span, error);
        }
    }

    /// What the provider of `channel` gets of the attempt's place in its trace.
    pub(super) fn trace_headers(&self, channel: &Channel) -> Option<TraceHeaders> {
        TaskTrace::of(&self.leased)?.headers(channel, self.span.get()?)
    }

    /// The span of the attempt that this turn works on. `None` without a sampled trace.
    pub(super) fn attempt_span(&self) -> Option<SpanContext> {
        self.span.get().map(OpenAttempt::context)
    }

    /// A new storage for the results of a call that makes up to `max_files` files.
    pub(super) fn result_storage(&self, max_files: u32) -> ResultStorage {
        let (kind, ttl) = (self.leased.task.kind, self.family.link_ttl());
        ResultStorage::new(&self.context, &self.progress, kind, max_files, ttl)
    }
}

/// An attempt that a provider works on.
pub(super) struct Attempt {
    pub(super) number: i64,
    pub(super) permit: ChannelPermit,
    /// `None` if an earlier turn started it.
    pub(super) started_at: Option<Instant>,
    /// What the provider was asked for instead of what the job says.
    pub(super) adjustments: Vec<Adjustment>,
}

/// How many files the job makes.
pub(super) fn requested_files(job: &Job) -> u32 {
    match job {
        Job::Image(job) => job.n,
        // The last frame is a file of its own.
        Job::Video(job) if job.return_last_frame == Some(true) => 2,
        Job::Video(_) | Job::Speech(_) => 1,
    }
}
