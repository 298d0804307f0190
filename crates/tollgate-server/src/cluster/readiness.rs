//! Why this node must not be used, although it runs and reaches its database: `/readyz` reports the reason, and the node claims no tasks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tollgate_core::{Millis, clock};

use crate::metrics::Metrics;

/// A reason why a node is not ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Its clock differs too much from the database's.
    Clock,
    /// Its program is too old for the database, which a newer one has changed.
    Version,
    /// A setting that must be the same on all nodes differs from that of the others.
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

/// The reasons why this node is not ready now.
pub struct Readiness {
    reasons: Mutex<BTreeMap<Cause, String>>,
    /// In milliseconds. [`UNKNOWN`] until it was measured.
    clock_offset: AtomicI64,
    metrics: Arc<Metrics>,
}

/// Stands for an offset that was not measured; no clock has this one.
const UNKNOWN: Millis = Millis::MIN;

impl Readiness {
    /// The state of a node that is ready.
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

    /// Whether there is no reason against using this node.
    pub fn is_ready(&self) -> bool {
        self.lock().is_empty()
    }

    /// The first reason, with a sentence for the operator. `None` if the node is ready.
    pub fn reason(&self) -> Option<(Cause, String)> {
        let reasons = self.lock();
        let (cause, reason) = reasons.first_key_value()?;
        Some((*cause, reason.clone()))
    }

    /// Sets or removes (`None`) the reason for a cause. Changes are logged.
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
                tracing::info!(
                    cause = cause.name(),
                    "this cause does not apply to this node any more"
                );
            }
            None => {}
        }
    }

    /// How far this node's clock is ahead of the database's, in milliseconds. `None` until it was measured.
    pub fn clock_offset(&self) -> Option<Millis> {
        let offset = self.clock_offset.load(Ordering::Relaxed);
        (offset != UNKNOWN).then_some(offset)
    }

    /// Records how far this node's clock is ahead of the database's: the node is not ready if the difference, in either direction, exceeds `max`
    /// milliseconds.
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
