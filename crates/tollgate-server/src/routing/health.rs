//! What is known of a channel's health: a circuit for the channel, rests for its keys and for models on it.
//!
//! Everything here heals by itself: whatever rests has a time from which it is tried again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Failures in a row after which the circuit opens.
const TRIPS_AT: u32 = 5;
/// How long an open circuit keeps away from the channel: doubled each time a probe fails, up to the second.
const OPEN_FIRST: Duration = Duration::from_secs(5);
const OPEN_MOST: Duration = Duration::from_secs(60);
/// How long a probe may take before another request may be one.
const PROBE_TIME: Duration = Duration::from_secs(30);
/// Rest of a key that had enough requests and of which the upstream did not say how long.
const RATE_LIMITED: Duration = Duration::from_secs(5);
/// Rest of a key that was refused.
const REFUSED: Duration = Duration::from_secs(60);
/// Rest of a key, or of a model on a channel, whose quota is used up.
const EXHAUSTED: Duration = Duration::from_secs(300);
/// Rest of a model that the upstream does not have.
const MISSING: Duration = Duration::from_secs(300);
/// No rest is longer, whatever an upstream asks.
const LONGEST: Duration = Duration::from_secs(3_600);
/// Models whose rest is remembered; clients cannot make up more: only configured ones get here.
const MODELS_MOST: usize = 10_000;

/// The health of one channel.
#[derive(Default)]
pub(super) struct Health {
    /// Whether there is anything to look at: spares healthy channels the lock.
    troubled: AtomicBool,
    turn: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In a row.
    failures: u32,
    circuit: Option<Circuit>,
    models: HashMap<String, Rest>,
    keys: HashMap<usize, Rest>,
}

struct Circuit {
    until: Instant,
    length: Duration,
    probe_since: Option<Instant>,
}

#[derive(Clone, Copy)]
struct Rest {
    until: Instant,
    asked: bool,
}

/// Whether a channel may be called for a model now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// With the key of that index; none where the channel has no keys.
    Ready(Option<usize>),
    /// Not before then. `asked`: the upstream itself asked to be left alone, so it is not tried earlier even as a last resort.
    Resting {
        until: Instant,
        asked: bool,
        key: Option<usize>,
    },
    /// Every key was tried for this request.
    Spent,
}

/// What went wrong on a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// It could not be reached, did not answer in time, or answered 5xx.
    Down,
    /// This key has had enough for now; how long the upstream asks to wait.
    RateLimited(Option<Duration>),
    /// This key is refused.
    KeyRefused,
    /// This key's quota is used up.
    QuotaExhausted,
    /// It does not have this model.
    ModelMissing,
}

impl Health {
    /// Whether a channel with `keys` keys may be called for `model`; `tried` are keys that were tried already (a channel
    /// without keys counts as key 0). Keys are used in turn, but one session keeps to its key: prompt caches are the key's.
    pub(super) fn standing(
        &self,
        model: &str,
        keys: usize,
        tried: &[usize],
        session: Option<u64>,
    ) -> Standing {
        let spent = |key: usize| tried.contains(&key);
        let turn = match session {
            Some(session) => usize::try_from(session >> 33).unwrap_or(0),
            None if keys > 1 => self.turn.fetch_add(1, Ordering::Relaxed),
            None => 0,
        };
        let mut in_turn = (0..keys.max(1))
            .map(|n| (turn.wrapping_add(n)) % keys.max(1))
            .filter(|key| !spent(*key));
        let named = |key: usize| (keys > 0).then_some(key);
        if !self.troubled.load(Ordering::Acquire) {
            return in_turn
                .next()
                .map_or(Standing::Spent, |key| Standing::Ready(named(key)));
        }
        let now = Instant::now();
        let mut state = self.locked();
        state.forget_past(now);
        let mut soonest: Option<(Rest, usize)> = None;
        let mut ready = None;
        for key in in_turn {
            match state.keys.get(&key) {
                None => {
                    ready = Some(key);
                    break;
                }
                Some(rest) if soonest.is_none_or(|(s, _)| rest.until < s.until) => {
                    soonest = Some((*rest, key))
                }
                Some(_) => {}
            }
        }
        let blocked = state
            .models
            .get(model)
            .copied()
            .or_else(|| state.open_circuit(now));
        match (ready, blocked, soonest) {
            (Some(key), None, _) => Standing::Ready(named(key)),
            (Some(key), Some(rest), _) => rest.standing(named(key)),
            (None, _, Some((rest, key))) => rest.standing(named(key)),
            (None, _, None) => Standing::Spent,
        }
    }

    /// A half-open circuit lets one request through: this one.
    pub(super) fn probe(&self) {
        if self.troubled.load(Ordering::Acquire)
            && let Some(circuit) = &mut self.locked().circuit
        {
            circuit.probe_since = Some(Instant::now());
        }
    }

    /// An answer came.
    pub(super) fn succeeded(&self) {
        if self.troubled.load(Ordering::Acquire) {
            let mut state = self.locked();
            (state.failures, state.circuit) = (0, None);
            self.settle(&state);
        }
    }

    /// No answer came.
    pub(super) fn failed(&self, model: &str, key: Option<usize>, trouble: Trouble) {
        let now = Instant::now();
        let mut state = self.locked();
        self.troubled.store(true, Ordering::Release);
        match trouble {
            Trouble::Down => state.fail(now),
            Trouble::RateLimited(asked) => {
                let until = now + asked.unwrap_or(RATE_LIMITED).min(LONGEST);
                state.rest_key(
                    key,
                    Rest {
                        until,
                        asked: asked.is_some(),
                    },
                );
            }
            Trouble::KeyRefused => state.rest_key(key, Rest::of(now + REFUSED)),
            Trouble::QuotaExhausted if key.is_some() => {
                state.rest_key(key, Rest::of(now + EXHAUSTED))
            }
            Trouble::QuotaExhausted => state.rest_model(model, now + EXHAUSTED),
            Trouble::ModelMissing => state.rest_model(model, now + MISSING),
        }
    }

    /// What an operator is shown: `ok`, or what rests.
    pub(super) fn describe(&self) -> String {
        let now = Instant::now();
        let mut state = self.locked();
        state.forget_past(now);
        let mut words = Vec::new();
        if state.circuit.is_some() {
            words.push("circuit open".to_owned());
        }
        if !state.keys.is_empty() {
            words.push(format!("{} key(s) resting", state.keys.len()));
        }
        if !state.models.is_empty() {
            words.push(format!("{} model(s) resting", state.models.len()));
        }
        if words.is_empty() {
            "ok".to_owned()
        } else {
            words.join(", ")
        }
    }

    fn settle(&self, state: &State) {
        let troubled = state.failures > 0
            || state.circuit.is_some()
            || !state.models.is_empty()
            || !state.keys.is_empty();
        self.troubled.store(troubled, Ordering::Release);
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn forget_past(&mut self, now: Instant) {
        self.models.retain(|_, rest| rest.until > now);
        self.keys.retain(|_, rest| rest.until > now);
    }

    /// The rest that an open circuit means; none when closed, or half open and free for a probe.
    fn open_circuit(&self, now: Instant) -> Option<Rest> {
        let circuit = self.circuit.as_ref()?;
        if circuit.until > now {
            return Some(Rest::of(circuit.until));
        }
        let probing = circuit
            .probe_since
            .as_ref()
            .filter(|since| now < **since + PROBE_TIME)?;
        Some(Rest::of(*probing + PROBE_TIME))
    }

    fn fail(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        if let Some(circuit) = &mut self.circuit {
            circuit.length = (circuit.length * 2).min(OPEN_MOST);
            (circuit.until, circuit.probe_since) = (now + circuit.length, None);
        } else if self.failures >= TRIPS_AT {
            self.circuit = Some(Circuit {
                until: now + OPEN_FIRST,
                length: OPEN_FIRST,
                probe_since: None,
            });
        }
    }

    fn rest_key(&mut self, key: Option<usize>, rest: Rest) {
        self.keys.insert(key.unwrap_or(0), rest);
    }

    fn rest_model(&mut self, model: &str, until: Instant) {
        if self.models.len() < MODELS_MOST {
            self.models.insert(model.to_owned(), Rest::of(until));
        }
    }
}

impl Rest {
    /// One that nobody asked for.
    fn of(until: Instant) -> Self {
        Self {
            until,
            asked: false,
        }
    }

    fn standing(self, key: Option<usize>) -> Standing {
        Standing::Resting {
            until: self.until,
            asked: self.asked,
            key,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: &str = "m";

    fn is_ready(standing: Standing) -> bool {
        matches!(standing, Standing::Ready(_))
    }

    #[tokio::test(start_paused = true)]
    async fn the_circuit_opens_lets_one_probe_through_and_closes() {
        let health = Health::default();
        for _ in 1..TRIPS_AT {
            health.failed(M, None, Trouble::Down);
        }
        assert!(is_ready(health.standing(M, 0, &[], None)), "not yet");
        health.failed(M, None, Trouble::Down);
        assert!(!is_ready(health.standing(M, 0, &[], None)));
        tokio::time::advance(OPEN_FIRST).await;
        assert!(is_ready(health.standing(M, 0, &[], None)), "half open");
        health.probe();
        assert!(
            !is_ready(health.standing(M, 0, &[], None)),
            "one probe at a time"
        );
        health.failed(M, None, Trouble::Down);
        tokio::time::advance(OPEN_FIRST).await;
        assert!(
            !is_ready(health.standing(M, 0, &[], None)),
            "a failed probe doubles the pause"
        );
        tokio::time::advance(OPEN_FIRST).await;
        assert!(is_ready(health.standing(M, 0, &[], None)));
        health.succeeded();
        health.failed(M, None, Trouble::Down);
        assert!(
            is_ready(health.standing(M, 0, &[], None)),
            "counted from the start again"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn keys_rest_alone_and_models_rest_alone() {
        let health = Health::default();
        health.failed(M, Some(0), Trouble::KeyRefused);
        for _ in 0..4 {
            assert_eq!(health.standing(M, 2, &[], None), Standing::Ready(Some(1)));
        }
        assert!(
            !is_ready(health.standing(M, 2, &[1], None)),
            "the other was tried"
        );
        tokio::time::advance(REFUSED).await;
        assert_eq!(health.standing(M, 2, &[1], None), Standing::Ready(Some(0)));
        assert_eq!(health.standing(M, 2, &[0, 1], None), Standing::Spent);

        health.failed(M, Some(0), Trouble::ModelMissing);
        assert!(!is_ready(health.standing(M, 2, &[], None)));
        assert!(is_ready(health.standing("other", 2, &[], None)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_upstream_asks_is_kept() {
        let health = Health::default();
        health.failed(M, None, Trouble::RateLimited(Some(Duration::from_secs(17))));
        assert!(matches!(
            health.standing(M, 0, &[], None),
            Standing::Resting { asked: true, .. }
        ));
        tokio::time::advance(Duration::from_secs(17)).await;
        assert!(is_ready(health.standing(M, 0, &[], None)));
    }

    #[test]
    fn keys_take_turns() {
        let health = Health::default();
        let keys: Vec<_> = (0..4).map(|_| health.standing(M, 2, &[], None)).collect();
        assert_eq!(keys[0], keys[2]);
        assert_ne!(keys[0], keys[1]);
    }
}
