//! Metrics of chats.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use foldhash::fast::RandomState;
use prometheus::{CounterVec, GaugeVec, IntCounter, IntCounterVec, Opts, Registry};
use tollgate_core::Amount;
use tollgate_store::{Reconciled, TokenCounts};

use super::exemplars::{ExemplarStore, LinkedHistogram, LinkedHistograms};
use crate::otel::context::SpanContext;

/// The name of the histogram of the time until the first piece of a stream.
pub const FIRST_TOKEN_SECONDS: &str = "tollgate_chat_first_token_seconds";
/// The name of the histogram of the tokens of single chats.
pub const REQUEST_TOKENS: &str = "tollgate_chat_request_tokens";

/// Upper bounds of the buckets of the time to the first token, in seconds.
const FIRST_TOKEN_BUCKETS: &[f64] = &[
    0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 40.0,
];

/// Upper bounds of the buckets of a stream's speed, in tokens per second.
const SPEED_BUCKETS: &[f64] = &[
    5.0, 10.0, 20.0, 30.0, 50.0, 75.0, 100.0, 150.0, 200.0, 300.0, 500.0, 1000.0,
];

/// Upper bounds of the buckets of a chat's tokens: the ones in OpenTelemetry's conventions for `gen_ai.client.token.usage`.
const TOKEN_BUCKETS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// The end of a chat.
#[derive(Debug, Clone, Copy)]
pub struct EndedChat<'a> {
    /// The channel that responded; empty if none did.
    pub channel: &'a str,
    /// The model by the name that channels use.
    pub model: &'a str,
    /// How it ended.
    pub outcome: &'static str,
    /// The tokens that are charged.
    pub tokens: &'a TokenCounts,
    /// The chat's durations.
    pub times: ChatTimes,
    /// The span of the attempt that succeeded. `None` if its trace is not sampled.
    pub span: Option<SpanContext>,
}

/// The durations of a chat, from the time when its request was sent to the provider that responded.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChatTimes {
    /// Until the first piece for the client. `None` if the response was not streamed.
    pub first_token: Option<Duration>,
    /// Until the end. `None` if no provider responded.
    pub total: Option<Duration>,
}

/// Chats, failed attempts and tokens, by channel.
pub(super) struct ChatMetrics {
    /// By channel, the handles of each of its outcomes.
    known: RwLock<HashMap<String, Vec<Arc<Ended>>, RandomState>>,
    ended: IntCounterVec,
    first_token: LinkedHistograms,
    speed: LinkedHistograms,
    provider: LinkedHistograms,
    /// The tokens of single chats; set only if they are counted.
    request_tokens: OnceLock<LinkedHistograms>,
    failures: IntCounterVec,
    tokens: IntCounterVec,
    holds: [(ChatHoldKind, IntCounter); 3],
    estimated: IntCounterVec,
    clamped: IntCounterVec,
    debt: CounterVec,
    drift: GaugeVec,
}

/// Where the money for a running chat is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatHoldKind {
    /// In memory, from the balance: this process does not share the database.
    Memory,
    /// In memory, from a grant of this node.
    Grant,
    /// In the database.
    Database,
}

/// The handles for chats of one channel with one outcome.
struct Ended {
    outcome: &'static str,
    chats: IntCounter,
    input: IntCounter,
    output: IntCounter,
    first_token: LinkedHistogram,
    speed: LinkedHistogram,
    provider: LinkedHistogram,
}

impl ChatMetrics {
    /// All metrics at zero, in `registry`; `provider` are the durations of all requests, by channel and kind.
    pub(super) fn new(
        registry: &Registry,
        exemplars: &ExemplarStore,
        provider: &LinkedHistograms,
    ) -> Self {
        let histograms = |name, help: &str, bounds| {
            LinkedHistograms::new(registry, exemplars, (name, help), &["channel"], bounds)
        };
        let counters = |name: &str, help: &str, labels: &[&str]| {
            let counters = IntCounterVec::new(Opts::new(name, help), labels).expect("a valid name");
            registry
                .register(Box::new(counters.clone()))
                .expect("a new name");
            counters
        };
        let debt = Opts::new(
            "tollgate_chat_debt_total",
            "Charged for chats beyond balance or quota, in units",
        );
        let debt = CounterVec::new(debt, &["model"]).expect("a valid name");
        registry
            .register(Box::new(debt.clone()))
            .expect("a new name");
        let drift = Opts::new(
            "tollgate_reconcile_drift_ratio",
            "How far the gateway's tokens were above the provider's in the last reconciliation, as a share of the provider's",
        );
        let drift = GaugeVec::new(drift, &["channel", "model"]).expect("a valid name");
        registry
            .register(Box::new(drift.clone()))
            .expect("a new name");
        let holds = counters(
            "tollgate_chat_holds_total",
            "Chats whose worst case was held, by the place of the hold",
            &["place"],
        );
        let holds = [
            (ChatHoldKind::Memory, "memory"),
            (ChatHoldKind::Grant, "grant"),
            (ChatHoldKind::Database, "database"),
        ]
        .map(|(kind, place)| (kind, holds.with_label_values(&[place])));
        Self {
            drift,
            debt,
            holds,
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
            first_token: histograms(
                FIRST_TOKEN_SECONDS,
                "Time from sending a streamed chat to a provider until its first piece for the client",
                FIRST_TOKEN_BUCKETS,
            ),
            speed: histograms(
                "tollgate_chat_tokens_per_second",
                "Output tokens of a streamed chat per second after its first piece",
                SPEED_BUCKETS,
            ),
            request_tokens: OnceLock::new(),
            provider: provider.clone(),
            known: RwLock::default(),
            ended: counters(
                "tollgate_chats_total",
                "Chats that ended here",
                &["channel", "outcome"],
            ),
            failures: counters(
                "tollgate_chat_attempts_failed_total",
                "Attempts of chats that failed on a channel",
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

    /// Counts the tokens of single chats from now on, in `registry`.
    pub(super) fn count_request_tokens(&self, registry: &Registry, exemplars: &ExemplarStore) {
        self.request_tokens.get_or_init(|| {
            let help = "Tokens of one chat, cached ones included in input and reasoning in output";
            let labels = &["channel", "model", "direction"];
            let texts = (REQUEST_TOKENS, help);
            LinkedHistograms::new(registry, exemplars, texts, labels, TOKEN_BUCKETS)
        });
    }

    pub(super) fn ended(&self, chat: &EndedChat<'_>) {
        let (units, times, span) = (chat.tokens, chat.times, chat.span);
        let ended = self.handles(chat.channel, chat.outcome);
        ended.chats.inc();
        let input = units.input + units.cached_input + units.cache_write;
        ended.input.inc_by(input);
        let output = units.output + units.reasoning;
        ended.output.inc_by(output);
        // If a chat used no tokens, no provider responded.
        if let Some(tokens) = self.request_tokens.get().filter(|_| input + output > 0) {
            for (direction, count) in [("input", input), ("output", output)] {
                let labels = [chat.channel, chat.model, direction];
                tokens.observe(&labels, count as f64, span);
            }
        }
        if let Some(first_token) = times.first_token {
            ended.first_token.observe(first_token.as_secs_f64(), span);
        }
        // The duration of a chat that was cut off, or whose client left, is not that of a complete one.
        let Some(total) = times.total.filter(|_| chat.outcome == "done") else {
            return;
        };
        ended.provider.observe(total.as_secs_f64(), span);
        let streaming = times.first_token.map(|first| total.saturating_sub(first));
        if let Some(streaming) = streaming.filter(|time| !time.is_zero() && output > 0) {
            let speed = output as f64 / streaming.as_secs_f64();
            ended.speed.observe(speed, span);
        }
    }

    pub(super) fn estimated(&self, channel: &str, model: &str) {
        self.estimated.with_label_values(&[channel, model]).inc();
    }

    pub(super) fn count_clamped(&self, channel: &str, model: &str) {
        self.clamped.with_label_values(&[channel, model]).inc();
    }

    pub(super) fn count_hold(&self, hold: ChatHoldKind) {
        let counters = self.holds.iter();
        for (_, count) in counters.filter(|(kind, _)| *kind == hold) {
            count.inc();
        }
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
            let counters = Arc::new(Ended {
                outcome,
                chats: self.ended.with_label_values(&[channel, outcome]),
                input: tokens("input"),
                output: tokens("output"),
                first_token: self.first_token.series(&[channel]),
                speed: self.speed.series(&[channel]),
                provider: self.provider.series(&[channel, "chat"]),
            });
            let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
            let outcomes = known.entry(channel.to_owned()).or_default();
            // Two threads may create handles at the same time: both count in the same metric, and one of them is kept.
            if outcomes.iter().all(|ended| ended.outcome != outcome) {
                outcomes.push(Arc::clone(&counters));
            }
            counters
        })
    }
}
