//! The circuit breaker of a channel: it opens after several failures in a row, then lets single probe requests through.

use std::time::Duration;

use tokio::time::Instant;

use super::cooldown::{Cooldown, Evidence};

/// Failures in a row that open the circuit.
pub(super) const FAILURE_THRESHOLD: u32 = 5;
/// How long the circuit stays open at first; doubled after each failed probe, up to [`MAX_OPEN`].
pub(super) const INITIAL_OPEN: Duration = Duration::from_secs(5);
const MAX_OPEN: Duration = Duration::from_secs(60);
/// How long a probe may take before another request may be the probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);

/// Closed, open, or half open (open, but past its time: one probe may go through).
#[derive(Default)]
pub(super) struct CircuitBreaker {
    /// The number of failures in a row.
    failures: u32,
    /// The evidence of those failures; `None` if there are none.
    evidence: Option<Evidence>,
    /// `None` if the circuit is closed.
    open: Option<Open>,
}

struct Open {
    until: Instant,
    length: Duration,
    probe_since: Option<Instant>,
}

impl CircuitBreaker {
    /// Whether the circuit is open or half open.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// `closed`, `open`, or `half_open` if the next request may go through as a probe.
    pub(super) fn state_name(&self, now: Instant) -> &'static str {
        match &self.open {
            None => "closed",
            Some(open) if open.until > now => "open",
            Some(_) => "half_open",
        }
    }

    /// Whether there were failures since the last success.
    pub(super) fn has_failures(&self) -> bool {
        self.failures > 0
    }

    /// How long no request of a user may pass. `None` if the circuit is closed for the user, or half open without a running probe.
    pub(super) fn cooldown(&self, now: Instant, user_id: &str) -> Option<Cooldown> {
        let evidence = self.evidence.as_ref();
        evidence.filter(|evidence| evidence.counts_for(user_id))?;
        let open = self.open.as_ref()?;
        if open.until > now {
            return Some(Cooldown::new(open.until));
        }
        let probe_since = open
            .probe_since
            .filter(|since| now < *since + PROBE_TIMEOUT)?;
        Some(Cooldown::new(probe_since + PROBE_TIMEOUT))
    }

    /// Records that a request passes now: in a half-open circuit it is the probe.
    pub(super) fn begin_probe(&mut self, now: Instant) {
        if let Some(open) = self.open.as_mut().filter(|open| open.until <= now) {
            open.probe_since = Some(now);
        }
    }

    /// Closes the circuit.
    pub(super) fn record_success(&mut self) {
        *self = Self::default();
    }

    /// Records that a request of the user, which failed on this channel, succeeded on another one.
    pub(super) fn confirm(&mut self, user_id: &str) {
        if let Some(evidence) = &mut self.evidence {
            evidence.confirm(user_id);
        }
    }

    /// Counts a failure of a request that began at `began`; opens the circuit at [`FAILURE_THRESHOLD`], or for twice as long after a failed probe.
    pub(super) fn record_failure(&mut self, now: Instant, began: Instant, user_id: &str) {
        let evidence = self
            .evidence
            .get_or_insert_with(|| Evidence::one_user(user_id));
        evidence.add(user_id);
        self.failures = self.failures.saturating_add(1);
        if let Some(open) = &mut self.open {
            // A request that began before the probe, or without one, shows nothing new.
            let is_probe = open.probe_since.is_some_and(|since| since <= began);
            if is_probe {
                open.length = (open.length * 2).min(MAX_OPEN);
                (open.until, open.probe_since) = (now + open.length, None);
            }
        } else if self.failures >= FAILURE_THRESHOLD {
            self.open = Some(Open {
                until: now + INITIAL_OPEN,
                length: INITIAL_OPEN,
                probe_since: None,
            });
        }
    }
}
