//! Speech: `/audio/speech`. It creates no job upstream, so a lost call may be repeated.
//! <https://platform.openai.com/docs/api-reference/audio/createSpeech>

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tollgate_media::speech::SpeechJob;

use super::options::Options;
use super::{BEARER, Server, models};
use crate::adapter::{Adjustments, AudioResponse, HttpRequest, unless_cancelled};
use crate::error::ProviderError;
use crate::provider::{Completed, ResultData, SpeechCall, SpeechProvider, Started};

/// Until the first sound, and between its parts.
const TIMEOUT: Duration = Duration::from_secs(120);

pub(super) struct Speech(pub(super) Arc<Server>);

#[async_trait]
impl SpeechProvider for Speech {
    async fn start(&self, call: SpeechCall<'_>) -> Result<Started, ProviderError> {
        let attempt = &call.attempt;
        let options = Options::of(&self.0.channel, attempt.model);
        let id = attempt.model.id_by(models::IDS);
        let voice = options.voice(call.job.voice.as_deref());
        carried(id, call.job).report_to(attempt.sink);
        let body = Value::Object(fields(id, voice, call.job));
        let ask = HttpRequest::post(self.0.url("/audio/speech"), &body)
            .with_authorization(BEARER, attempt.key)?
            .with_timeout(TIMEOUT)
            .accept_any();
        let work = async {
            match self.0.client.send_for_audio(ask).await? {
                AudioResponse::Audio(parts) => {
                    attempt.sink.deliver(ResultData::Stream(parts)).await
                }
                AudioResponse::Other(answer) => Err(self.0.response_error(&answer)),
            }
        };
        unless_cancelled(&attempt.cancel, work).await?;
        Ok(Started::Completed(Completed::default()))
    }
}

fn carried(id: &str, job: &SpeechJob) -> Adjustments {
    let with_instructions = &["voice", "speed", "instructions"];
    let count = if models::takes_instructions(id) { 3 } else { 2 };
    Adjustments::for_unsupported_fields(job, &with_instructions[..count])
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
