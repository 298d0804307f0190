//! Numbers of chats.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use foldhash::fast::RandomState;
use prometheus::{CounterVec, GaugeVec, IntCounter, IntCounterVec, Opts, Registry};
use tollgate_core::Amount;
use tollgate_store::{Reconciled, TokenCounts};

/// Chats, failed attempts and tokens, by channel.
pub(super) struct ChatMetrics {
    /// The handles of each channel's outcomes.
    known: RwLock<HashMap<String, Vec<Arc<Ended>>, RandomState>>,
    ended: IntCounterVec,
    failures: IntCounterVec,
    tokens: IntCounterVec,
    estimated: IntCounterVec,
    clamped: IntCounterVec,
    debt: CounterVec,
    drift: GaugeVec,
}

/// What counts chats of one channel with one outcome.
struct Ended {
    outcome: &'static str,
    chats: IntCounter,
    input: IntCounter,
    output: IntCounter,
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
        let debt = Opts::new(
            "tollgate_chat_debt_total",
            "Charged for chats beyond balance or quota, in units",
        );
        let debt = CounterVec::new(debt, &["model"]).expect("a good name");
        registry
            .register(Box::new(debt.clone()))
            .expect("a new name");
        let drift = Opts::new(
            "tollgate_reconcile_drift_ratio",
            "How far the gateway's tokens were above the provider's in the last reconciliation, as a share of the provider's",
        );
        let drift = GaugeVec::new(drift, &["channel", "model"]).expect("a good name");
        registry
            .register(Box::new(drift.clone()))
            .expect("a new name");
        Self {
            drift,
            debt,
            estimated: counters(
                "tollgate_chat_estimated_total",
                "Chats whose tokens were counted here because the upstream's count is missing",
                &["channel", "model"],
            ),
            clamped: counters(
                "tollgate_chat_usage_clamped_total",
                "Chats whose upstream reported more tokens than the request can have used",
                &["channel", "model"],
            ),
            known: RwLock::default(),
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

    pub(super) fn ended(&self, channel: &str, outcome: &'static str, units: &TokenCounts) {
        let ended = self.handles(channel, outcome);
        ended.chats.inc();
        let input = units.input + units.cached_input + units.cache_write;
        ended.input.inc_by(input);
        ended.output.inc_by(units.output + units.reasoning);
    }

    pub(super) fn estimated(&self, channel: &str, model: &str) {
        self.estimated.with_label_values(&[channel, model]).inc();
    }

    pub(super) fn clamped(&self, channel: &str, model: &str) {
        self.clamped.with_label_values(&[channel, model]).inc();
    }

    pub(super) fn debt(&self, model: &str, debt: Amount) {
        self.debt.with_label_values(&[model]).inc_by(debt.to_f64());
    }

    pub(super) fn set_drift(&self, reconciled: &[Reconciled]) {
        self.drift.reset();
        for row in reconciled.iter().filter(|row| row.reported > 0) {
            let drift = row.counted as f64 / row.reported as f64 - 1.0;
            let labels = [row.channel.as_str(), row.model.as_str()];
            self.drift.with_label_values(&labels).set(drift);
        }
    }

    fn handles(&self, channel: &str, outcome: &'static str) -> Arc<Ended> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let found = known.get(channel).and_then(|outcomes| {
            let mut outcomes = outcomes.iter();
            outcomes.find(|ended| ended.outcome == outcome).cloned()
        });
        drop(known);
        found.unwrap_or_else(|| {
            let tokens = |direction| self.tokens.with_label_values(&[channel, direction]);
            let made = Arc::new(Ended {
                outcome,
                chats: self.ended.with_label_values(&[channel, outcome]),
                input: tokens("input"),
                output: tokens("output"),
            });
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            let outcomes = known.entry(channel.to_owned()).or_default();
            // Two at once: both count alike, one is remembered.
            if outcomes.iter().all(|ended| ended.outcome != outcome) {
                outcomes.push(Arc::clone(&made));
            }
            made
        })
    }
}
