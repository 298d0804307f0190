//! The spans of a task's work: children of its submission's, whichever node and process does the work.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};
use tollgate_core::{Amount, Millis, TaskKind};
use tollgate_store::{LeasedTask, Task};
use tollgate_upstream::Channel;

use super::context::SpanContext;
use super::proto::Value;
use super::semconv;
use super::span::{EndedSpan, SpanKind};
use super::tracer;

/// The trace of a task that was submitted in a sampled trace.
pub struct TaskTrace<'a> {
    task: &'a Task,
    submission: SpanContext,
}

/// How a task ended.
pub struct EndedTask<'a> {
    /// The channel of its last attempt. `None` if the turn that ended it ended no attempt.
    pub channel: Option<&'a str>,
    /// Its attempts.
    pub attempts: i64,
    /// What was charged.
    pub cost: Amount,
    /// The code of its failure. `None` if it completed.
    pub error: Option<&'a str>,
}

impl<'a> TaskTrace<'a> {
    /// The trace of a task. `None` if there are no traces, or its submission was in none.
    pub fn of(leased: &'a LeasedTask) -> Option<Self> {
        tracer()?;
        let (submission, is_sampled) = SpanContext::parse(leased.trace_context.as_deref()?)?;
        is_sampled.then_some(Self {
            task: &leased.task,
            submission,
        })
    }

    /// The task's own span, known to every node that works on it.
    fn context(&self) -> SpanContext {
        let digest = Sha256::digest(&self.task.id);
        let mut span_id = [0; 8];
        span_id.copy_from_slice(&digest[..8]);
        SpanContext {
            span_id,
            ..self.submission
        }
    }

    /// An attempt on a channel has ended after `elapsed`, with this kind of error if it failed.
    pub fn attempt_ended(&self, channel: &Channel, elapsed: Duration, error: Option<&str>) {
        let Some(tracer) = tracer() else { return };
        let (task, ended) = (self.task, SystemTime::now());
        let mut attributes = self.attributes();
        attributes.push((tracer.provider_attribute, channel.kind.as_str().into()));
        attributes.push((semconv::CHANNEL, channel.name.as_str().into()));
        if let Some(error) = error {
            attributes.push((semconv::ERROR_TYPE, error.into()));
        }
        let task_span = self.context();
        tracer.queue.push(EndedSpan {
            context: SpanContext {
                span_id: rand::random(),
                ..task_span
            },
            parent: Some(task_span.span_id),
            link: None,
            kind: SpanKind::Client,
            name: format!("{} {}", semconv::GENERATE_CONTENT, task.model),
            started: ended.checked_sub(elapsed).unwrap_or(ended),
            ended,
            attributes,
            error: error.map(str::to_owned),
        });
    }

    /// The task has ended.
    pub fn task_ended(&self, end: &EndedTask<'_>) {
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
            parent: Some(self.submission.span_id),
            link: Some(self.submission),
            kind: SpanKind::Consumer,
            name: format!("task {}", self.task.model),
            started: time(self.task.created_at),
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

fn time(at: Millis) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(at).unwrap_or(0))
}
