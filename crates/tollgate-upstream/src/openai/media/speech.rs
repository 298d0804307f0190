//! Speech: `/audio/speech` (openai-speech.md). It leaves nothing behind, so it may be asked for again.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tollgate_media::speech::SpeechJob;

use super::options::Options;
use super::{BEARER, Server, models};
use crate::provider::{Done, Made, ProviderError, SpeechCall, SpeechProvider, Started};
use crate::wire::{Ask, Changes, Sound, unless_stopped};

/// Until the first sound, and between its parts.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) struct Speech(pub(super) Arc<Server>);

#[async_trait]
impl SpeechProvider for Speech {
    async fn start(&self, call: SpeechCall<'_>) -> Result<Started, ProviderError> {
        let attempt = &call.attempt;
        let options = Options::of(&self.0.channel, attempt.model);
        let id = attempt.model.id_by(models::IDS);
        let voice = options.voice(call.job.voice.as_deref());
        carried(id, call.job).tell(attempt.delivery);
        let body = Value::Object(fields(id, voice, call.job));
        let ask = Ask::post(self.0.url("/audio/speech"), &body)
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

fn carried(id: &str, job: &SpeechJob) -> Changes {
    let with_instructions = &["voice", "speed", "instructions"];
    let count = if models::takes_instructions(id) { 3 } else { 2 };
    Changes::unless_carried(job, &with_instructions[..count])
}

fn fields(id: &str, voice: &str, job: &SpeechJob) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.into(), value));
    put("model", id.into());
    put("input", job.text.as_str().into());
    put("voice", voice.into());
    if let Some(speed) = job.speed {
        put("speed", speed.into());
    }
    if let Some(instructions) = job.instructions.as_deref()
        && models::takes_instructions(id)
    {
        put("instructions", instructions.into());
    }
    fields
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_set_is_sent() {
        let job = |more: Value| -> SpeechJob {
            let mut job = json!({
                "model": "native-v3", "family": "native-v3", "text": "Hello.", "extra": {},
            });
            for (name, value) in more.as_object().unwrap() {
                job[name] = value.clone();
            }
            serde_json::from_value(job).unwrap()
        };
        let all = json!({"speed": 1.5, "language": "en", "instructions": "softly", "external_task_id": "x"});
        for (id, more, expected, changed) in [
            (
                "gpt-4o-mini-tts",
                json!({}),
                json!({"model": "gpt-4o-mini-tts", "input": "Hello.", "voice": "alloy"}),
                &[][..],
            ),
            (
                "gpt-4o-mini-tts",
                all.clone(),
                json!({"model": "gpt-4o-mini-tts", "input": "Hello.", "voice": "alloy", "speed": 1.5,
                    "instructions": "softly"}),
                &[r#"language: "en" → null"#],
            ),
            (
                "tts-1",
                all,
                json!({"model": "tts-1", "input": "Hello.", "voice": "alloy", "speed": 1.5}),
                &[
                    r#"language: "en" → null"#,
                    r#"instructions: "softly" → null"#,
                ],
            ),
        ] {
            let job = job(more);
            assert_eq!(Value::from(fields(id, "alloy", &job)), expected);
            assert_eq!(carried(id, &job).shown(), changed);
        }
    }
}
