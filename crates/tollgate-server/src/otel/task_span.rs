//! The spans of a task's work: children of the span of its submission, whichever node and process does the work.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};
use tollgate_core::{Amount, Millis, TaskKind};
use tollgate_store::{LeasedTask, Task, TaskTraceRow};
use tollgate_upstream::{Channel, TraceHeaders};

use super::context::SpanContext;
use super::proto::Value;
use super::semconv;
use super::span::{EndedSpan, SpanKind};
use super::tracer::tracer;

/// The trace of a task that was submitted in a sampled trace.
pub struct TaskTrace<'a> {
    task: &'a Task,
    submission: SpanContext,
    state: Option<String>,
}

/// An attempt at a task of a sampled trace.
#[derive(Debug, Clone)]
pub struct OpenAttempt {
    context: SpanContext,
    started: SystemTime,
    channel: String,
    provider: String,
}

/// The end of a task.
pub struct EndedTask<'a> {
    /// The channel of its last attempt. `None` if the turn that ended the task worked on no attempt.
    pub channel: Option<&'a str>,
    /// The number of its attempts.
    pub attempts: i64,
    /// What was charged.
    pub cost: Amount,
    /// The code of its failure. `None` if it completed.
    pub error: Option<&'a str>,
}

impl OpenAttempt {
    /// The attempt's span.
    pub fn context(&self) -> SpanContext {
        self.context
    }
}

impl<'a> TaskTrace<'a> {
    /// The trace of a task in a worker. `None` if there is no collector, or the submission was in no sampled trace.
    pub fn for_leased(leased: &'a LeasedTask) -> Option<Self> {
        Self::new(&leased.task, &leased.trace_context, &leased.trace_state)
    }

    /// The trace of a task whose trace context is stored in `row`.
    pub fn for_stored(task: &'a Task, row: &TaskTraceRow) -> Option<Self> {
        Self::new(task, &row.trace_context, &row.trace_state)
    }

    fn new(task: &'a Task, context: &Option<String>, state: &Option<String>) -> Option<Self> {
        tracer()?;
        let (submission, is_sampled) = SpanContext::parse(context.as_deref()?)?;
        is_sampled.then(|| Self {
            task,
            submission,
            state: state.clone(),
        })
    }

    /// The task's span. Its id is derived from the task's id, so all nodes compute the same.
    pub fn context(&self) -> SpanContext {
        self.span(&self.task.id)
    }

    /// The span whose id is derived from `name`.
    fn span(&self, name: &str) -> SpanContext {
        let digest = Sha256::digest(name);
        let mut span_id = [0; 8];
        span_id.copy_from_slice(&digest[..8]);
        SpanContext {
            span_id,
            ..self.submission
        }
    }

    /// The attempt with this number, counted from 1; all nodes compute the same span id. It started at `started` on a channel of the kind `provider`;
    /// `None` for a channel that is not configured any more.
    pub fn attempt(
        &self,
        number: i64,
        channel: &str,
        provider: Option<&str>,
        started: SystemTime,
    ) -> OpenAttempt {
        OpenAttempt {
            context: self.span(&format!("{}/{number}", self.task.id)),
            started,
            channel: channel.to_owned(),
            provider: provider.unwrap_or(semconv::OTHER_PROVIDER).to_owned(),
        }
    }

    /// The trace headers of an attempt for the provider. `None` if the channel forwards none.
    pub fn headers(&self, channel: &Channel, attempt: &OpenAttempt) -> Option<TraceHeaders> {
        let traceparent = channel.trace_context.then(|| attempt.context.to_string())?;
        TraceHeaders::new(&traceparent, self.state.as_deref())
    }

    /// Ends the span of an attempt, with this kind of error if it failed.
    pub fn end_attempt(&self, attempt: &OpenAttempt, error: Option<&str>) {
        let Some(tracer) = tracer() else { return };
        let mut attributes = self.attributes();
        let provider = semconv::provider(&attempt.provider);
        attributes.push((semconv::provider_attribute(), provider.into()));
        attributes.push((semconv::CHANNEL, attempt.channel.as_str().into()));
        if let Some(error) = error {
            attributes.push((semconv::ERROR_TYPE, error.into()));
        }
        tracer.queue.push(EndedSpan {
            context: attempt.context,
            trace_state: self.state.clone(),
            parent: Some(self.context().span_id),
            link: None,
            kind: SpanKind::Client,
            name: format!("{} {}", semconv::GENERATE_CONTENT, self.task.model),
            started: attempt.started,
            ended: SystemTime::now(),
            attributes,
            error: error.map(str::to_owned),
        });
    }

    /// Ends the span of the task.
    pub fn end_task(&self, end: &EndedTask<'_>) {
        let Some(tracer) = tracer() else { return };
        let mut attributes = self.attributes();
        attributes.push((semconv::ATTEMPTS, end.attempts.into()));
        attributes.push((semconv::COST, end.cost.to_string().into()));
        attributes.push((semconv::KEY_ID, self.task.key_id.as_str().into()));
        if let Some(channel) = end.channel {
            attributes.push((semconv::CHANNEL, channel.into()));
        }
        if let Some(error) = end.error {
            attributes.push((semconv::ERROR_TYPE, error.into()));
        }
        tracer.queue.push(EndedSpan {
            context: self.context(),
            trace_state: self.state.clone(),
            parent: Some(self.submission.span_id),
            link: Some(self.submission),
            kind: SpanKind::Consumer,
            name: format!("task {}", self.task.model),
            started: system_time(self.task.created_at),
            ended: SystemTime::now(),
            attributes,
            error: end.error.map(str::to_owned),
        });
    }

    fn attributes(&self) -> Vec<(&'static str, Value)> {
        let output = match self.task.kind {
            TaskKind::Image => "image",
            TaskKind::Video => "video",
            TaskKind::Speech => "speech",
        };
        vec![
            (semconv::OPERATION_NAME, semconv::GENERATE_CONTENT.into()),
            (semconv::OUTPUT_TYPE, output.into()),
            (semconv::REQUEST_MODEL, self.task.model.as_str().into()),
            (semconv::TASK_ID, self.task.id.as_str().into()),
        ]
    }
}

/// Converts a time of the database to a system time.
pub fn system_time(at: Millis) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(at).unwrap_or(0))
}
