//! Models behind generic queues: which of a client's fields goes into which of the model's own, by configuration.
//!
//! Every model of such a provider has fields of its own. The options of a channel's model entry say them, or a preset of
//! this build does for models that are well known:
//!
//! ```toml
//! { name = "seedance-1.0-pro", upstream = "bytedance/seedance-1-pro", options = {
//!     input = { prompt = "prompt", seconds = { to = "duration", between = [2, 12] }, size = "aspect_ratio", first_frame = "image" },
//!     constants = { fps = 24 } } }
//! ```
//!
//! What differs from one such provider to another is a [`Service`]; the rest is here.

mod changes;
mod config;
mod convert;
mod fan;
mod order;
mod output;
mod service;

pub(crate) use config::Preset;
pub(crate) use service::{Service, State, open};

use serde_json::{Map, Value};

use crate::channel::{Channel, ChannelModel, known_options};
use crate::provider::{ProviderError, ProviderErrorKind};
use crate::wire::Slots;
use config::OPTIONS;
use convert::Rule;
use order::Order;
use output::Outputs;

/// One model's fields, as configured.
#[derive(Debug, Clone)]
struct Mapping {
    /// The provider's id of the model.
    upstream: String,
    /// Fields that are always sent.
    constants: Map<String, Value>,
    /// The job's fields that need no rule.
    implied: Vec<String>,
    /// Where the job's fields go.
    rules: Vec<Rule>,
    /// The most results of one call; 1 where the model has no field for their number.
    most: u32,
    /// What differs where the job has images: another id, other fields.
    with_images: Option<Box<Mapping>>,
    /// Where the results are in the answer.
    outputs: Outputs,
}

/// What is sent for one call.
#[derive(Debug)]
pub(crate) struct Request {
    /// The provider's id of the model.
    pub(crate) upstream: String,
    /// The model's input.
    pub(crate) input: Value,
}

/// Whether a channel's options are known and all its models mapped, by their options or by `presets`.
pub(crate) fn check(channel: &Channel, presets: &[Preset]) -> Result<(), String> {
    known_options(channel, &[], OPTIONS)?;
    if channel.models.is_empty() {
        return Err(format!(
            "a channel of kind {:?} must name its `models`",
            channel.kind
        ));
    }
    channel
        .models
        .iter()
        .try_for_each(|model| Mapping::of(model, presets).map(drop))
}

impl Mapping {
    /// The mapping of a channel's model as a call needs it.
    fn for_call(model: &ChannelModel, presets: &[Preset]) -> Result<Self, ProviderError> {
        let mapping = Self::of(model, presets);
        mapping.map_err(|words| ProviderError::new(ProviderErrorKind::ChannelUnfit, words))
    }

    /// That of `order`: another one where it has images and the model's entry says so.
    fn chosen(&self, order: &Order<'_>) -> &Self {
        match &self.with_images {
            Some(other) if order.has_images() => other,
            _ => self,
        }
    }

    /// How many results each call is asked for, so that all of them together are as many as `order` wants.
    fn calls(&self, order: &Order<'_>) -> Vec<u32> {
        let most = self.chosen(order).most.max(1);
        let whole = order.count / most;
        let rest = order.count % most;
        let rest = (rest > 0).then_some(rest);
        std::iter::repeat_n(most, whole as usize)
            .chain(rest)
            .collect()
    }

    /// The call number `index` for `count` of the results. `slots` take the files.
    fn request(
        &self,
        order: &Order<'_>,
        index: u32,
        count: u32,
        slots: &mut Slots,
    ) -> Result<Request, ProviderError> {
        let chosen = self.chosen(order);
        chosen.refuse_lost_images(order)?;
        let mut input = Value::Object(chosen.constants.clone());
        for rule in &chosen.rules {
            if let Some(value) = rule.value(order, index, count, slots) {
                rule.put(&mut input, value);
            }
        }
        Ok(Request {
            upstream: chosen.upstream.clone(),
            input,
        })
    }

    /// A picture that the model does not get would make another result than the one that was asked for.
    fn refuse_lost_images(&self, order: &Order<'_>) -> Result<(), ProviderError> {
        let carried = |source: &str| {
            let rules = self.rules.iter().filter(|rule| rule.source == source);
            rules.map(Rule::most_files).max().unwrap_or(0)
        };
        for (source, files) in order.files() {
            let most = carried(source);
            if files.len() > most {
                let count = files.len();
                let words = match most {
                    0 => format!("the channel's model takes no `{source}`, {count} came"),
                    _ => format!("the channel's model takes {most} of `{source}`, {count} came"),
                };
                return Err(ProviderError::new(ProviderErrorKind::ChannelUnfit, words));
            }
        }
        Ok(())
    }
}
