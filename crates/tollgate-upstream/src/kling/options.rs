//! The options of a Kling channel.

use serde_json::Value;

use crate::channel::{Channel, known_options};

/// Checks the options of a channel.
pub(crate) fn check(channel: &Channel) -> Result<(), String> {
    known_options(channel, &["voices"], &[])?;
    Voices::for_channel(channel).map(drop)
}

/// The voices for speech requests without one. The defaults are the provider's own examples, one per language.
#[derive(Clone)]
pub(super) struct Voices {
    pub(super) zh: String,
    pub(super) en: String,
}

impl Voices {
    /// The voices of a channel's option `voices`.
    pub(super) fn for_channel(channel: &Channel) -> Result<Self, String> {
        let mut voices = Self {
            zh: "genshin_vindi2".to_owned(),
            en: "oversea_male1".to_owned(),
        };
        let Some(given) = channel.options.get("voices") else {
            return Ok(voices);
        };
        let error = |what: &Value| {
            format!(
                "`voices` must be a table of voice ids by language, zh and en, as in {{ zh = \"genshin_vindi2\" }}, got {what}"
            )
        };
        for (language, voice) in given.as_object().ok_or_else(|| error(given))? {
            let id = voice.as_str().filter(|id| !id.is_empty());
            let id = id.ok_or_else(|| error(given))?.to_owned();
            match language.as_str() {
                "zh" => voices.zh = id,
                "en" => voices.en = id,
                _ => return Err(error(given)),
            }
        }
        Ok(voices)
    }
}
