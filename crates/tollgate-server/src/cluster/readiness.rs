//! Why this node, although it runs and reaches its database, must not be used: `/readyz` says so and it takes no tasks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tollgate_core::{Millis, clock};

use crate::metrics::Metrics;

/// What can be wrong with a node among others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Its clock differs too much from the database's.
    Clock,
    /// Its program is too old for what a newer one has made of the database.
    Version,
    /// It does not agree with the other nodes on what all must have in common.
    Settings,
}

impl Cause {
    /// Every cause.
    const ALL: [Self; 3] = [Self::Clock, Self::Version, Self::Settings];

    /// Its name, as `part` of `/readyz` and label of the metric.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Version => "version",
            Self::Settings => "settings",
        }
    }
}

/// What is wrong with this node now.
pub struct Readiness {
    reasons: Mutex<BTreeMap<Cause, String>>,
    /// In milliseconds. [`UNKNOWN`] until it was measured.
    clock_offset: AtomicI64,
    metrics: Arc<Metrics>,
}

/// No offset of a clock is as large.
const UNKNOWN: Millis = Millis::MIN;

impl Readiness {
    /// That of a node with which nothing is wrong.
    pub fn new(metrics: Arc<Metrics>) -> Self {
        for cause in Cause::ALL {
            metrics.set_not_ready(cause.name(), false);
        }
        Self {
            reasons: Mutex::default(),
            clock_offset: AtomicI64::new(UNKNOWN),
            metrics,
        }
    }

    /// Whether nothing is wrong.
    pub fn is_ready(&self) -> bool {
        self.lock().is_empty()
    }

    /// The first thing that is wrong, with a sentence for the operator.
    pub fn reason(&self) -> Option<(Cause, String)> {
        let reasons = self.lock();
        let (cause, reason) = reasons.first_key_value()?;
        Some((*cause, reason.clone()))
    }

    /// Notes what is wrong, or that it is right (`None`). The log says when that changes.
    pub fn set(&self, cause: Cause, reason: Option<String>) {
        self.metrics.set_not_ready(cause.name(), reason.is_some());
        let mut reasons = self.lock();
        let was_failing = reasons.contains_key(&cause);
        match reason {
            Some(reason) => {
                if !was_failing {
                    tracing::error!(cause = cause.name(), reason, "this node is not ready");
                }
                reasons.insert(cause, reason);
            }
            None if was_failing => {
                reasons.remove(&cause);
                tracing::info!(cause = cause.name(), "this is right again");
            }
            None => {}
        }
    }

    /// How far this node's clock is ahead of the database's, in milliseconds. `None` until it was measured.
    pub fn clock_offset(&self) -> Option<Millis> {
        let offset = self.clock_offset.load(Ordering::Relaxed);
        (offset != UNKNOWN).then_some(offset)
    }

    /// Notes how far this node's clock is ahead of the database's: more than `max` milliseconds, either way, are too much.
    pub fn set_clock_offset(&self, offset: Millis, max: Millis) {
        self.clock_offset.store(offset, Ordering::Relaxed);
        self.metrics.set_clock_offset(offset);
        let seconds = |ms: Millis| ms.abs() as f64 / clock::SECOND as f64;
        let direction = if offset > 0 { "ahead of" } else { "behind" };
        let reason = format!(
            "this node's clock is {:.1} s {direction} the database's, and {:.1} s are allowed: synchronise it (chrony, systemd-timesyncd)",
            seconds(offset),
            seconds(max)
        );
        self.set(Cause::Clock, (offset.abs() > max).then_some(reason));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Cause, String>> {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
