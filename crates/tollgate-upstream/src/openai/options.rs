//! Options of a channel and of its models. A model's option overrides the channel's.

use serde_json::{Map, Value};

use crate::channel::{Channel, ChannelModel, known_options};

/// Which fields an image model supports: `gpt` or `generic`.
const IMAGES: &str = "images";
/// Maximum number of images of one call.
const PER_CALL: &str = "images_per_call";
/// The voice for speech requests without one.
const VOICE: &str = "voice";
/// The server's voices, by the ids that clients use.
const VOICES: &str = "voices";

const KNOWN: &[&str] = &[IMAGES, PER_CALL, VOICE, VOICES];
const DIALECTS: &[&str] = &["gpt", "generic"];
/// The API's own maximum (`n` of <https://platform.openai.com/docs/api-reference/images/create>).
const MAX_PER_CALL: u32 = 10;
const DEFAULT_VOICE: &str = "alloy";

/// Checks the names and types of all options.
pub(crate) fn check(channel: &Channel) -> Result<(), String> {
    known_options(channel, KNOWN, KNOWN)?;
    check_values("the channel", &channel.options)?;
    let mut models = channel.models.iter();
    models.try_for_each(|model| check_values(&model.name, &model.options))
}

fn check_values(owner: &str, options: &Map<String, Value>) -> Result<(), String> {
    for (name, value) in options {
        let (is_valid, expected) = match name.as_str() {
            IMAGES => {
                let named = value.as_str().is_some_and(|name| DIALECTS.contains(&name));
                (named, "\"gpt\" or \"generic\"")
            }
            PER_CALL => {
                let max = u64::from(MAX_PER_CALL);
                let in_range = value.as_u64().is_some_and(|n| (1..=max).contains(&n));
                (in_range, "a whole number from 1 to 10")
            }
            VOICE => (is_name(value), "a text that is not empty"),
            _ => {
                let table = value.as_object();
                let is_valid = table.is_some_and(|table| table.values().all(is_name));
                (is_valid, "a table of texts that are not empty")
            }
        };
        if !is_valid {
            return Err(format!(
                "{owner}: option {name:?} must be {expected}, got {value}"
            ));
        }
    }
    Ok(())
}

fn is_name(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty())
}

/// The options of one model.
pub(super) struct Options<'a> {
    channel: &'a Map<String, Value>,
    model: &'a Map<String, Value>,
}

impl<'a> Options<'a> {
    pub(super) fn for_model(channel: &'a Channel, model: &'a ChannelModel) -> Self {
        Self {
            channel: &channel.options,
            model: &model.options,
        }
    }

    /// The dialect of images. `None` if no option sets it.
    pub(super) fn images(&self) -> Option<&'a str> {
        self.get(IMAGES)?.as_str()
    }

    /// Maximum number of images of one call.
    pub(super) fn per_call(&self) -> u32 {
        let option = self.get(PER_CALL).and_then(Value::as_u64);
        let option = option.and_then(|n| u32::try_from(n).ok());
        option.unwrap_or(MAX_PER_CALL)
    }

    /// The server's voice for the requested one.
    pub(super) fn voice<'b>(&self, requested: Option<&'b str>) -> &'b str
    where
        'a: 'b,
    {
        let Some(requested) = requested else {
            let default = self.get(VOICE).and_then(Value::as_str);
            return default.unwrap_or(DEFAULT_VOICE);
        };
        let known = |options: &'a Map<String, Value>| options.get(VOICES)?.get(requested)?.as_str();
        let mapped = known(self.model).or_else(|| known(self.channel));
        mapped.unwrap_or(requested)
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.model.get(name).or_else(|| self.channel.get(name))
    }
}
