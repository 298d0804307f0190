//! Speech: `/tts`. The request creates no job upstream, so a lost call may be repeated.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tollgate_media::speech::SpeechJob;

use super::client::{BEARER, Client};
use super::options;
use crate::adapter::{Adjustments, AudioResponse, HttpRequest, unless_cancelled};
use crate::error::ProviderError;
use crate::provider::{Completed, ResultData, SpeechCall, SpeechProvider, Started};

/// The timeout until the first byte of the audio, and between its chunks.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Minimum and maximum speed.
const SPEEDS: (f64, f64) = (0.7, 1.5);

pub(super) struct Speech(pub(super) Arc<Client>);

#[async_trait]
impl SpeechProvider for Speech {
    async fn start(&self, call: SpeechCall<'_>) -> Result<Started, ProviderError> {
        let attempt = &call.attempt;
        let voice = options::voice(&self.0.channel, attempt.model);
        let (fields, changes) = fields(voice, call.job);
        changes.report_to(attempt.sink);
        let body = Value::Object(fields);
        let request = HttpRequest::post(self.0.url("/tts"), &body)
            .with_authorization(BEARER, attempt.key)?
            .with_timeout(TIMEOUT)
            .with_trace(attempt.trace)
            .accept_any();
        let work = async {
            match self.0.http.send_for_audio(request).await? {
                AudioResponse::Audio(parts) => {
                    attempt.sink.deliver(ResultData::Stream(parts)).await
                }
                AudioResponse::Other(response) => Err(self.0.response_error(&response)),
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
    if let Some(requested) = job.speed {
        let speed = requested.clamp(SPEEDS.0, SPEEDS.1);
        let why = "the provider does not support this speed: the nearest that it supports";
        changes.replace_value("speed", requested, speed, why);
        fields.insert("speed".into(), speed.into());
    }
    (fields, changes)
}
