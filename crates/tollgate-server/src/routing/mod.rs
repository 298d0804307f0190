//! Which channel serves a model: lower priority first, equal priorities share by weight, what is unwell rests.

mod health;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use rand::RngExt as _;
use sha2::{Digest as _, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tollgate_chat::Format;
use tollgate_core::{Secret, TaskKind};
use tollgate_upstream::chat::{ChatModel, ChatProvider};
use tollgate_upstream::provider::{Provider, Settings};
use tollgate_upstream::{Channel, PROVIDERS, egress};

pub use health::Trouble;
use health::{Health, Standing};

/// Name and kind of the channel that stands in where none is configured.
const BUILT_IN: &str = "sandbox";

/// A channel, ready to be called.
pub struct OpenChannel {
    /// As configured.
    pub channel: Arc<Channel>,
    /// What its provider can do.
    pub provider: Provider,
    slots: Option<Arc<Semaphore>>,
    health: Arc<Health>,
    /// The models that the channel names, by the clients' names.
    chats: HashMap<String, Arc<Spoken>, RandomState>,
}

/// How a channel's provider speaks with one model: looked up once, not for every request.
pub struct Spoken {
    /// The provider's name of the model.
    pub upstream: String,
    /// What it can do.
    pub model: ChatModel,
    /// The formats that the provider has it in, the preferred one first.
    pub formats: Vec<&'static dyn Format>,
}

impl Spoken {
    fn of(provider: &dyn ChatProvider, upstream: &str) -> Arc<Self> {
        Arc::new(Self {
            upstream: upstream.to_owned(),
            model: provider.model(upstream),
            formats: provider.formats_for(upstream).to_vec(),
        })
    }
}

/// Every channel of this process.
pub struct Routing {
    channels: Vec<Arc<OpenChannel>>,
}

/// A channel that has room, and the room taken; given back when dropped.
pub struct Seat {
    /// The channel.
    pub open: Arc<OpenChannel>,
    key: Option<usize>,
    _slot: Option<OwnedSemaphorePermit>,
}

/// A channel and key that a request has tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    channel: String,
    key: usize,
}

/// What became of the search for a channel.
pub enum Choice {
    /// This one.
    Seat(Seat),
    /// Some serve the model and all are at their `max_concurrency`.
    Full,
    /// All that serve the model were asked by their upstreams to wait that long.
    Resting(Duration),
    /// None serves the model, or none that was not tried.
    None,
}

/// What a request needs of a channel.
#[derive(Clone, Copy)]
enum Needs {
    Task(TaskKind),
    Chat,
}

impl Routing {
    /// Opens the configured channels; without any, the sandbox serves every model. Channels that `before` has under the same
    /// name keep their health.
    ///
    /// # Errors
    /// A sentence for the operator where a channel's kind is not in this program.
    pub fn open(
        channels: &[Channel],
        settings: &Settings,
        egress: &egress::Client,
        before: Option<&Self>,
    ) -> Result<Self, String> {
        let built_in = [Channel {
            name: BUILT_IN.to_owned(),
            kind: BUILT_IN.to_owned(),
            ..Channel::default()
        }];
        let channels = if channels.is_empty() {
            &built_in
        } else {
            channels
        };
        let channels = channels
            .iter()
            .map(|channel| open(channel, settings, egress, before))
            .collect::<Result<_, _>>()?;
        Ok(Self { channels })
    }

    /// Every channel.
    pub fn channels(&self) -> &[Arc<OpenChannel>] {
        &self.channels
    }

    /// The channel of that name.
    pub fn by_name(&self, name: &str) -> Option<&Arc<OpenChannel>> {
        self.channels.iter().find(|open| open.channel.name == name)
    }

    /// Whether any channel has a free seat.
    pub fn has_room(&self) -> bool {
        let mut slots = self.channels.iter().map(|c| &c.slots);
        slots.any(|slots| slots.as_ref().is_none_or(|s| s.available_permits() > 0))
    }

    /// Whether any channel makes things of that kind with `model`.
    pub fn serves_tasks(&self, kind: TaskKind, model: &str) -> bool {
        self.fit(model, Needs::Task(kind)).next().is_some()
    }

    /// Whether any channel serves chats with `model`.
    pub fn serves_chat(&self, model: &str) -> bool {
        self.fit(model, Needs::Chat).next().is_some()
    }

    /// A channel of `model` that reviews prompts, if any.
    pub fn reviewer(&self, kind: TaskKind, model: &str) -> Option<Arc<OpenChannel>> {
        self.fit(model, Needs::Task(kind))
            .find(|c| c.provider.review.is_some())
            .cloned()
    }

    /// Takes a seat on a channel that makes things of that kind with `model`, leaving out the channels named in `tried` as
    /// long as another is left.
    pub fn choose_task(&self, kind: TaskKind, model: &str, tried: &[String]) -> Choice {
        let fit: Vec<&Arc<OpenChannel>> = self.fit(model, Needs::Task(kind)).collect();
        if fit.is_empty() {
            return Choice::None;
        }
        let fresh: Vec<_> = fit
            .iter()
            .copied()
            .filter(|c| !tried.contains(&c.channel.name))
            .collect();
        match choose(
            if fresh.is_empty() { fit.clone() } else { fresh },
            model,
            &[],
            None,
        ) {
            Choice::None | Choice::Resting(_) => choose(fit, model, &[], None),
            choice => choice,
        }
    }

    /// The seat of work that its provider has in hand already: on the channel of that name, with the key of that print, or one
    /// that it has now. Its limit is not asked: the work is there.
    pub fn seat_on(&self, channel: &str, key_print: Option<&str>) -> Option<Seat> {
        let open = self.by_name(channel)?;
        let keys = &open.channel.api_keys;
        let same = keys
            .iter()
            .position(|key| key_print.is_some_and(|print| print == self::key_print(key)));
        let slots = open.slots.as_ref();
        Some(Seat {
            open: Arc::clone(open),
            key: same.or((!keys.is_empty()).then_some(0)),
            _slot: slots.and_then(|slots| Arc::clone(slots).try_acquire_owned().ok()),
        })
    }

    /// Takes a seat for a chat with `model` on a channel and key that are not in `tried`. Requests of one `session` keep to one
    /// channel and key, for the upstream's prompt cache, as long as it is well.
    pub fn choose_chat(&self, model: &str, tried: &[Tried], session: Option<u64>) -> Choice {
        choose(
            self.fit(model, Needs::Chat).collect(),
            model,
            tried,
            session,
        )
    }

    fn fit<'a>(
        &'a self,
        model: &'a str,
        needs: Needs,
    ) -> impl Iterator<Item = &'a Arc<OpenChannel>> {
        let can = move |provider: &Provider| match needs {
            Needs::Task(TaskKind::Image) => provider.image.is_some(),
            Needs::Task(TaskKind::Video) => provider.video.is_some(),
            Needs::Task(TaskKind::Speech) => provider.speech.is_some(),
            Needs::Chat => provider.chat.is_some(),
        };
        let serves = move |c: &&Arc<OpenChannel>| c.channel.upstream_model(model).is_some();
        self.channels
            .iter()
            .filter(move |c| can(&c.provider))
            .filter(serves)
    }
}

fn open(
    channel: &Channel,
    settings: &Settings,
    egress: &egress::Client,
    before: Option<&Routing>,
) -> Result<Arc<OpenChannel>, String> {
    let entry = PROVIDERS
        .iter()
        .find(|p| p.kind == channel.kind)
        .ok_or_else(|| {
            let kinds: Vec<&str> = PROVIDERS.iter().map(|p| p.kind).collect();
            format!(
                "channel {:?} has kind {:?}, which this version does not have: use one of {}",
                channel.name,
                channel.kind,
                kinds.join(", ")
            )
        })?;
    // Keys are remembered by their place: a changed list begins afresh.
    let same = |there: &&Arc<OpenChannel>| {
        let there = &there.channel;
        there.base_url == channel.base_url && there.api_keys.len() == channel.api_keys.len()
    };
    let known = before.and_then(|b| b.by_name(&channel.name)).filter(same);
    let channel = Arc::new(channel.clone());
    let provider = (entry.open)(&channel, settings, egress);
    let chats = provider.chat.iter().flat_map(|chat| {
        let models = channel.models.iter();
        models.map(|model| (model.name.clone(), Spoken::of(&**chat, &model.upstream)))
    });
    Ok(Arc::new(OpenChannel {
        chats: chats.collect(),
        provider,
        slots: channel
            .max_concurrency
            .map(|n| Arc::new(Semaphore::new(n as usize))),
        health: known
            .map(|open| Arc::clone(&open.health))
            .unwrap_or_default(),
        channel,
    }))
}

/// Ready channels first, by priority and weight; where all rest, the one that wakes first, unless its upstream asked for quiet.
fn choose(
    fit: Vec<&Arc<OpenChannel>>,
    model: &str,
    tried: &[Tried],
    session: Option<u64>,
) -> Choice {
    let mut ready = Vec::with_capacity(fit.len());
    let mut resting: Option<(Instant, bool, &Arc<OpenChannel>, Option<usize>)> = None;
    for open in fit {
        match open.standing(model, tried, session) {
            Standing::Ready(key) => ready.push((open, key)),
            Standing::Resting { until, asked, key } => {
                // One that nobody asked to rest comes before one that was.
                if resting.is_none_or(|(u, a, ..)| (asked, until) < (a, u)) {
                    resting = Some((until, asked, open, key));
                }
            }
            Standing::Spent => {}
        }
    }
    let any_ready = !ready.is_empty();
    while !ready.is_empty() {
        let best = ready
            .iter()
            .map(|(c, _)| c.channel.priority)
            .min()
            .unwrap_or_default();
        let chosen = by_weight(&ready, best, session);
        let (open, key) = ready.swap_remove(chosen);
        if let Some(seat) = open.sit(key) {
            return Choice::Seat(seat);
        }
    }
    match resting {
        _ if any_ready => Choice::Full,
        None => Choice::None,
        Some((until, true, ..)) => Choice::Resting(until.saturating_duration_since(Instant::now())),
        Some((_, false, open, key)) => open.sit(key).map_or(Choice::Full, Choice::Seat),
    }
}

/// The index of one of those with priority `best`: by weight at random, or always the same one for a session.
fn by_weight(
    ready: &[(&Arc<OpenChannel>, Option<usize>)],
    best: i64,
    session: Option<u64>,
) -> usize {
    let weight = |c: &OpenChannel| {
        if c.channel.priority == best {
            u64::from(c.channel.weight.max(1))
        } else {
            0
        }
    };
    if let Some(session) = session {
        // Rendezvous hashing: when a channel comes or goes, only its own sessions move.
        let score = |c: &OpenChannel| {
            let unit = (mixed(session, &c.channel.name) >> 11) as f64 / (1u64 << 53) as f64;
            weight(c) as f64 / -(unit.max(f64::MIN_POSITIVE).ln())
        };
        let best = ready
            .iter()
            .enumerate()
            .max_by(|(_, a), (_, b)| score(a.0).total_cmp(&score(b.0)));
        return best.map(|(index, _)| index).unwrap_or_default();
    }
    if ready.len() == 1 {
        return 0;
    }
    let total: u64 = ready.iter().map(|(c, _)| weight(c)).sum();
    let mut left = rand::rng().random_range(0..total.max(1));
    ready
        .iter()
        .position(|(c, _)| {
            let weight = weight(c);
            let here = left < weight;
            left = left.saturating_sub(weight);
            here
        })
        .unwrap_or_default()
}

/// A hash that stays the same from run to run and node to node (FNV-1a, finished by a multiply and shift).
fn mixed(session: u64, name: &str) -> u64 {
    let mut hash = session ^ 0xcbf2_9ce4_8422_2325;
    for byte in name.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

/// What tells one session from another, for [`Routing::choose_chat`].
pub fn session(key_id: &str, end_user: &str) -> u64 {
    mixed(mixed(0, key_id), end_user)
}

/// A key's print: what it can be recognised by and not be guessed from.
fn key_print(key: &Secret) -> String {
    let hash = Sha256::digest(key.expose().as_bytes());
    hash.iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

impl OpenChannel {
    /// Its health in words, for operators.
    pub fn health(&self) -> String {
        self.health.describe()
    }

    fn standing(&self, model: &str, tried: &[Tried], session: Option<u64>) -> Standing {
        let here = tried.iter().filter(|t| t.channel == self.channel.name);
        let keys: Vec<usize> = here.map(|t| t.key).collect();
        self.health
            .standing(model, self.channel.api_keys.len(), &keys, session)
    }

    fn sit(self: &Arc<Self>, key: Option<usize>) -> Option<Seat> {
        let slot = match &self.slots {
            Some(slots) => Some(Arc::clone(slots).try_acquire_owned().ok()?),
            None => None,
        };
        self.health.probe();
        Some(Seat {
            open: Arc::clone(self),
            key,
            _slot: slot,
        })
    }
}

impl Seat {
    /// The key to use; none where the channel has none.
    pub fn key(&self) -> Option<&Secret> {
        self.open.channel.api_keys.get(self.key?)
    }

    /// What the key is known by, for finding it again after a restart.
    pub fn key_print(&self) -> Option<String> {
        self.key().map(key_print)
    }

    /// What speaks to it.
    pub fn chat(&self) -> Option<&Arc<dyn ChatProvider>> {
        self.open.provider.chat.as_ref()
    }

    /// The same with how it speaks with `model`; none where the channel does not serve it.
    pub fn spoken(&self, model: &str) -> Option<(&Arc<dyn ChatProvider>, Arc<Spoken>)> {
        let (open, chat) = (&self.open, self.chat()?);
        let known = open.chats.get(model).map(Arc::clone);
        // A channel that names no models serves them all.
        let other = || Some(Spoken::of(&**chat, open.channel.upstream_model(model)?));
        Some((chat, known.or_else(other)?))
    }

    /// For [`Routing::choose_chat`]: not this one again.
    pub fn tried(&self) -> Tried {
        Tried {
            channel: self.open.channel.name.clone(),
            key: self.key.unwrap_or(0),
        }
    }

    /// The upstream answered; a refusal of the client's request is an answer too.
    pub fn succeeded(&self) {
        self.open.health.succeeded();
    }

    /// The upstream did not do its part for `model`.
    pub fn failed(&self, model: &str, trouble: Trouble) {
        self.open.health.failed(model, self.key, trouble);
    }
}
