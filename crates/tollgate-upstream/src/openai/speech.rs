//! Speech: `/audio/speech`. The request creates no job upstream, so a lost call may be repeated.
//! <https://platform.openai.com/docs/api-reference/audio/createSpeech>

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tollgate_media::speech::SpeechJob;

use super::client::{BEARER, Client};
use super::models;
use super::options::Options;
use crate::adapter::{Adjustments, AudioResponse, HttpRequest, unless_cancelled};
use crate::error::ProviderError;
use crate::provider::{Completed, ResultData, SpeechCall, SpeechProvider, Started};

/// The timeout until the first byte of the audio, and between its chunks.
const TIMEOUT: Duration = Duration::from_secs(120);

pub(super) struct Speech(pub(super) Arc<Client>);

#[async_trait]
impl SpeechProvider for Speech {
    async fn start(&self, call: SpeechCall<'_>) -> Result<Started, ProviderError> {
        let attempt = &call.attempt;
        let options = Options::for_model(&self.0.channel, attempt.model);
        let id = attempt.model.id_by(models::IDS);
        let voice = options.voice(call.job.voice.as_deref());
        unsupported_fields(id, call.job).report_to(attempt.sink);
        let body = Value::Object(fields(id, voice, call.job));
        let request = HttpRequest::post(self.0.url("/audio/speech"), &body)
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

fn unsupported_fields(id: &str, job: &SpeechJob) -> Adjustments {
    let with_instructions = &["voice", "speed", "instructions"];
    let count = if models::supports_instructions(id) {
        3
    } else {
        2
    };
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
        && models::supports_instructions(id)
    {
        put("instructions", instructions.into());
    }
    fields
}
