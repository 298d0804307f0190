//! Numbers of chats.

use prometheus::{IntCounterVec, Opts, Registry};
use tollgate_store::TokenUnits;

/// Chats, failed attempts and tokens, by channel.
pub(super) struct ChatMetrics {
    ended: IntCounterVec,
    failures: IntCounterVec,
    tokens: IntCounterVec,
}

impl ChatMetrics {
    /// All at nothing, in `registry`.
    pub(super) fn new(registry: &Registry) -> Self {
        let counters = |name: &str, help: &str, labels: &[&str]| {
            let counters = IntCounterVec::new(Opts::new(name, help), labels).expect("a good name");
            registry
                .register(Box::new(counters.clone()))
                .expect("a new name");
            counters
        };
        Self {
            ended: counters(
                "tollgate_chats_total",
                "Chats that ended here",
                &["channel", "outcome"],
            ),
            failures: counters(
                "tollgate_chat_attempts_failed_total",
                "Attempts at chats that a channel did not answer",
                &["channel"],
            ),
            tokens: counters(
                "tollgate_chat_tokens_total",
                "Tokens charged for, cached ones included in input and reasoning in output",
                &["channel", "direction"],
            ),
        }
    }

    pub(super) fn attempt_failed(&self, channel: &str) {
        self.failures.with_label_values(&[channel]).inc();
    }

    pub(super) fn ended(&self, channel: &str, outcome: &str, units: &TokenUnits) {
        self.ended.with_label_values(&[channel, outcome]).inc();
        let input = units.input + units.cached_input + units.cache_write;
        for (direction, n) in [("input", input), ("output", units.output + units.reasoning)] {
            self.tokens
                .with_label_values(&[channel, direction])
                .inc_by(n);
        }
    }
}
