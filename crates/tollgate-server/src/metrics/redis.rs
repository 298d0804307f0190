//! Metrics of calls to Redis. They exist only if `limits.redis_url` is set.

use std::time::Duration;

use prometheus::{Gauge, Histogram, HistogramOpts, IntCounter, Opts, Registry};

use super::register::{new_counters, register};

/// Upper bounds of the buckets, in seconds: up to 0.05, the default of `limits.redis_timeout_ms`.
const BUCKETS: &[f64] = &[
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05,
];

/// The handles of these metrics in the registry.
pub struct RedisMetrics {
    up: Gauge,
    ok: IntCounter,
    failed: IntCounter,
    skipped: IntCounter,
    sent: IntCounter,
    received: IntCounter,
    seconds: Histogram,
}

impl RedisMetrics {
    /// All metrics at zero, in `registry`.
    pub(super) fn new(registry: &Registry) -> Self {
        let calls = new_counters(
            registry,
            "tollgate_redis_calls_total",
            "Calls to Redis",
            &["outcome"],
        );
        let messages = new_counters(
            registry,
            "tollgate_redis_messages_total",
            "Messages between nodes",
            &["direction"],
        );
        let up = Opts::new("tollgate_redis_up", "Whether Redis is connected");
        let seconds = HistogramOpts::new("tollgate_redis_call_seconds", "Time of calls to Redis")
            .buckets(BUCKETS.to_vec());
        Self {
            up: register(registry, Gauge::with_opts(up).expect("a valid name")),
            ok: calls.with_label_values(&["ok"]),
            failed: calls.with_label_values(&["failed"]),
            skipped: calls.with_label_values(&["skipped"]),
            sent: messages.with_label_values(&["sent"]),
            received: messages.with_label_values(&["received"]),
            seconds: register(
                registry,
                Histogram::with_opts(seconds).expect("a valid name"),
            ),
        }
    }

    /// Counts a call that ended, with a reply or without one.
    pub fn call_ended(&self, took: Duration, is_ok: bool) {
        let outcome = if is_ok { &self.ok } else { &self.failed };
        outcome.inc();
        self.seconds.observe(took.as_secs_f64());
    }

    /// Counts a call that was not made because Redis is not connected.
    pub fn call_skipped(&self) {
        self.skipped.inc();
    }

    /// Counts a message that this node published.
    pub fn message_sent(&self) {
        self.sent.inc();
    }

    /// Counts a received message, which may be one of this node.
    pub fn message_received(&self) {
        self.received.inc();
    }

    /// Sets whether Redis is connected.
    pub fn set_up(&self, up: bool) {
        self.up.set(f64::from(u8::from(up)));
    }
}
