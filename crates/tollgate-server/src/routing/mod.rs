//! Selects the channel that serves a request: lower priorities first, equal priorities by weight; failed channels go into cooldown.

mod borrowed_permits;
mod borrowing;
mod channel;
mod circuit_breaker;
mod cooldown;
mod cooldown_table;
mod failover;
mod health;
mod recent_calls;
mod shared_cooldowns;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, select_all};
use tollgate_chat::provider_options::ProviderOption;
use tollgate_core::TaskKind;
use tollgate_media::ModelName;
use tollgate_upstream::provider::{Provider, Settings};
use tollgate_upstream::{Channel, egress};

pub use channel::{ChannelPermit, ModelBinding, OpenChannel, TriedKey, key_fingerprint};
pub use failover::{Selection, session_hash};
pub use health::{CooldownReport, HealthReport};

use failover::{NeedsPermit, select};
use health::Availability;
use tollgate_config::Fairness;

/// Name and kind of the channel that is used if none is configured.
const BUILT_IN: &str = "sandbox";

/// Every channel of this process.
pub struct Routing {
    channels: Vec<Arc<OpenChannel>>,
    /// Deleted channels whose provider may still have jobs of ours; they receive no new ones.
    deleted: Vec<Arc<OpenChannel>>,
    /// Whether no channel is configured, so that the built-in one is used.
    is_built_in: bool,
}

/// The channels to open.
pub struct ConfiguredChannels<'a> {
    /// Channels that receive requests.
    pub channels: &'a [Channel],
    /// Channels that only keep the jobs that their provider has.
    pub deleted: &'a [Channel],
    /// Whether the built-in channel serves requests if there are no channels.
    pub may_be_built_in: bool,
    /// The routing before a change of some channels. Channels that did not change are kept as they are; of the others the health is kept.
    pub previous: Option<&'a Routing>,
    /// Whether settings of all channels have changed, so that all must be opened again.
    pub reopens_all: bool,
}

/// The kind of request that a channel's provider must support.
#[derive(Clone, Copy)]
enum Needs {
    Task(TaskKind),
    Chat,
}

impl Routing {
    /// Opens the channels of a configuration; if there are none, the sandbox serves every model.
    ///
    /// # Errors
    /// A sentence for the operator if this program has no provider of a channel's kind.
    pub fn open(
        channels: &[Channel],
        settings: &Settings,
        egress: &egress::Client,
        fairness: &Fairness,
    ) -> Result<Self, String> {
        let configured = ConfiguredChannels {
            channels,
            deleted: &[],
            may_be_built_in: true,
            previous: None,
            reopens_all: true,
        };
        Self::reopen(&configured, settings, egress, fairness)
    }

    /// Opens channels that replace earlier ones.
    ///
    /// # Errors
    /// As [`Routing::open`].
    pub fn reopen(
        configured: &ConfiguredChannels<'_>,
        settings: &Settings,
        egress: &egress::Client,
        fairness: &Fairness,
    ) -> Result<Self, String> {
        let built_in = [Channel {
            name: BUILT_IN.to_owned(),
            kind: BUILT_IN.to_owned(),
            allow: ProviderOption::all().collect(),
            ..Channel::default()
        }];
        let is_built_in = configured.channels.is_empty() && configured.may_be_built_in;
        let open = |channel: &Channel| {
            let previous = configured.previous;
            let previous = previous.and_then(|routing| routing.known(&channel.name));
            match previous {
                Some(open) if !configured.reopens_all && *open.channel == *channel => {
                    Ok(Arc::clone(open))
                }
                _ => OpenChannel::open(channel, settings, egress, fairness, previous),
            }
        };
        let channels = if is_built_in {
            &built_in
        } else {
            configured.channels
        };
        Ok(Self {
            channels: channels.iter().map(open).collect::<Result<_, _>>()?,
            deleted: configured
                .deleted
                .iter()
                .map(open)
                .collect::<Result<_, _>>()?,
            is_built_in,
        })
    }

    /// Every channel.
    pub fn channels(&self) -> &[Arc<OpenChannel>] {
        &self.channels
    }

    /// Whether the only channel is the built-in one, because none is configured.
    pub fn is_built_in(&self) -> bool {
        self.is_built_in
    }

    /// The channel of that name. `None` if it is deleted or was never configured.
    pub fn by_name(&self, name: &str) -> Option<&Arc<OpenChannel>> {
        self.channels.iter().find(|open| open.channel.name == name)
    }

    /// The channel with that name, also if it is deleted.
    fn known(&self, name: &str) -> Option<&Arc<OpenChannel>> {
        let mut all = self.channels.iter().chain(&self.deleted);
        all.find(|open| open.channel.name == name)
    }

    /// Adjusts the channels' permits in Redis to what is needed; to be called often.
    pub async fn adjust_permits(&self) {
        join_all(self.channels.iter().map(|open| open.adjust_permits())).await;
    }

    /// Returns the channels' permits to the other nodes.
    pub async fn return_permits(&self) {
        join_all(self.channels.iter().map(|open| open.return_permits())).await;
    }

    /// Whether any channel could take a call now.
    pub fn has_capacity(&self) -> bool {
        self.channels.iter().any(|open| open.has_capacity())
    }

    /// Whether a channel that runs tasks of that kind with `model` could take a call now.
    pub fn has_capacity_for_task(&self, kind: TaskKind, model: &str) -> bool {
        let mut serving = self.serving(model, Needs::Task(kind));
        serving.any(|open| open.has_capacity())
    }

    /// The name that channels use for a model: its own name if some channel lists it, else its first one.
    pub fn name_of<'a>(&self, model: ModelName<'a>) -> &'a str {
        let is_listed = |open: &Arc<OpenChannel>| {
            let mut models = open.channel.models.iter();
            models.any(|entry| entry.name == model.own)
        };
        if model.own == model.first || self.channels.iter().any(is_listed) {
            model.own
        } else {
            model.first
        }
    }

    /// Whether every channel that serves chats with `model` is paused by an operator; true if there is none.
    pub fn is_paused_for_chat(&self, model: &str) -> bool {
        self.serving(model, Needs::Chat)
            .all(|open| open.is_paused())
    }

    /// Whether any channel runs tasks of that kind with `model`.
    pub fn serves_tasks(&self, kind: TaskKind, model: &str) -> bool {
        self.serving(model, Needs::Task(kind)).next().is_some()
    }

    /// Whether any channel serves chats with `model`.
    pub fn serves_chat(&self, model: &str) -> bool {
        self.serving(model, Needs::Chat).next().is_some()
    }

    /// The names of the channels that run tasks of that kind with `model`.
    pub fn names_of_task_channels(&self, kind: TaskKind, model: &str) -> Vec<String> {
        let serving = self.serving(model, Needs::Task(kind));
        serving.map(|open| open.channel.name.clone()).collect()
    }

    /// The names of the channels that serve chats with `model`.
    pub fn names_of_chat_channels(&self, model: &str) -> Vec<String> {
        let serving = self.serving(model, Needs::Chat);
        serving.map(|open| open.channel.name.clone()).collect()
    }

    /// A channel of `model` whose provider moderates prompts. `None` if there is none.
    pub fn moderator(&self, kind: TaskKind, model: &str) -> Option<Arc<OpenChannel>> {
        self.serving(model, Needs::Task(kind))
            .find(|c| c.provider.moderation.is_some() && !c.is_paused())
            .cloned()
    }

    /// Selects a channel that runs tasks of that kind with `model`; the channels named in `tried` only if no other is left. Before a channel that is
    /// full on this node is passed over, a permit is requested from other nodes: at most one call to Redis.
    pub async fn select_for_task(
        &self,
        kind: TaskKind,
        model: &str,
        tried: &[String],
        user_id: &str,
    ) -> Selection {
        let select = |may_borrow| self.select_task(kind, model, tried, user_id, may_borrow);
        select_or_borrow(select).await
    }

    fn select_task(
        &self,
        kind: TaskKind,
        model: &str,
        tried: &[String],
        user_id: &str,
        may_borrow: bool,
    ) -> Result<Selection, NeedsPermit> {
        let serving: Vec<&Arc<OpenChannel>> = self.serving(model, Needs::Task(kind)).collect();
        if serving.is_empty() {
            return Ok(Selection::None);
        }
        let untried: Vec<_> = serving
            .iter()
            .copied()
            .filter(|c| !tried.contains(&c.channel.name))
            .collect();
        let candidates = if untried.is_empty() {
            serving.clone()
        } else {
            untried
        };
        match select(candidates, model, &[], None, user_id, may_borrow) {
            Ok(Selection::None | Selection::CoolingDown(_)) => {
                select(serving, model, &[], None, user_id, may_borrow)
            }
            selection => selection,
        }
    }

    /// A permit for work that a provider already has: on the channel with that name, with the key of that fingerprint, or the channel's first key if
    /// that key is not configured any more. It ignores the channel's `max_concurrency` and a pause. `None` if the channel does not exist any more.
    pub fn acquire_for_running_work(
        &self,
        channel: &str,
        key_fingerprint: Option<&str>,
        user_id: &str,
    ) -> Option<ChannelPermit> {
        let open = self.known(channel)?;
        Some(open.acquire_for_running_work(key_fingerprint, user_id))
    }

    /// Replaces a permit for work that a provider already has by one on the current channel of the same name. Keeps the permit if the channel has not
    /// changed, because no other one may be free, or if the channel does not exist any more.
    pub fn renew_permit(&self, permit: &mut ChannelPermit, user_id: &str) {
        let Some(open) = self.known(&permit.open.channel.name) else {
            return;
        };
        if !Arc::ptr_eq(open, &permit.open) {
            let fingerprint = permit.key_fingerprint();
            *permit = open.acquire_for_running_work(fingerprint.as_deref(), user_id);
        }
    }

    /// Whether a channel runs a user's tasks of that kind with `model`, is not paused, and is in no cooldown that its upstream requested.
    pub fn is_ready_for_task(&self, kind: TaskKind, model: &str, user_id: &str) -> bool {
        self.is_ready(model, Needs::Task(kind), user_id)
    }

    /// Whether a channel serves a user's chats with `model`, is not paused, and is in no cooldown that its upstream requested.
    pub fn is_ready_for_chat(&self, model: &str, user_id: &str) -> bool {
        self.is_ready(model, Needs::Chat, user_id)
    }

    fn is_ready(&self, model: &str, needs: Needs, user_id: &str) -> bool {
        let mut serving = self.serving(model, needs);
        serving.any(|open| match open.availability(model, &[], None, user_id) {
            Availability::Ready(_) => true,
            Availability::CoolingDown { cooldown, .. } => !cooldown.is_requested,
            Availability::AllKeysTried => false,
        })
    }

    /// Waits for the first permit on any channel that is ready but at its `max_concurrency`. Free permits go to the user with the fewest. `None` if
    /// there is no such channel for which fewer than `max_waiting` tasks of the user already wait, or if the channel is not ready after the wait.
    pub async fn wait_for_task_channel<'a>(
        &'a self,
        kind: TaskKind,
        model: &'a str,
        user_id: &'a str,
        max_waiting: usize,
    ) -> Option<ChannelPermit> {
        let wait = |open: &'a Arc<OpenChannel>| {
            let permits = open.permits.as_ref()?;
            let availability = open.availability(model, &[], None, user_id);
            let may_wait = matches!(availability, Availability::Ready(_))
                && permits.waiting_of(user_id) < max_waiting;
            may_wait.then(|| Box::pin(async move { (open, permits.acquire(user_id).await) }))
        };
        let serving = self.serving(model, Needs::Task(kind));
        let waits: Vec<_> = serving.filter_map(wait).collect();
        if waits.is_empty() {
            return None;
        }
        // A permit that another channel grants at the same moment is returned when its future is dropped.
        let ((open, permit), ..) = select_all(waits).await;
        match open.availability(model, &[], None, user_id) {
            Availability::Ready(key) => Some(open.permit(key, Some(permit))),
            _ => None,
        }
    }

    /// Selects a channel and key for a chat with `model`, leaving out those in `tried`. Requests of one `session` use the same channel and key while
    /// it is healthy, for the upstream's prompt cache. A permit may be requested from other nodes, as for a task.
    pub async fn select_for_chat(
        &self,
        model: &str,
        tried: &[TriedKey],
        session: Option<u64>,
        user_id: &str,
    ) -> Selection {
        let select = |may_borrow| {
            let candidates = self.serving(model, Needs::Chat).collect();
            select(candidates, model, tried, session, user_id, may_borrow)
        };
        select_or_borrow(select).await
    }

    /// Whether any channel of a chat model stores conversations as threads.
    pub fn stores_threads(&self, model: &str) -> bool {
        self.serving(model, Needs::Chat).any(|open| {
            let chat = open.provider.chat.as_ref();
            let upstream = open.channel.upstream_model(model);
            chat.zip(upstream)
                .is_some_and(|(chat, upstream)| chat.stores_threads(upstream))
        })
    }

    /// Selects the channel of that name with the key of that fingerprint, whether or not they are in cooldown. [`Selection::None`] if it does not
    /// serve chats with `model`, does not have the key, or was tried; [`Selection::CoolingDown`] with zero if an operator has paused it.
    pub async fn select_by_name(
        &self,
        channel: &str,
        key_fingerprint: Option<&str>,
        model: &str,
        tried: &[TriedKey],
        user_id: &str,
    ) -> Selection {
        let mut serving = self.serving(model, Needs::Chat);
        let Some(open) = serving.find(|open| open.channel.name == channel) else {
            return Selection::None;
        };
        let Some(key) = open.find_key(key_fingerprint) else {
            return Selection::None;
        };
        if open.is_paused() {
            return Selection::CoolingDown(Duration::ZERO);
        }
        let mut permit = open.acquire(key, user_id);
        if permit.is_none() && open.may_borrow() && open.borrow().await {
            permit = open.acquire(key, user_id);
        }
        match permit {
            None => Selection::AllBusy,
            Some(permit) if tried.contains(&permit.tried_key()) => Selection::None,
            Some(permit) => Selection::Permit(permit.despite_cooldown(model, user_id)),
        }
    }

    /// Records that a user's request for `model` succeeded after it had failed with the keys in `tried`: these failures then count for all users.
    pub fn confirm_failures(&self, model: &str, tried: &[TriedKey], user_id: &str) {
        for TriedKey { channel, key } in tried {
            if let Some(open) = self.by_name(channel) {
                open.confirm_failure(model, Some(*key), user_id);
            }
        }
    }

    /// Records that a provider accepted a user's task for `model` after it had failed on these channels, as in [`Self::confirm_failures`].
    pub fn confirm_failed_channels(&self, model: &str, failed: &[String], user_id: &str) {
        for open in failed.iter().filter_map(|channel| self.by_name(channel)) {
            open.confirm_failure(model, None, user_id);
        }
    }

    fn serving<'a>(
        &'a self,
        model: &'a str,
        needs: Needs,
    ) -> impl Iterator<Item = &'a Arc<OpenChannel>> {
        let offers = move |provider: &Provider| match needs {
            Needs::Task(TaskKind::Image) => provider.image.is_some(),
            Needs::Task(TaskKind::Video) => provider.video.is_some(),
            Needs::Task(TaskKind::Speech) => provider.speech.is_some(),
            Needs::Chat => provider.chat.is_some(),
        };
        self.channels
            .iter()
            .filter(move |c| offers(&c.provider))
            .filter(move |c| c.channel.upstream_model(model).is_some())
    }
}

/// Selects a channel; if the next one is full on this node, requests a permit from the other nodes, once, and selects again.
async fn select_or_borrow(select: impl Fn(bool) -> Result<Selection, NeedsPermit>) -> Selection {
    match select(true) {
        Ok(selection) => selection,
        Err(open) => {
            // Boxed: this is rare, and would make every request's future larger.
            Box::pin(open.borrow()).await;
            select(false).unwrap_or(Selection::AllBusy)
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::health::ChannelFailure;
    use super::*;

    /// Channels that run one task at a time.
    fn routing_of(names: &[&str]) -> Routing {
        let channels = names.iter().map(|name| Channel {
            name: (*name).to_owned(),
            kind: "openai".to_owned(),
            max_concurrency: Some(1),
            ..Channel::default()
        });
        let channels: Vec<Channel> = channels.collect();
        let egress = egress::Client::new(egress::ClientOptions::default());
        let (settings, fairness) = (Settings::default(), Fairness::default());
        Routing::open(&channels, &settings, &egress, &fairness).unwrap()
    }

    fn in_flight(routing: &Routing) -> Vec<Option<usize>> {
        let channels = routing.channels().iter();
        channels.map(|open| open.calls_in_flight()).collect()
    }

    #[tokio::test]
    async fn running_work_keeps_its_permit_until_its_channel_changes() {
        let (routing, reloaded) = (routing_of(&["a"]), routing_of(&["a"]));
        let mut permit = routing.acquire_for_running_work("a", None, "ann").unwrap();
        for same in [&routing, &routing_of(&["b"])] {
            same.renew_permit(&mut permit, "ann");
            assert_eq!(in_flight(&routing), [Some(1)]);
        }
        reloaded.renew_permit(&mut permit, "ann");
        assert_eq!(in_flight(&routing), [Some(0)]);
        assert_eq!(in_flight(&reloaded), [Some(1)]);
    }

    #[tokio::test]
    async fn a_task_takes_the_first_channel_that_becomes_free() {
        let routing = routing_of(&["a", "b"]);
        let run = |name| routing.acquire_for_running_work(name, None, "ann");
        let wait = || {
            let permit = routing.wait_for_task_channel(TaskKind::Image, "m", "bob", 1);
            Box::pin(permit)
        };
        let (first, second) = (run("a"), run("b"));
        let mut waits = wait();
        assert!((&mut waits).now_or_never().is_none());
        assert!(wait().now_or_never().is_some_and(|permit| permit.is_none()));
        drop(second);
        let permit = waits.now_or_never().flatten().expect("b is free");
        assert_eq!(permit.open.channel.name, "b");
        // Both become free at the same moment: only one permit is used.
        let mut waits = wait();
        assert!((&mut waits).now_or_never().is_none());
        drop((first, permit));
        assert_eq!(in_flight(&routing), [Some(1), Some(1)], "both are granted");
        let permit = waits.now_or_never().flatten().expect("both are free");
        assert_eq!(in_flight(&routing), [Some(1), Some(0)]);
        drop(permit);
        assert_eq!(in_flight(&routing), [Some(0), Some(0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn if_all_are_in_cooldown_the_one_that_ends_first_is_tried() {
        let routing = routing_of(&["a", "b"]);
        let fail = |index: usize, failure| {
            let open = &routing.channels()[index];
            open.health.record_failure("m", None, "ann", failure);
        };
        let selected = async || match routing.select_for_chat("m", &[], None, "ann").await {
            Selection::Permit(permit) => Some(permit.open.channel.name.clone()),
            _ => None,
        };
        fail(0, ChannelFailure::KeyRejected);
        fail(1, ChannelFailure::KeyRejected);
        assert_eq!(selected().await.as_deref(), Some("a"), "both end together");
        tokio::time::advance(Duration::from_secs(1)).await;
        fail(0, ChannelFailure::KeyRejected);
        assert_eq!(selected().await.as_deref(), Some("b"));
        // A pause that the upstream requested comes last.
        fail(
            1,
            ChannelFailure::RateLimited(Some(Duration::from_secs(600))),
        );
        assert_eq!(selected().await.as_deref(), Some("a"));
        fail(
            0,
            ChannelFailure::RateLimited(Some(Duration::from_secs(900))),
        );
        assert_eq!(selected().await, None, "no upstream is called in its pause");
    }
}
