//! Speech: `/tts`. It creates no job upstream, so a lost call may be repeated.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tollgate_media::speech::SpeechJob;

use super::{BEARER, Server, options};
use crate::adapter::{Adjustments, AudioResponse, HttpRequest, unless_cancelled};
use crate::error::ProviderError;
use crate::provider::{Completed, ResultData, SpeechCall, SpeechProvider, Started};

/// Until the first sound, and between its parts.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The slowest and fastest pace.
const SPEEDS: (f64, f64) = (0.7, 1.5);

pub(super) struct Speech(pub(super) Arc<Server>);

#[async_trait]
impl SpeechProvider for Speech {
    async fn start(&self, call: SpeechCall<'_>) -> Result<Started, ProviderError> {
        let attempt = &call.attempt;
        let voice = options::voice(&self.0.channel, attempt.model);
        let (fields, changes) = fields(voice, call.job);
        changes.report_to(attempt.sink);
        let body = Value::Object(fields);
        let ask = HttpRequest::post(self.0.url("/tts"), &body)
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

fn fields(default_voice: &str, job: &SpeechJob) -> (Map<String, Value>, Adjustments) {
    let mut changes = Adjustments::for_unsupported_fields(job, &["voice", "language", "speed"]);
    let voice = job.voice.as_deref().unwrap_or(default_voice);
    let language = job.language.as_deref().unwrap_or("auto");
    let mut fields = Map::new();
    fields.insert("text".into(), job.text.as_str().into());
    fields.insert("voice_id".into(), voice.into());
    fields.insert("language".into(), language.into());
    if let Some(asked) = job.speed {
        let speed = asked.clamp(SPEEDS.0, SPEEDS.1);
        let why = "the provider does not speak at this pace: the nearest that it has";
        changes.replace_value("speed", asked, speed, why);
        fields.insert("speed".into(), speed.into());
    }
    (fields, changes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_set_is_sent() {
        let whole = json!({"text": "Hello.", "voice_id": "eve", "language": "auto"});
        for (more, expected, changed) in [
            (json!({}), json!({}), None),
            (
                json!({"voice": "ara", "language": "zh", "speed": 1.25, "instructions": "softly"}),
                json!({"voice_id": "ara", "language": "zh", "speed": 1.25}),
                Some(r#"instructions: "softly" → null"#),
            ),
            (
                json!({"speed": 4.0}),
                json!({"speed": 1.5}),
                Some("speed: 4.0 → 1.5"),
            ),
            (
                json!({"speed": 0.25}),
                json!({"speed": 0.7}),
                Some("speed: 0.25 → 0.7"),
            ),
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
            let (sent, changes) = fields("eve", &job);
            assert_eq!(Value::from(sent), with(whole.clone(), &expected));
            assert_eq!(changes.shown().first().map(String::as_str), changed);
        }
    }
}
