//! Speech: `/tts` (xai.md › Speech). It leaves nothing behind, so it may be asked for again.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tollgate_media::speech::SpeechJob;

use super::{BEARER, Server, options};
use crate::provider::{Done, Made, ProviderError, SpeechCall, SpeechProvider, Started};
use crate::wire::{Ask, Sound, unless_stopped};

/// Until the first sound, and between its parts.
const PATIENCE: Duration = Duration::from_secs(120);
/// The slowest and fastest pace.
const SPEEDS: (f64, f64) = (0.7, 1.5);

pub(super) struct Speech(pub(super) Arc<Server>);

#[async_trait]
impl SpeechProvider for Speech {
    async fn start(&self, call: SpeechCall<'_>) -> Result<Started, ProviderError> {
        let attempt = &call.attempt;
        let voice = options::voice(&self.0.channel, attempt.model);
        let body = Value::Object(fields(voice, call.job));
        let ask = Ask::post(self.0.url("/tts"), &body)
            .authorized(BEARER, attempt.key)?
            .within(PATIENCE)
            .sound();
        let work = async {
            match self.0.wire.ask_sound(ask).await? {
                Sound::Made(parts) => attempt.delivery.deliver(Made::Stream(parts)).await,
                Sound::Refused(answer) => Err(self.0.refusal(&answer)),
            }
        };
        unless_stopped(&attempt.cancel, work).await?;
        Ok(Started::Done(Done::default()))
    }
}

fn fields(default_voice: &str, job: &SpeechJob) -> Map<String, Value> {
    let voice = job.voice.as_deref().unwrap_or(default_voice);
    let language = job.language.as_deref().unwrap_or("auto");
    let mut fields = Map::new();
    fields.insert("text".into(), job.text.as_str().into());
    fields.insert("voice_id".into(), voice.into());
    fields.insert("language".into(), language.into());
    if let Some(asked) = job.speed {
        let speed = asked.clamp(SPEEDS.0, SPEEDS.1);
        if speed != asked {
            tracing::debug!(
                asked,
                speed,
                "the upstream does not speak at this pace: the nearest is asked for"
            );
        }
        fields.insert("speed".into(), speed.into());
    }
    fields
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_set_is_sent() {
        let whole = json!({"text": "Hello.", "voice_id": "eve", "language": "auto"});
        for (more, expected) in [
            (json!({}), json!({})),
            (
                json!({"voice": "ara", "language": "zh", "speed": 1.25, "instructions": "softly"}),
                json!({"voice_id": "ara", "language": "zh", "speed": 1.25}),
            ),
            (json!({"speed": 4.0}), json!({"speed": 1.5})),
            (json!({"speed": 0.25}), json!({"speed": 0.7})),
        ] {
            let with = |mut all: Value, more: &Value| {
                for (name, value) in more.as_object().unwrap() {
                    all[name] = value.clone();
                }
                all
            };
            let job =
                json!({"model": "native-v3", "family": "native-v3", "text": "Hello.", "extra": {}});
            let job = serde_json::from_value(with(job, &more)).unwrap();
            let sent = Value::from(fields("eve", &job));
            assert_eq!(sent, with(whole.clone(), &expected));
        }
    }
}
