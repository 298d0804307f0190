//! The health of one channel: its circuit breaker and the cooldowns of its keys and models.
//!
//! Every state here ends without intervention: each cooldown has a time after which the channel, key or model is used again.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::circuit_breaker::CircuitBreaker;
use super::cooldown::{self, Cooldown};
use super::cooldown_table::{CooldownTable, Decision, Subject};
use super::recent_calls::RecentCalls;

/// The health of one channel.
#[derive(Default)]
pub(super) struct ChannelHealth {
    /// Whether any state is set: the lock is not taken for healthy channels.
    is_degraded: AtomicBool,
    /// Counts requests, so that keys are used in turn.
    turn: AtomicUsize,
    state: Mutex<State>,
    recent: RecentCalls,
}

#[derive(Default)]
struct State {
    /// Whether an operator has paused the channel.
    is_paused: bool,
    breaker: CircuitBreaker,
    cooldowns: CooldownTable,
}

/// The health of a channel on this node, for operators.
#[derive(Debug, Clone, PartialEq)]
pub struct HealthReport {
    /// `closed`, `open` or `half_open`.
    pub circuit: &'static str,
    /// What is in cooldown: keys by their index, then models by name.
    pub cooldowns: Vec<CooldownReport>,
    /// The median duration of the last calls that did not fail, in milliseconds; `None` before the first.
    pub p50_ms: Option<u32>,
    /// The share of the last calls that failed because of the channel, 0 to 1; `None` before the first.
    pub error_rate: Option<f64>,
}

/// A key or a model that is in cooldown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CooldownReport {
    /// The key's index; `None` if a model is in cooldown.
    pub key: Option<usize>,
    /// The client's name of the model; `None` if a key is in cooldown.
    pub model: Option<String>,
    /// How long the cooldown still lasts.
    pub left: Duration,
}

/// Whether a channel may be called for a model now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Availability {
    /// It may be called with the key of that index; `None` if the channel has no keys.
    Ready(Option<usize>),
    /// It must not be called before the cooldown ends.
    CoolingDown {
        cooldown: Cooldown,
        key: Option<usize>,
    },
    /// Every key has been tried for this request.
    AllKeysTried,
}

/// How an upstream failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChannelFailure {
    /// It could not be reached, did not respond in time, or its response was 5xx; contains when the request began.
    Unavailable(Instant),
    /// It rate-limited the key; contains the pause that it requested, if any.
    RateLimited(Option<Duration>),
    /// It rejected the key.
    KeyRejected,
    /// The key's quota is used up.
    QuotaExhausted,
    /// It does not have the model.
    ModelNotFound,
}

impl ChannelHealth {
    /// Whether a channel with `keys` keys may be called for `model` by a user. `tried` are the indices of keys that were already tried for this
    /// request (a channel without keys counts as key 0). Keys are used in turn, but the requests of one session use the same key, because the
    /// upstream's prompt cache belongs to the key.
    pub(super) fn availability(
        &self,
        model: &str,
        keys: usize,
        tried: &[usize],
        session: Option<u64>,
        user_id: &str,
    ) -> Availability {
        let turn = match session {
            Some(session) => usize::try_from(session >> 33).unwrap_or(0),
            None if keys > 1 => self.turn.fetch_add(1, Ordering::Relaxed),
            None => 0,
        };
        let mut untried = (0..keys.max(1))
            .map(|n| (turn.wrapping_add(n)) % keys.max(1))
            .filter(|key| !tried.contains(key));
        let key_index = |key: usize| (keys > 0).then_some(key);
        // A paused channel counts as degraded, so the lock is not needed for one that is not degraded.
        if !self.is_degraded.load(Ordering::Acquire) {
            return untried.next().map_or(Availability::AllKeysTried, |key| {
                Availability::Ready(key_index(key))
            });
        }
        let now = Instant::now();
        let mut state = self.lock();
        state.cooldowns.remove_expired(now);
        if state.is_paused {
            return Availability::CoolingDown {
                cooldown: Cooldown::of_paused_channel(now),
                key: None,
            };
        }
        let mut ready = None;
        let mut first_to_end: Option<(Cooldown, usize)> = None;
        for key in untried {
            let Some(cooldown) = state.cooldowns.for_user(&Subject::Key(key), user_id) else {
                ready = Some(key);
                break;
            };
            if first_to_end.is_none_or(|(first, _)| cooldown.until < first.until) {
                first_to_end = Some((cooldown, key));
            }
        }
        let blocked = state.model_cooldown(model, user_id);
        let blocked = blocked.or_else(|| state.breaker.cooldown(now, user_id));
        let cooling_down = |cooldown, key| Availability::CoolingDown {
            cooldown,
            key: key_index(key),
        };
        match (ready, blocked, first_to_end) {
            (Some(key), None, _) => Availability::Ready(key_index(key)),
            (Some(key), Some(cooldown), _) => cooling_down(cooldown, key),
            (None, _, Some((cooldown, key))) => cooling_down(cooldown, key),
            (None, _, None) => Availability::AllKeysTried,
        }
    }

    /// Records that a request is about to be sent: in a half-open circuit it is the probe.
    pub(super) fn begin_probe(&self, now: Instant) {
        if self.is_degraded.load(Ordering::Acquire) {
            self.lock().breaker.begin_probe(now);
        }
    }

    /// Pauses the channel or ends its pause.
    pub(super) fn set_paused(&self, is_paused: bool) {
        let mut state = self.lock();
        state.is_paused = is_paused;
        self.update_degraded(&state);
    }

    /// Whether the channel is paused.
    pub(super) fn is_paused(&self) -> bool {
        self.is_degraded.load(Ordering::Acquire) && self.lock().is_paused
    }

    /// Adds a call to the last calls: whether it failed because of the channel, and the duration until the response.
    pub(super) fn count_call(&self, took: Duration, has_failed: bool) {
        self.recent.add(took, has_failed);
    }

    /// Records that the upstream responded: the circuit closes.
    pub(super) fn record_success(&self) {
        if self.is_degraded.load(Ordering::Acquire) {
            let mut state = self.lock();
            state.breaker.record_success();
            self.update_degraded(&state);
        }
    }

    /// Records that the upstream failed for a user's request for `model` with the key of that index (`None` if the channel has no keys). Returns the
    /// cooldown that follows; an open circuit is not one.
    pub(super) fn record_failure(
        &self,
        model: &str,
        key: Option<usize>,
        user_id: &str,
        failure: ChannelFailure,
    ) -> Option<Decision> {
        let now = Instant::now();
        let mut state = self.lock();
        self.is_degraded.store(true, Ordering::Release);
        let of_key = Subject::Key(key.unwrap_or(0));
        let of_model = || Subject::Model(model.to_owned());
        let (subject, length) = match failure {
            ChannelFailure::Unavailable(began) => {
                state.breaker.record_failure(now, began, user_id);
                return None;
            }
            ChannelFailure::RateLimited(retry_after) => {
                let cooldown = Cooldown::rate_limited(now, retry_after);
                return state.cooldowns.add(of_key, cooldown, user_id);
            }
            ChannelFailure::KeyRejected => (of_key, cooldown::KEY_REJECTED),
            ChannelFailure::QuotaExhausted if key.is_some() => (of_key, cooldown::QUOTA_EXHAUSTED),
            ChannelFailure::QuotaExhausted => (of_model(), cooldown::QUOTA_EXHAUSTED),
            ChannelFailure::ModelNotFound => (of_model(), cooldown::MODEL_NOT_FOUND),
        };
        let cooldown = Cooldown::new(now + length);
        state.cooldowns.add(subject, cooldown, user_id)
    }

    /// Records that a user's request for `model`, which failed here with the key of that index (`None` if it is not known), succeeded on another
    /// channel: the failure then counts for all users. Returns the cooldowns that applied only to that user.
    pub(super) fn confirm_failure(
        &self,
        model: &str,
        key: Option<usize>,
        user_id: &str,
    ) -> Vec<Decision> {
        if !self.is_degraded.load(Ordering::Acquire) {
            return Vec::new();
        }
        let mut state = self.lock();
        state.cooldowns.remove_expired(Instant::now());
        state.breaker.confirm(user_id);
        let is_tried = |subject: &Subject| match subject {
            Subject::Key(index) => key.is_none_or(|key| key == *index),
            Subject::Model(name) => name == model,
        };
        state.cooldowns.confirm(is_tried, user_id)
    }

    /// Whether `model`, or the key of that index (`None` if the channel has no keys), is in a cooldown for the user that the gateway chose itself:
    /// the upstream did not request it.
    pub(super) fn has_unrequested_cooldown(
        &self,
        model: &str,
        key: Option<usize>,
        user_id: &str,
    ) -> bool {
        if !self.is_degraded.load(Ordering::Acquire) {
            return false;
        }
        let mut state = self.lock();
        state.cooldowns.remove_expired(Instant::now());
        let of_key = Subject::Key(key.unwrap_or(0));
        let of_key = state.cooldowns.for_user(&of_key, user_id);
        let of_model = state.model_cooldown(model, user_id);
        let is_unrequested = |cooldown: Option<Cooldown>| cooldown.is_some_and(|c| !c.is_requested);
        is_unrequested(of_key) || is_unrequested(of_model)
    }

    /// Records that a request for `model` with the key of that index, started at `started`, succeeded: lifts their cooldowns that were in effect
    /// then, except those that the upstream requested.
    pub(super) fn lift_disproved(
        &self,
        model: &str,
        key: Option<usize>,
        started: Instant,
    ) -> Vec<Decision> {
        let subjects = [
            Subject::Key(key.unwrap_or(0)),
            Subject::Model(model.to_owned()),
        ];
        self.change_cooldowns(|cooldowns| cooldowns.lift_disproved(&subjects, started))
    }

    /// Lifts all cooldowns; the circuit stays as it is.
    pub(super) fn lift_all(&self) -> Vec<Decision> {
        self.change_cooldowns(CooldownTable::lift_all)
    }

    /// Applies another node's decision.
    pub(super) fn apply(&self, decision: Decision) {
        self.change_cooldowns(|cooldowns| cooldowns.apply(decision));
    }

    /// Removes the cooldowns that other nodes have set, except `kept`.
    pub(super) fn retain_own_and(&self, kept: &[Subject]) {
        self.change_cooldowns(|cooldowns| cooldowns.retain_own_and(kept));
    }

    fn change_cooldowns<T>(&self, change: impl FnOnce(&mut CooldownTable) -> T) -> T {
        let mut state = self.lock();
        let changed = change(&mut state.cooldowns);
        self.update_degraded(&state);
        changed
    }

    fn update_degraded(&self, state: &State) {
        self.is_degraded
            .store(state.is_degraded(), Ordering::Release);
    }

    /// The health in detail.
    pub(super) fn report(&self) -> HealthReport {
        let now = Instant::now();
        let mut state = self.lock();
        state.cooldowns.remove_expired(now);
        let all = state.cooldowns.all().into_iter();
        let cooldowns = all.map(|(subject, until)| {
            let (key, model) = match subject {
                Subject::Key(key) => (Some(*key), None),
                Subject::Model(model) => (None, Some(model.clone())),
            };
            let left = until - now;
            CooldownReport { key, model, left }
        });
        HealthReport {
            circuit: state.breaker.state_name(now),
            cooldowns: cooldowns.collect(),
            p50_ms: self.recent.p50_ms(),
            error_rate: self.recent.error_rate(),
        }
    }

    /// The health as text for operators: `ok`, or what is open or in cooldown.
    pub(super) fn describe(&self) -> String {
        let mut state = self.lock();
        state.cooldowns.remove_expired(Instant::now());
        let mut problems = Vec::new();
        if state.is_paused {
            problems.push("paused".to_owned());
        }
        if state.breaker.is_open() {
            problems.push("circuit open".to_owned());
        }
        let all = state.cooldowns.all();
        let is_key = |(subject, _): &&(&Subject, Instant)| matches!(subject, Subject::Key(_));
        let keys = all.iter().filter(is_key).count();
        for (count, what) in [(keys, "key"), (all.len() - keys, "model")] {
            if count > 0 {
                problems.push(format!("{count} {what}(s) cooling down"));
            }
        }
        if problems.is_empty() {
            "ok".to_owned()
        } else {
            problems.join(", ")
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_degraded(&self) -> bool {
        self.is_paused
            || self.breaker.has_failures()
            || self.breaker.is_open()
            || !self.cooldowns.is_empty()
    }

    fn model_cooldown(&self, model: &str, user_id: &str) -> Option<Cooldown> {
        let subject = Subject::Model(model.to_owned());
        self.cooldowns.for_user(&subject, user_id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::circuit_breaker::{FAILURE_THRESHOLD, INITIAL_OPEN};
    use super::*;

    const M: &str = "m";
    const ADA: &str = "ada";
    const BOB: &str = "bob";

    fn is_ready(availability: Availability) -> bool {
        matches!(availability, Availability::Ready(_))
    }

    #[tokio::test(start_paused = true)]
    async fn the_circuit_opens_lets_one_probe_through_and_closes() {
        let health = ChannelHealth::default();
        let fail_since = |began| {
            health.record_failure(M, None, ADA, ChannelFailure::Unavailable(began));
        };
        let fail = || fail_since(Instant::now());
        let began_before = Instant::now();
        let ready = || is_ready(health.availability(M, 0, &[], None, ADA));
        for _ in 1..FAILURE_THRESHOLD {
            fail();
        }
        assert!(ready(), "one failure fewer does not open it");
        fail();
        assert!(!ready());
        // Requests that began before the circuit opened are no probes, nor are those of users for whom it is closed.
        fail_since(began_before);
        health.begin_probe(Instant::now());
        fail_since(began_before);
        tokio::time::advance(INITIAL_OPEN).await;
        assert!(ready(), "half open");
        health.begin_probe(Instant::now());
        fail_since(began_before);
        assert!(!ready(), "one probe at a time");
        fail();
        tokio::time::advance(INITIAL_OPEN).await;
        assert!(!ready(), "a failed probe doubles the time");
        tokio::time::advance(INITIAL_OPEN).await;
        assert!(ready());
        health.record_success();
        fail();
        assert!(ready(), "counted from zero again");
    }

    #[tokio::test(start_paused = true)]
    async fn the_description_lists_pauses_open_circuits_and_cooldowns() {
        let health = ChannelHealth::default();
        assert_eq!(health.describe(), "ok");
        for key in [0, 1] {
            health.record_failure(M, Some(key), ADA, ChannelFailure::KeyRejected);
        }
        assert_eq!(health.describe(), "2 key(s) cooling down");
        for _ in 0..FAILURE_THRESHOLD {
            let failure = ChannelFailure::Unavailable(Instant::now());
            health.record_failure(M, None, ADA, failure);
        }
        health.set_paused(true);
        assert_eq!(
            health.describe(),
            "paused, circuit open, 2 key(s) cooling down"
        );
        let lacks_model = ChannelHealth::default();
        lacks_model.record_failure(M, Some(0), ADA, ChannelFailure::ModelNotFound);
        assert_eq!(lacks_model.describe(), "1 model(s) cooling down");
    }

    #[tokio::test(start_paused = true)]
    async fn keys_and_models_cool_down_independently() {
        let health = ChannelHealth::default();
        health.record_failure(M, Some(0), ADA, ChannelFailure::KeyRejected);
        for _ in 0..4 {
            assert_eq!(
                health.availability(M, 2, &[], None, ADA),
                Availability::Ready(Some(1))
            );
        }
        assert!(
            !is_ready(health.availability(M, 2, &[1], None, ADA)),
            "the other key was tried"
        );
        tokio::time::advance(cooldown::KEY_REJECTED).await;
        assert_eq!(
            health.availability(M, 2, &[1], None, ADA),
            Availability::Ready(Some(0))
        );
        assert_eq!(
            health.availability(M, 2, &[0, 1], None, ADA),
            Availability::AllKeysTried
        );

        health.record_failure(M, Some(0), ADA, ChannelFailure::ModelNotFound);
        assert!(!is_ready(health.availability(M, 2, &[], None, ADA)));
        assert!(is_ready(health.availability("other", 2, &[], None, ADA)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_retry_after_of_the_upstream_is_kept() {
        let health = ChannelHealth::default();
        let pause = Duration::from_secs(17);
        health.record_failure(M, None, ADA, ChannelFailure::RateLimited(Some(pause)));
        assert!(matches!(
            health.availability(M, 0, &[], None, ADA),
            Availability::CoolingDown { cooldown, .. } if cooldown.is_requested
        ));
        tokio::time::advance(pause).await;
        assert!(is_ready(health.availability(M, 0, &[], None, ADA)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_success_lifts_the_cooldowns_that_held_when_it_started() {
        let health = ChannelHealth::default();
        let earlier = Instant::now();
        tokio::time::advance(Duration::from_secs(1)).await;
        health.record_failure(M, Some(0), ADA, ChannelFailure::KeyRejected);
        health.record_failure(M, Some(0), ADA, ChannelFailure::ModelNotFound);
        assert!(health.has_unrequested_cooldown(M, Some(0), ADA));
        assert!(
            !health.has_unrequested_cooldown(M, Some(0), BOB),
            "none for him"
        );
        assert_eq!(health.lift_disproved(M, Some(0), earlier), []);
        let lifted = health.lift_disproved(M, Some(0), Instant::now());
        assert_eq!(lifted.len(), 2);
        assert!(is_ready(health.availability(M, 1, &[], None, ADA)));
        // Cooldowns that the upstream requested are kept.
        let pause = ChannelFailure::RateLimited(Some(Duration::from_secs(9)));
        health.record_failure(M, Some(0), ADA, pause);
        assert!(!health.has_unrequested_cooldown(M, Some(0), ADA));
        assert_eq!(health.lift_disproved(M, Some(0), Instant::now()), []);
        assert_eq!(health.lift_all().len(), 1);
        assert!(is_ready(health.availability(M, 1, &[], None, ADA)));
    }

    #[tokio::test(start_paused = true)]
    async fn failures_of_one_user_count_for_others_only_with_other_evidence() {
        let is_ready_for =
            |health: &ChannelHealth, user| is_ready(health.availability(M, 1, &[], None, user));
        for (failure, times) in [
            (
                ChannelFailure::Unavailable(Instant::now()),
                FAILURE_THRESHOLD,
            ),
            (ChannelFailure::RateLimited(None), 1),
            (ChannelFailure::RateLimited(Some(Duration::from_secs(9))), 1),
            (ChannelFailure::KeyRejected, 1),
            (ChannelFailure::QuotaExhausted, 1),
            (ChannelFailure::ModelNotFound, 1),
        ] {
            let failed = || {
                let health = ChannelHealth::default();
                for _ in 0..times {
                    health.record_failure(M, Some(0), ADA, failure);
                }
                assert!(!is_ready_for(&health, ADA), "{failure:?}");
                assert!(is_ready_for(&health, BOB), "{failure:?}");
                health
            };
            let of_two_users = failed();
            of_two_users.record_failure(M, Some(0), BOB, failure);
            assert!(!is_ready_for(&of_two_users, "carol"), "{failure:?}");
            let succeeded_elsewhere = failed();
            succeeded_elsewhere.confirm_failure(M, Some(0), BOB);
            assert!(is_ready_for(&succeeded_elsewhere, BOB), "not of that user");
            succeeded_elsewhere.confirm_failure(M, None, ADA);
            assert!(!is_ready_for(&succeeded_elsewhere, BOB), "{failure:?}");
        }
    }

    #[test]
    fn keys_are_used_in_turn() {
        let health = ChannelHealth::default();
        let keys: Vec<_> = (0..4)
            .map(|_| health.availability(M, 2, &[], None, ADA))
            .collect();
        assert_eq!(keys[0], keys[2]);
        assert_ne!(keys[0], keys[1]);
    }
}
