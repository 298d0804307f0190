//! Options of a channel and of its models. A model's option overrides the channel's.

use serde_json::{Map, Value};

use crate::channel::{Channel, ChannelModel, known_options};

/// The voice of speech that names none.
const VOICE: &str = "voice";
const DEFAULT_VOICE: &str = "eve";

/// Whether all options are known and of their types.
pub(crate) fn check(channel: &Channel) -> Result<(), String> {
    known_options(channel, &[VOICE], &[VOICE])?;
    check_values("the channel", &channel.options)?;
    let mut models = channel.models.iter();
    models.try_for_each(|model| check_values(&model.name, &model.options))
}

fn check_values(place: &str, options: &Map<String, Value>) -> Result<(), String> {
    let good = |value: &Value| value.as_str().is_some_and(|text| !text.trim().is_empty());
    match options.get(VOICE) {
        Some(value) if !good(value) => Err(format!(
            "{place}: option {VOICE:?} must be a text that is not empty, got {value}"
        )),
        _ => Ok(()),
    }
}

/// The voice of speech that names none.
pub(super) fn voice<'a>(channel: &'a Channel, model: &'a ChannelModel) -> &'a str {
    let told = model.options.get(VOICE).or(channel.options.get(VOICE));
    told.and_then(Value::as_str).unwrap_or(DEFAULT_VOICE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_voice_is_a_text() {
        let mut channel = Channel::new("main", "xai");
        let mut model = ChannelModel::new("native-v3", "native-v3");
        assert_eq!(voice(&channel, &model), "eve");
        channel.options.insert(VOICE.into(), "ara".into());
        assert_eq!(voice(&channel, &model), "ara");
        model.options.insert(VOICE.into(), "rex".into());
        assert_eq!(voice(&channel, &model), "rex");
        channel.models = vec![model];
        assert_eq!(check(&channel), Ok(()));
        channel.models[0].options.insert(VOICE.into(), "".into());
        let error = check(&channel).unwrap_err();
        assert_eq!(
            error,
            "native-v3: option \"voice\" must be a text that is not empty, got \"\""
        );
        channel.options.insert("voices".into(), "ara".into());
        assert!(check(&channel).unwrap_err().contains("\"voices\""));
    }
}
