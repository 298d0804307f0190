//! Cancels work at a provider when its task was ended by its user or by its deadline.

use std::sync::Arc;

use tollgate_core::Amount;
use tollgate_store::Task;
use tollgate_upstream::provider::QueueCall;

use crate::otel::{self, EndedTask, TaskTrace};
use crate::routing::ChannelPermit;
use crate::spawn::spawn_detached;
use crate::tasks::context::TaskContext;
use crate::tasks::results::RejectResults;

/// Cancels, in the background, the work that a provider still does for a task that has ended.
pub fn cancel_at_provider(context: &Arc<TaskContext>, task: &Task) {
    let (context, task) = (Arc::clone(context), task.clone());
    let closing = context.closing.clone();
    spawn_detached(closing.track_future(async move {
        let Ok(Some(attempt)) = context.store.last_queued_attempt(&task.id).await else {
            return;
        };
        let Some(provider_job_id) = &attempt.provider_job_id else {
            return;
        };
        let reloadable = context.reloadable.current();
        let permit = reloadable.routing.acquire_for_running_work(
            &attempt.channel,
            attempt.key_fingerprint.as_deref(),
            &task.user_id,
        );
        if let Some(permit) = permit {
            cancel_provider_job(&task, &permit, provider_job_id).await;
        }
    }));
}

/// Ends, in the background, the spans of a task that was ended with `error` and not by its worker.
pub fn trace_forced_end(context: &Arc<TaskContext>, task: &Task, error: &'static str) {
    if !otel::is_on() {
        return;
    }
    let (context, task) = (Arc::clone(context), task.clone());
    let closing = context.closing.clone();
    spawn_detached(closing.track_future(async move {
        let Ok(Some(row)) = context.store.task_trace(&task.id).await else {
            return;
        };
        let Some(trace) = TaskTrace::for_stored(&task, &row) else {
            return;
        };
        let last = row.last_attempt.as_ref();
        if let Some(last) = last.filter(|last| last.ended_with_task) {
            let reloadable = context.reloadable.current();
            let open = reloadable.routing.by_name(&last.channel);
            let provider = open.map(|open| open.channel.kind.as_str());
            let started = otel::system_time(last.started_at);
            let attempt = trace.attempt(last.number, &last.channel, provider, started);
            trace.end_attempt(&attempt, Some(error));
        }
        trace.end_task(&EndedTask {
            channel: last.map(|last| last.channel.as_str()),
            attempts: last.map_or(0, |last| last.number),
            cost: Amount::ZERO,
            error: Some(error),
        });
    }));
}

/// Requests that the provider cancels the work, if its API supports that.
pub(super) async fn cancel_provider_job(
    task: &Task,
    permit: &ChannelPermit,
    provider_job_id: &str,
) {
    let (Some(queue), Some(model)) = (
        permit.open.provider.queue.as_ref(),
        permit.open.channel.model(&task.model),
    ) else {
        return;
    };
    let call = QueueCall {
        task_id: &task.id,
        kind: task.kind,
        provider_job_id,
        requested: 1,
        model: &model,
        key: permit.key(),
        sink: &RejectResults,
    };
    if let Err(e) = queue.cancel(call).await {
        tracing::info!(task = task.id, error = %e, "the upstream did not accept a cancellation");
    }
}
