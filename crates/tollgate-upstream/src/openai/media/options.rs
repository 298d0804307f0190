//! Options of a channel and of its models. A model's option overrides the channel's.

use serde_json::{Map, Value};

use crate::channel::{Channel, ChannelModel, known_options};

/// Which fields an image model takes: `gpt` or `generic`.
const IMAGES: &str = "images";
/// How many images one call may ask for.
const PER_CALL: &str = "images_per_call";
/// The voice of speech that names none.
const VOICE: &str = "voice";
/// The server's voices by the ids that clients use.
const VOICES: &str = "voices";

const KNOWN: &[&str] = &[IMAGES, PER_CALL, VOICE, VOICES];
const DIALECTS: &[&str] = &["gpt", "generic"];
/// Most images of one call (`n` of <https://platform.openai.com/docs/api-reference/images/create>).
const MOST_PER_CALL: u32 = 10;
const DEFAULT_VOICE: &str = "alloy";

/// Whether all options are known and of their types.
pub(crate) fn check(channel: &Channel) -> Result<(), String> {
    known_options(channel, KNOWN, KNOWN)?;
    check_values("the channel", &channel.options)?;
    let mut models = channel.models.iter();
    models.try_for_each(|model| check_values(&model.name, &model.options))
}

fn check_values(place: &str, options: &Map<String, Value>) -> Result<(), String> {
    for (name, value) in options {
        let (good, wants) = match name.as_str() {
            IMAGES => {
                let named = value.as_str().is_some_and(|name| DIALECTS.contains(&name));
                (named, "\"gpt\" or \"generic\"")
            }
            PER_CALL => {
                let most = u64::from(MOST_PER_CALL);
                let in_range = value.as_u64().is_some_and(|n| (1..=most).contains(&n));
                (in_range, "a whole number from 1 to 10")
            }
            VOICE => (is_name(value), "a text that is not empty"),
            _ => {
                let table = value.as_object();
                let good = table.is_some_and(|table| table.values().all(is_name));
                (good, "a table of texts that are not empty")
            }
        };
        if !good {
            return Err(format!(
                "{place}: option {name:?} must be {wants}, got {value}"
            ));
        }
    }
    Ok(())
}

fn is_name(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty())
}

/// The options that hold for one model.
pub(super) struct Options<'a> {
    channel: &'a Map<String, Value>,
    model: &'a Map<String, Value>,
}

impl<'a> Options<'a> {
    pub(super) fn of(channel: &'a Channel, model: &'a ChannelModel) -> Self {
        Self {
            channel: &channel.options,
            model: &model.options,
        }
    }

    /// How images are asked for, where it is said.
    pub(super) fn images(&self) -> Option<&'a str> {
        self.get(IMAGES)?.as_str()
    }

    /// How many images one call may ask for.
    pub(super) fn per_call(&self) -> u32 {
        let told = self.get(PER_CALL).and_then(Value::as_u64);
        let told = told.and_then(|n| u32::try_from(n).ok());
        told.unwrap_or(MOST_PER_CALL)
    }

    /// The server's voice for the one that was asked for.
    pub(super) fn voice<'b>(&self, asked: Option<&'b str>) -> &'b str
    where
        'a: 'b,
    {
        let Some(asked) = asked else {
            let default = self.get(VOICE).and_then(Value::as_str);
            return default.unwrap_or(DEFAULT_VOICE);
        };
        let known = |options: &'a Map<String, Value>| options.get(VOICES)?.get(asked)?.as_str();
        let mapped = known(self.model).or_else(|| known(self.channel));
        mapped.unwrap_or(asked)
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.model.get(name).or_else(|| self.channel.get(name))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn channel(options: Value, of_model: Value) -> Channel {
        let map = |value: Value| value.as_object().unwrap().clone();
        let mut channel = Channel::new("main", "openai");
        channel.options = map(options);
        let mut model = ChannelModel::new("m", "u");
        model.options = map(of_model);
        channel.models = vec![model];
        channel
    }

    #[test]
    fn options_are_checked_by_name_and_type() {
        let good = json!({"images": "generic", "images_per_call": 1, "voice": "nova", "voices": {"a": "b"}});
        assert_eq!(check(&channel(good.clone(), good)), Ok(()));
        for (options, says) in [
            (json!({"image": "gpt"}), "unknown option \"image\""),
            (
                json!({"images": "dall-e"}),
                "\"gpt\" or \"generic\", got \"dall-e\"",
            ),
            (
                json!({"images_per_call": 0}),
                "a whole number from 1 to 10, got 0",
            ),
            (json!({"images_per_call": "2"}), "got \"2\""),
            (json!({"voice": " "}), "not empty"),
            (json!({"voices": {"a": 1}}), "a table of texts"),
            (json!({"voices": ["a"]}), "a table of texts"),
        ] {
            let error = check(&channel(options.clone(), json!({}))).unwrap_err();
            assert!(
                error.contains(says) && error.starts_with("the channel"),
                "{error}"
            );
            let error = check(&channel(json!({}), options)).unwrap_err();
            assert!(error.contains(says) && error.starts_with('m'), "{error}");
        }
    }

    #[test]
    fn a_models_options_go_before_the_channels() {
        let channel = channel(
            json!({"images": "gpt", "voice": "ash", "voices": {"a": "nova", "b": "onyx"}}),
            json!({"images": "generic", "voices": {"a": "coral"}}),
        );
        let options = Options::of(&channel, &channel.models[0]);
        assert_eq!(
            (options.images(), options.per_call()),
            (Some("generic"), 10)
        );
        for (asked, expected) in [
            (None, "ash"),
            (Some("a"), "coral"),
            (Some("b"), "onyx"),
            (Some("sage"), "sage"),
        ] {
            assert_eq!(options.voice(asked), expected);
        }
    }
}
