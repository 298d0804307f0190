//! Options of a channel and of its models. A model's option overrides the channel's.

use serde_json::{Map, Value};

use crate::channel::{Channel, ChannelModel, known_options};

/// The voice for speech requests without one.
const VOICE: &str = "voice";
const DEFAULT_VOICE: &str = "eve";

/// Checks the names and types of all options.
pub(crate) fn check(channel: &Channel) -> Result<(), String> {
    known_options(channel, &[VOICE], &[VOICE])?;
    check_values("the channel", &channel.options)?;
    let mut models = channel.models.iter();
    models.try_for_each(|model| check_values(&model.name, &model.options))
}

fn check_values(owner: &str, options: &Map<String, Value>) -> Result<(), String> {
    let is_valid = |value: &Value| value.as_str().is_some_and(|text| !text.trim().is_empty());
    match options.get(VOICE) {
        Some(value) if !is_valid(value) => Err(format!(
            "{owner}: option {VOICE:?} must be a text that is not empty, got {value}"
        )),
        _ => Ok(()),
    }
}

/// The voice for speech requests without one.
pub(super) fn voice<'a>(channel: &'a Channel, model: &'a ChannelModel) -> &'a str {
    let option = model.options.get(VOICE).or(channel.options.get(VOICE));
    option.and_then(Value::as_str).unwrap_or(DEFAULT_VOICE)
}
