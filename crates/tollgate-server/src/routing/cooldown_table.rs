//! The cooldowns of one channel's keys and models: which are in effect, for which users, and which of them other nodes should know.

use std::collections::HashMap;

use tokio::time::Instant;

use super::cooldown::{Cooldown, Evidence};

/// The maximum number of cooldowns; beyond it no cooldown of a model is added. A channel that lists no models is called with every name that clients
/// send, so without a limit they could use up the memory.
const MAX_MODELS: usize = 10_000;

/// The part of a channel that is in cooldown. Keys sort first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Subject {
    /// The key of that index; 0 means all requests of a channel without keys.
    Key(usize),
    /// The model, with the client's name.
    Model(String),
}

/// A node's decision about a cooldown: the cooldown that is in effect, or `None` if it was lifted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) subject: Subject,
    pub(super) cooldown: Option<(Cooldown, Evidence)>,
}

/// A cooldown, and the users that it applies to.
struct Blocked {
    cooldown: Cooldown,
    evidence: Evidence,
    /// When it was set last.
    since: Instant,
    /// Whether this node set it last, and not another node.
    is_own: bool,
}

/// The cooldowns of a channel.
#[derive(Default)]
pub(super) struct CooldownTable {
    by_subject: HashMap<Subject, Blocked>,
}

impl CooldownTable {
    pub(super) fn is_empty(&self) -> bool {
        self.by_subject.is_empty()
    }

    pub(super) fn remove_expired(&mut self, now: Instant) {
        self.by_subject
            .retain(|_, blocked| blocked.cooldown.until > now);
    }

    /// The cooldown of a subject that applies to requests of the user. `None` if there is none, or it applies to another user only. Call
    /// [`CooldownTable::remove_expired`] before.
    pub(super) fn for_user(&self, subject: &Subject, user_id: &str) -> Option<Cooldown> {
        let blocked = self.by_subject.get(subject)?;
        let holds = blocked.evidence.counts_for(user_id);
        holds.then_some(blocked.cooldown)
    }

    /// The subjects in cooldown, sorted, with the end of each.
    pub(super) fn all(&self) -> Vec<(&Subject, Instant)> {
        let all = self.by_subject.iter();
        let mut all: Vec<_> = all
            .map(|(s, blocked)| (s, blocked.cooldown.until))
            .collect();
        all.sort();
        all
    }

    /// Adds a cooldown after a failed request of a user. `None` if there are too many cooldowns.
    pub(super) fn add(
        &mut self,
        subject: Subject,
        cooldown: Cooldown,
        user_id: &str,
    ) -> Option<Decision> {
        let blocked = self.entry(&subject, cooldown, || Evidence::one_user(user_id))?;
        blocked.set(cooldown, true);
        blocked.evidence.add(user_id);
        Some(blocked.decision(subject))
    }

    /// Applies another node's decision: adds or lifts a cooldown. Its evidence is added to this node's.
    pub(super) fn apply(&mut self, decision: Decision) {
        match decision.cooldown {
            None => drop(self.by_subject.remove(&decision.subject)),
            Some((cooldown, evidence)) => {
                if let Some(blocked) = self.entry(&decision.subject, cooldown, || evidence.clone())
                {
                    blocked.set(cooldown, false);
                    blocked.evidence.add_all(&evidence);
                }
            }
        }
    }

    /// Records that a request of the user, which failed with one of the subjects that `is_subject` selects, succeeded on another channel. Returns the
    /// cooldowns that applied only to that user until now.
    pub(super) fn confirm(
        &mut self,
        is_subject: impl Fn(&Subject) -> bool,
        user_id: &str,
    ) -> Vec<Decision> {
        let found = self.by_subject.iter_mut().filter(|(s, _)| is_subject(s));
        let confirmed = found.filter_map(|(subject, blocked)| {
            let before = blocked.evidence.clone();
            blocked.evidence.confirm(user_id);
            (blocked.evidence != before).then(|| blocked.decision(subject.clone()))
        });
        confirmed.collect()
    }

    /// Lifts the cooldowns of `subjects` that were already in effect at `started`, except those that the upstream requested.
    pub(super) fn lift_disproved(
        &mut self,
        subjects: &[Subject],
        started: Instant,
    ) -> Vec<Decision> {
        self.lift(|subject, blocked| {
            let held = blocked.since <= started && !blocked.cooldown.is_requested;
            held && subjects.contains(subject)
        })
    }

    /// Lifts all cooldowns.
    pub(super) fn lift_all(&mut self) -> Vec<Decision> {
        self.lift(|_, _| true)
    }

    /// Removes the cooldowns that other nodes have set, except `kept`.
    pub(super) fn retain_own_and(&mut self, kept: &[Subject]) {
        self.by_subject
            .retain(|subject, blocked| blocked.is_own || kept.contains(subject));
    }

    fn lift(&mut self, is_lifted: impl Fn(&Subject, &Blocked) -> bool) -> Vec<Decision> {
        let lifted = self
            .by_subject
            .extract_if(|subject, blocked| is_lifted(subject, blocked));
        let decision = |(subject, _)| Decision {
            subject,
            cooldown: None,
        };
        lifted.map(decision).collect()
    }

    /// The entry of the subject; a new one with the cooldown if there is none. `None` if there are too many.
    fn entry(
        &mut self,
        subject: &Subject,
        cooldown: Cooldown,
        evidence: impl Fn() -> Evidence,
    ) -> Option<&mut Blocked> {
        let now = Instant::now();
        // Cooldowns that have ended are no evidence any more.
        self.remove_expired(now);
        if matches!(subject, Subject::Model(_)) && self.by_subject.len() >= MAX_MODELS {
            return None;
        }
        let new = || Blocked {
            cooldown,
            evidence: evidence(),
            since: now,
            is_own: true,
        };
        Some(self.by_subject.entry(subject.clone()).or_insert_with(new))
    }
}

impl Blocked {
    fn set(&mut self, cooldown: Cooldown, is_own: bool) {
        (self.cooldown, self.since, self.is_own) = (cooldown, Instant::now(), is_own);
    }

    fn decision(&self, subject: Subject) -> Decision {
        Decision {
            subject,
            cooldown: Some((self.cooldown, self.evidence.clone())),
        }
    }
}
