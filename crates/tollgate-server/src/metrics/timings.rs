//! Metrics of how long tasks wait, how long providers take and how long money is held, and of the errors of channels by kind.

use prometheus::{IntCounterVec, Opts, Registry};

use super::exemplars::{ExemplarStore, LinkedHistograms};

/// Upper bounds of the buckets of complete generations, in seconds.
const LONG_BUCKETS: &[f64] = &[
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1800.0,
];

/// The name of the histogram of the durations of requests to providers.
pub const PROVIDER_SECONDS: &str = "tollgate_provider_seconds";

/// Durations of tasks and chats, and errors of channels.
pub(super) struct Timings {
    /// By kind of task.
    pub(super) queue_wait: LinkedHistograms,
    /// By channel and kind of request.
    pub(super) provider: LinkedHistograms,
    /// By kind of task.
    pub(super) held: LinkedHistograms,
    /// By channel and kind of error.
    pub(super) errors: IntCounterVec,
}

impl Timings {
    /// All metrics at zero, in `registry`.
    pub(super) fn new(registry: &Registry, exemplars: &ExemplarStore) -> Self {
        let long = |name, help: &str, labels| {
            LinkedHistograms::new(registry, exemplars, (name, help), labels, LONG_BUCKETS)
        };
        let errors = Opts::new(
            "tollgate_channel_errors_total",
            "Failed attempts at chats and tasks, by kind of error",
        );
        let errors = IntCounterVec::new(errors, &["channel", "kind"]).expect("a valid name");
        registry
            .register(Box::new(errors.clone()))
            .expect("a new name");
        Self {
            queue_wait: long(
                "tollgate_task_queue_seconds",
                "Time from a task's submission to its first attempt",
                &["kind"],
            ),
            provider: long(
                PROVIDER_SECONDS,
                "Time from sending a request to a provider until its result was complete",
                &["channel", "kind"],
            ),
            held: long(
                "tollgate_task_hold_seconds",
                "Time from a task's hold to its settlement or release",
                &["kind"],
            ),
            errors,
        }
    }
}
