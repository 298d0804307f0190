//! Cooldowns that nodes share (docs/redis.md): keys are identified by their fingerprint. Circuit breakers are separate on each node.

use std::sync::Arc;

use tollgate_core::Secret;

use super::channel::{OpenChannel, key_fingerprint};
use super::cooldown::{Cooldown, Evidence};
use super::cooldown_table::{Decision, Subject};
use crate::redis::{CooldownName, CooldownSubject, NodeMessage, NodeMessages, SharedCooldown};

impl OpenChannel {
    /// From now on sends this node's cooldowns to the other nodes.
    pub fn share_cooldowns(&self, messages: &Arc<NodeMessages>) {
        // It is already set if a reload kept the channel.
        let _ = self.messages.set(Arc::clone(messages));
    }

    /// Lifts the cooldowns of the channel's keys and models on all nodes; each node's circuit stays as it is.
    pub fn lift_cooldowns(&self) {
        self.publish(self.health.lift_all());
        if let Some(messages) = self.messages.get() {
            messages.send(NodeMessage::WakeChannel(self.channel.name.clone()));
        }
    }

    /// Lifts the cooldowns on this node, because another node has requested it.
    pub fn lift_cooldowns_here(&self) {
        self.health.lift_all();
    }

    pub(super) fn publish(&self, decisions: impl IntoIterator<Item = Decision>) {
        let Some(messages) = self.messages.get() else {
            return;
        };
        for Decision { subject, cooldown } in decisions {
            let Some(name) = self.cooldown_name(subject) else {
                continue;
            };
            let cooldown = cooldown.map(|(cooldown, evidence)| SharedCooldown {
                until: cooldown.until,
                is_requested: cooldown.is_requested,
                only_user: evidence.into_only_user(),
            });
            messages.send(NodeMessage::Cooldown(name, cooldown));
        }
    }

    fn cooldown_name(&self, subject: Subject) -> Option<CooldownName> {
        Some(CooldownName {
            channel: self.channel.name.clone(),
            address: self.address_fingerprint(),
            subject: match subject {
                Subject::Model(model) => CooldownSubject::Model(model),
                Subject::Key(0) if self.channel.api_keys.is_empty() => CooldownSubject::Key(None),
                Subject::Key(index) => {
                    let key = self.channel.api_keys.get(index)?;
                    CooldownSubject::Key(Some(key_fingerprint(key)))
                }
            },
        })
    }

    /// The key or model of a name on this node. `None` if the name has another address, or a key that the channel does not have.
    fn subject(&self, name: &CooldownName) -> Option<Subject> {
        if name.address != self.address_fingerprint() {
            return None;
        }
        match &name.subject {
            CooldownSubject::Model(model) => Some(Subject::Model(model.clone())),
            CooldownSubject::Key(fingerprint) => {
                let key = self.find_key(fingerprint.as_deref())?;
                Some(Subject::Key(key.unwrap_or(0)))
            }
        }
    }

    fn address_fingerprint(&self) -> String {
        key_fingerprint(&Secret::new(format!("{:?}", self.channel.base_url)))
    }

    /// Applies a cooldown of this channel that was set or lifted. A message that this node sent itself (`is_own`) is ignored, unless the cooldown
    /// applies to all users: evidence of other nodes may have extended it to them.
    pub fn apply_cooldown(
        &self,
        name: &CooldownName,
        cooldown: Option<SharedCooldown>,
        is_own: bool,
    ) {
        let is_for_one = |c: &SharedCooldown| c.only_user.is_some();
        if is_own && cooldown.as_ref().is_none_or(is_for_one) {
            return;
        }
        if let Some(subject) = self.subject(name) {
            self.health.apply(Decision {
                subject,
                cooldown: cooldown.map(from_shared),
            });
        }
    }

    /// Applies the cooldowns in `all` that belong to this channel. If a cooldown that another node has set is not among them, it was lifted or has
    /// been lost, and is removed.
    pub fn replace_cooldowns(&self, all: &[(CooldownName, SharedCooldown)]) {
        let own = all.iter().filter_map(|(name, cooldown)| {
            let is_own = name.channel == self.channel.name;
            Some((is_own.then(|| self.subject(name))??, cooldown))
        });
        let own: Vec<(Subject, &SharedCooldown)> = own.collect();
        let kept: Vec<Subject> = own.iter().map(|(subject, _)| subject.clone()).collect();
        self.health.retain_own_and(&kept);
        for (subject, cooldown) in own {
            self.health.apply(Decision {
                subject,
                cooldown: Some(from_shared(cooldown.clone())),
            });
        }
    }
}

fn from_shared(shared: SharedCooldown) -> (Cooldown, Evidence) {
    let cooldown = Cooldown {
        until: shared.until,
        is_requested: shared.is_requested,
    };
    let evidence = match shared.only_user {
        Some(user) => Evidence::one_user(&user),
        None => Evidence::Confirmed,
    };
    (cooldown, evidence)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;
    use tollgate_upstream::Channel;
    use tollgate_upstream::egress;
    use tollgate_upstream::provider::Settings;

    use super::*;
    use crate::routing::{Routing, Selection};
    use tollgate_config::Fairness;

    fn routing_of(keys: &[&str]) -> Routing {
        let channel = Channel {
            name: "a".to_owned(),
            kind: "openai".to_owned(),
            api_keys: keys.iter().map(|key| Secret::new(*key)).collect(),
            ..Channel::default()
        };
        let egress = egress::Client::new(egress::ClientOptions::default());
        let (settings, fairness) = (Settings::default(), Fairness::default());
        Routing::open(&[channel], &settings, &egress, &fairness).unwrap()
    }

    fn cooldown(only_user: Option<&str>) -> SharedCooldown {
        SharedCooldown {
            until: Instant::now() + Duration::from_secs(60),
            is_requested: true,
            only_user: only_user.map(str::to_owned),
        }
    }

    /// The key with which a user's chat would be sent.
    async fn key_for(routing: &Routing, user: &str) -> Option<String> {
        let selected = routing.select_for_chat("gpt-5", &[], Some(0), user);
        match selected.await {
            Selection::Permit(permit) => permit.key().map(|key| key.expose().to_owned()),
            _ => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_cooldown_of_another_node_holds_for_whom_its_evidence_counts() {
        let routing = routing_of(&["one", "two"]);
        let here = &routing.channels()[0];
        // The other node has the keys in another order.
        let there = routing_of(&["two", "one"]);
        let name = |index| there.channels()[0].cooldown_name(Subject::Key(index));
        let (two, one) = (name(0).unwrap(), name(1).unwrap());
        assert_eq!(key_for(&routing, "ada").await.as_deref(), Some("one"));
        here.apply_cooldown(&one, Some(cooldown(Some("ada"))), false);
        assert_eq!(key_for(&routing, "ada").await.as_deref(), Some("two"));
        assert_eq!(
            key_for(&routing, "bob").await.as_deref(),
            Some("one"),
            "no evidence"
        );
        here.apply_cooldown(&one, Some(cooldown(Some("bob"))), false);
        assert_eq!(key_for(&routing, "eve").await.as_deref(), Some("two"));
        here.apply_cooldown(&two, Some(cooldown(None)), false);
        assert_eq!(key_for(&routing, "eve").await, None);
        // A node ignores a message that its own cooldown was lifted.
        here.apply_cooldown(&two, None, true);
        assert_eq!(key_for(&routing, "eve").await, None);
        here.apply_cooldown(&two, None, false);
        assert_eq!(key_for(&routing, "eve").await.as_deref(), Some("two"));
        // A channel with that name at another address is another channel.
        let elsewhere = CooldownName {
            address: "other".to_owned(),
            ..two
        };
        here.apply_cooldown(&elsewhere, Some(cooldown(None)), false);
        assert_eq!(key_for(&routing, "eve").await.as_deref(), Some("two"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_redis_does_not_have_any_more_ends_unless_it_is_of_this_node() {
        let routing = routing_of(&["one", "two"]);
        let open = &routing.channels()[0];
        let name = |index| open.cooldown_name(Subject::Key(index)).unwrap();
        open.apply_cooldown(&name(0), Some(cooldown(None)), false);
        open.replace_cooldowns(&[(name(0), cooldown(None))]);
        assert_eq!(key_for(&routing, "eve").await.as_deref(), Some("two"));
        open.replace_cooldowns(&[]);
        assert_eq!(key_for(&routing, "eve").await.as_deref(), Some("one"));
        let wait = super::super::health::ChannelFailure::RateLimited(Some(Duration::from_secs(9)));
        open.health.record_failure("gpt-5", Some(0), "eve", wait);
        open.replace_cooldowns(&[]);
        assert_eq!(key_for(&routing, "eve").await.as_deref(), Some("two"));
        open.lift_cooldowns();
        assert_eq!(key_for(&routing, "eve").await.as_deref(), Some("one"));
    }
}
