//! An open channel: its provider, permits, health, and how it calls each chat model.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use foldhash::fast::RandomState;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use tollgate_chat::Format;
use tollgate_config::Fairness;
use tollgate_config::providers;
use tollgate_core::{Secret, id};
use tollgate_upstream::chat::{ChatModel, ChatProvider};
use tollgate_upstream::provider::{Provider, Settings};
use tollgate_upstream::{Channel, ChannelEffect, ProviderError, egress};

use super::borrowed_permits::Borrowing;
use super::health::{Availability, ChannelFailure, ChannelHealth, HealthReport};
use crate::fair_permits::{FairPermit, FairPermits, Reserve};
use crate::redis::NodeMessages;

/// An open channel, to which calls can be made.
pub struct OpenChannel {
    /// The channel's configuration.
    pub channel: Arc<Channel>,
    /// What its provider offers: chat, images, videos, speech, moderation.
    pub provider: Provider,
    /// Permits for calls at the same time; `None` if `max_concurrency` is not set.
    pub(super) permits: Option<FairPermits>,
    pub(super) health: Arc<ChannelHealth>,
    /// Sends cooldowns to other nodes; not set without Redis.
    pub(super) messages: OnceLock<Arc<NodeMessages>>,
    /// This node's permits of `max_concurrency` in Redis.
    pub(super) borrowing: Borrowing,
    /// The chat models that the channel lists, by the clients' names.
    model_bindings: HashMap<String, Arc<ModelBinding>, RandomState>,
}

/// How a channel's provider is called for one chat model: computed when the channel opens, not for every request.
pub struct ModelBinding {
    /// The provider's name of the model.
    pub upstream_name: String,
    /// The capabilities of the model.
    pub model: ChatModel,
    /// The formats in which the provider serves the model, the preferred one first.
    pub formats: Vec<&'static dyn Format>,
    /// Whether its server stores conversations as threads (messages format).
    pub stores_threads: bool,
}

impl ModelBinding {
    fn new(provider: &dyn ChatProvider, upstream_name: &str) -> Arc<Self> {
        Arc::new(Self {
            upstream_name: upstream_name.to_owned(),
            model: provider.model(upstream_name),
            formats: provider.formats_for(upstream_name).to_vec(),
            stores_threads: provider.stores_threads(upstream_name),
        })
    }
}

/// Permission to make one call on a channel with one of its keys. Dropping it frees the channel's permit.
pub struct ChannelPermit {
    /// The channel that is called.
    pub open: Arc<OpenChannel>,
    /// The key's index; `None` if the channel has no keys.
    key: Option<usize>,
    since: Instant,
    /// The model, if the call is made although the key or the model is in cooldown.
    despite_cooldown: Option<Box<str>>,
    _permit: Option<FairPermit>,
}

/// A channel and key that a request has tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriedKey {
    pub(super) channel: String,
    /// The key's index; 0 for a channel without keys.
    pub(super) key: usize,
}

impl OpenChannel {
    /// Opens a configured channel. `previous` is the channel of the same name before a reload: its health is kept if address and keys are the same
    /// (the health refers to keys by their index).
    ///
    /// # Errors
    /// A sentence for the operator if this program has no provider of the channel's kind.
    pub(super) fn open(
        channel: &Channel,
        settings: &Settings,
        egress: &egress::Client,
        fairness: &Fairness,
        previous: Option<&Arc<Self>>,
    ) -> Result<Arc<Self>, String> {
        let entry = providers::provider_of_kind(&channel.kind).ok_or_else(|| {
            format!(
                "channel {:?} has kind {:?}, which this version does not have: use one of {}",
                channel.name,
                channel.kind,
                providers::kind_names()
            )
        })?;
        let previous = previous.filter(|previous| {
            let previous = &previous.channel;
            previous.base_url == channel.base_url && previous.api_keys == channel.api_keys
        });
        let channel = Arc::new(channel.clone());
        let provider = (entry.open)(&channel, settings, egress);
        let model_bindings = provider.chat.iter().flat_map(|chat| {
            let models = channel.models.iter();
            models.map(|model| {
                let binding = ModelBinding::new(&**chat, &model.upstream);
                (model.name.clone(), binding)
            })
        });
        Ok(Arc::new(Self {
            model_bindings: model_bindings.collect(),
            provider,
            permits: channel.max_concurrency.map(|max| {
                let reserve = fairness.reserve(max as usize);
                FairPermits::new(max as usize, Reserve::WhenShared(reserve))
            }),
            health: previous
                .map(|open| Arc::clone(&open.health))
                .unwrap_or_default(),
            messages: OnceLock::new(),
            borrowing: Borrowing::default(),
            channel,
        }))
    }

    /// The channel's health as text, for operators.
    pub fn health(&self) -> String {
        self.health.describe()
    }

    /// Details of the channel's health, for operators.
    pub fn health_report(&self) -> HealthReport {
        self.health.report()
    }

    /// The number of running calls. `None` if the channel has no `max_concurrency`: then calls are not counted.
    pub fn calls_in_flight(&self) -> Option<usize> {
        Some(self.permits.as_ref()?.in_use())
    }

    /// Pauses the channel, so that it receives no new calls, or ends its pause.
    pub fn set_paused(&self, is_paused: bool) {
        self.health.set_paused(is_paused);
    }

    /// Whether the channel is paused.
    pub fn is_paused(&self) -> bool {
        self.health.is_paused()
    }

    /// Whether a call could get a permit now, on this node or from another one.
    pub(super) fn has_capacity(&self) -> bool {
        let permits = self.permits.as_ref();
        permits.is_none_or(|permits| permits.free() > 0 || self.may_borrow())
    }

    pub(super) fn availability(
        &self,
        model: &str,
        tried: &[TriedKey],
        session: Option<u64>,
        user_id: &str,
    ) -> Availability {
        let tried = tried.iter().filter(|t| t.channel == self.channel.name);
        let tried: Vec<usize> = tried.map(|t| t.key).collect();
        self.health
            .availability(model, self.channel.api_keys.len(), &tried, session, user_id)
    }

    /// Takes a permit for a call of a user with that key. `None` if the channel is at its `max_concurrency`, or its last permits are reserved for
    /// other users.
    pub(super) fn acquire(
        self: &Arc<Self>,
        key: Option<usize>,
        user_id: &str,
    ) -> Option<ChannelPermit> {
        let permit = match &self.permits {
            Some(permits) => Some(permits.try_acquire(user_id)?),
            None => None,
        };
        Some(self.permit(key, permit))
    }

    /// Permission for a call with that key.
    pub(super) fn permit(
        self: &Arc<Self>,
        key: Option<usize>,
        permit: Option<FairPermit>,
    ) -> ChannelPermit {
        let since = Instant::now();
        self.health.begin_probe(since);
        ChannelPermit {
            open: Arc::clone(self),
            key,
            since,
            despite_cooldown: None,
            _permit: permit,
        }
    }

    /// Records that a user's request for `model`, which failed on this channel with the key of that index (if it is known), succeeded on another
    /// channel.
    pub(super) fn confirm_failure(&self, model: &str, key: Option<usize>, user_id: &str) {
        self.publish(self.health.confirm_failure(model, key, user_id));
    }

    /// The index of the key with that fingerprint; `Some(None)` if there is no fingerprint and the channel has no keys. `None` if the channel does
    /// not have that key.
    pub(super) fn find_key(&self, fingerprint: Option<&str>) -> Option<Option<usize>> {
        let Some(fingerprint) = fingerprint else {
            return self.channel.api_keys.is_empty().then_some(None);
        };
        let mut keys = self.channel.api_keys.iter();
        let found = keys.position(|key| key_fingerprint(key) == fingerprint);
        found.map(Some)
    }

    /// A permit for work that the provider already has: with the key of that fingerprint, or with the channel's first key if that key is not
    /// configured any more. If all permits are in use, the work is not counted in `max_concurrency`, because it runs anyway.
    pub(super) fn acquire_for_running_work(
        self: &Arc<Self>,
        fingerprint: Option<&str>,
        user_id: &str,
    ) -> ChannelPermit {
        let keys = &self.channel.api_keys;
        let same = keys.iter().position(|key| {
            fingerprint.is_some_and(|fingerprint| fingerprint == key_fingerprint(key))
        });
        let permits = self.permits.as_ref();
        ChannelPermit {
            open: Arc::clone(self),
            key: same.or((!keys.is_empty()).then_some(0)),
            since: Instant::now(),
            despite_cooldown: None,
            _permit: permits.and_then(|permits| permits.try_acquire_any(user_id)),
        }
    }
}

impl ChannelPermit {
    /// The key to call with. `None` if the channel has no keys.
    pub fn key(&self) -> Option<&Secret> {
        self.open.channel.api_keys.get(self.key?)
    }

    /// The key's fingerprint, with which the key can be found again after a restart.
    pub fn key_fingerprint(&self) -> Option<String> {
        self.key().map(key_fingerprint)
    }

    /// The chat provider, and how it is called for `model`. `None` if the channel does not serve the model.
    pub fn model_binding(
        &self,
        model: &str,
    ) -> Option<(&Arc<dyn ChatProvider>, Arc<ModelBinding>)> {
        let (open, chat) = (&self.open, self.open.provider.chat.as_ref()?);
        let listed = open.model_bindings.get(model).map(Arc::clone);
        // A channel that lists no models serves every model.
        let unlisted = || {
            let upstream_name = open.channel.upstream_model(model)?;
            Some(ModelBinding::new(&**chat, upstream_name))
        };
        Some((chat, listed.or_else(unlisted)?))
    }

    /// This channel and key, which the next selection leaves out.
    pub fn tried_key(&self) -> TriedKey {
        TriedKey {
            channel: self.open.channel.name.clone(),
            key: self.key.unwrap_or(0),
        }
    }

    /// Marks the call of a user for `model` as made although key or model may be in cooldown: if it succeeds, the cooldown is lifted.
    pub(super) fn despite_cooldown(mut self, model: &str, user_id: &str) -> Self {
        let has_cooldown = self
            .open
            .health
            .has_unrequested_cooldown(model, self.key, user_id);
        self.despite_cooldown = has_cooldown.then(|| model.into());
        self
    }

    /// Records that the upstream responded. A response that rejects the client's request counts too.
    pub fn record_success(&self) {
        let (open, health) = (&self.open, &self.open.health);
        health.count_call(self.since.elapsed(), false);
        health.record_success();
        if let Some(model) = &self.despite_cooldown {
            open.publish(health.lift_disproved(model, self.key, self.since));
        }
    }

    /// Records what the error of a user's attempt shows about the channel, the key or `model`.
    pub fn record_error(&self, model: &str, user_id: &str, error: &ProviderError) {
        let failure = match error.kind.policy().effect {
            ChannelEffect::Works => return self.record_success(),
            ChannelEffect::Nothing => return,
            ChannelEffect::Failure => ChannelFailure::Unavailable(self.since),
            ChannelEffect::KeyRateLimited => ChannelFailure::RateLimited(error.retry_after),
            ChannelEffect::KeyRejected => ChannelFailure::KeyRejected,
            ChannelEffect::KeyQuotaExhausted => ChannelFailure::QuotaExhausted,
            ChannelEffect::ModelNotFound => ChannelFailure::ModelNotFound,
        };
        let health = &self.open.health;
        health.count_call(self.since.elapsed(), true);
        let cooldown = health.record_failure(model, self.key, user_id, failure);
        self.open.publish(cooldown);
    }
}

/// A key's fingerprint: the first 8 bytes of its SHA-256, in hexadecimal. The key cannot be derived from it.
pub fn key_fingerprint(key: &Secret) -> String {
    let hash = Sha256::digest(key.expose().as_bytes());
    id::hex(&hash[..8])
}
