//! Which channel serves a model: lower priority first, equal priorities share by weight.

use std::sync::Arc;

use rand::RngExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tollgate_upstream::provider::{Provider, Settings};
use tollgate_upstream::{Channel, PROVIDERS};

/// Name and kind of the channel that stands in where none is configured.
const BUILT_IN: &str = "sandbox";

/// A channel, ready to be called.
pub struct OpenChannel {
    /// As configured.
    pub channel: Arc<Channel>,
    /// What its provider can do.
    pub provider: Provider,
    slots: Option<Arc<Semaphore>>,
}

/// Every channel of this process.
pub struct Routing {
    channels: Vec<Arc<OpenChannel>>,
}

/// A channel that has room, and the room taken; given back when dropped.
pub struct Seat {
    /// The channel.
    pub open: Arc<OpenChannel>,
    _slot: Option<OwnedSemaphorePermit>,
}

/// What became of the search for a channel.
pub enum Choice {
    /// This one.
    Seat(Seat),
    /// Some serve the model and all are at their `max_concurrency`.
    Full,
    /// None serves the model.
    None,
}

impl Routing {
    /// Opens the configured channels; without any, the sandbox serves every model.
    ///
    /// # Errors
    /// A sentence for the operator where a channel's kind is not in this program.
    pub fn open(channels: &[Channel], settings: &Settings) -> Result<Self, String> {
        let built_in = [Channel {
            name: BUILT_IN.to_owned(),
            kind: BUILT_IN.to_owned(),
            base_url: None,
            api_keys: Vec::new(),
            models: Vec::new(),
            priority: 0,
            weight: 1,
            max_concurrency: None,
        }];
        let channels = if channels.is_empty() {
            &built_in
        } else {
            channels
        };
        let channels = channels
            .iter()
            .map(|c| open(c, settings))
            .collect::<Result<_, _>>()?;
        Ok(Self { channels })
    }

    /// Every channel.
    pub fn channels(&self) -> &[Arc<OpenChannel>] {
        &self.channels
    }

    /// Whether any channel has a free seat.
    pub fn has_room(&self) -> bool {
        let mut slots = self.channels.iter().map(|c| &c.slots);
        slots.any(|slots| slots.as_ref().is_none_or(|s| s.available_permits() > 0))
    }

    /// Whether any channel serves pictures of `model`.
    pub fn serves_images(&self, model: &str) -> bool {
        self.image_channels(model).next().is_some()
    }

    /// A channel of `model` that reviews prompts, if any.
    pub fn reviewer(&self, model: &str) -> Option<Arc<OpenChannel>> {
        self.image_channels(model)
            .find(|c| c.provider.review.is_some())
            .cloned()
    }

    /// Takes a seat on a channel that makes pictures of `model`, leaving out the channels named in `tried` as long
    /// as another is left.
    pub fn choose_image(&self, model: &str, tried: &[String]) -> Choice {
        let mut fit: Vec<&Arc<OpenChannel>> = self.image_channels(model).collect();
        if fit.is_empty() {
            return Choice::None;
        }
        if fit.iter().any(|c| !tried.contains(&c.channel.name)) {
            fit.retain(|c| !tried.contains(&c.channel.name));
        }
        while !fit.is_empty() {
            let best = fit
                .iter()
                .map(|c| c.channel.priority)
                .min()
                .unwrap_or_default();
            let chosen = by_weight(&fit, best);
            if let Some(seat) = fit[chosen].sit() {
                return Choice::Seat(seat);
            }
            fit.swap_remove(chosen);
        }
        Choice::Full
    }

    fn image_channels<'a>(&'a self, model: &'a str) -> impl Iterator<Item = &'a Arc<OpenChannel>> {
        self.channels.iter().filter(move |c| {
            c.provider.image.is_some() && c.channel.upstream_model(model).is_some()
        })
    }
}

fn open(channel: &Channel, settings: &Settings) -> Result<Arc<OpenChannel>, String> {
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
    let channel = Arc::new(channel.clone());
    Ok(Arc::new(OpenChannel {
        provider: (entry.open)(&channel, settings),
        slots: channel
            .max_concurrency
            .map(|n| Arc::new(Semaphore::new(n as usize))),
        channel,
    }))
}

/// The index of one of those with priority `best`, by weight.
fn by_weight(fit: &[&Arc<OpenChannel>], best: i64) -> usize {
    let weight = |c: &Arc<OpenChannel>| {
        if c.channel.priority == best {
            u64::from(c.channel.weight.max(1))
        } else {
            0
        }
    };
    let total: u64 = fit.iter().map(|c| weight(c)).sum();
    let mut left = rand::rng().random_range(0..total.max(1));
    fit.iter()
        .position(|c| {
            let weight = weight(c);
            let here = left < weight;
            left = left.saturating_sub(weight);
            here
        })
        .unwrap_or_default()
}

impl OpenChannel {
    fn sit(self: &Arc<Self>) -> Option<Seat> {
        let slot = match &self.slots {
            Some(slots) => Some(Arc::clone(slots).try_acquire_owned().ok()?),
            None => None,
        };
        Some(Seat {
            open: Arc::clone(self),
            _slot: slot,
        })
    }
}
