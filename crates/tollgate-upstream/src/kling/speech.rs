//! Speech: one call per part of the text; the parts' files are concatenated.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{self, StreamExt as _};
use http::HeaderMap;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tollgate_media::speech::SpeechJob;

use super::client::Kling;
use super::task::State;
use super::{errors, mp3, text_parts};
use crate::adapter::{Adjustments, HttpRequest, percent_encode};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::{Attempt, Completed, Link, ResultData, SpeechCall, SpeechProvider, Started};

const PATH: &str = "/v1/audio/tts";
/// Maximum number of characters of one call.
const MAX_CHARACTERS: usize = 1000;
/// Minimum and maximum speed.
const SPEEDS: (f64, f64) = (0.8, 2.0);
/// The timeout of a call, whose response contains the result.
const CALL_TIME: Duration = Duration::from_secs(120);
/// The total time for polling speech that the response reported as unfinished, and the interval of polls.
const POLL_TOTAL_TIME: Duration = Duration::from_secs(120);
const POLL_PAUSE: Duration = Duration::from_secs(2);
const POLL_TIME: Duration = Duration::from_secs(30);
/// Maximum size of the file of one part, in bytes: a thousand characters last a few minutes.
const MAX_PART_BYTES: u64 = 32 * 1024 * 1024;

#[async_trait]
impl SpeechProvider for Kling {
    async fn start(&self, call: SpeechCall<'_>) -> Result<Started, ProviderError> {
        tokio::select! {
            biased;
            () = call.attempt.cancel.cancelled() => Err(ProviderError::new(
                UpstreamErrorKind::Interrupted,
                "the speech was cancelled",
            )),
            done = self.generate(&call) => done.map(Started::Completed),
        }
    }
}

impl Kling {
    async fn generate(&self, call: &SpeechCall<'_>) -> Result<Completed, ProviderError> {
        let attempt = &call.attempt;
        let (settings, changes) = self.settings(call.job)?;
        changes.report_to(attempt.sink);
        let parts = text_parts::split(&call.job.text, MAX_CHARACTERS);
        let mut links = Vec::with_capacity(parts.len());
        // One after the other, because all tasks of the account share its concurrency limit.
        for (done, text) in parts.iter().enumerate() {
            let percent = u8::try_from(100 * done / parts.len()).unwrap_or_default();
            attempt.sink.progress(percent);
            let mut body = json!({ "text": text });
            if let (Some(body), Some(settings)) = (body.as_object_mut(), settings.as_object()) {
                body.extend(settings.clone());
            }
            links.push(self.generate_part(&body, attempt).await?);
        }
        let result = match links.len() {
            1 => links.pop().map(ResultData::Link),
            _ => Some(self.joined(links)),
        };
        let result = result.ok_or_else(|| {
            ProviderError::new(
                UpstreamErrorKind::Rejected,
                "the text has no words to speak",
            )
        })?;
        let delivered = attempt.sink.deliver(result).await;
        delivered.map_err(without_retry)?;
        Ok(Completed::default())
    }

    /// The fields of every call except its text, and the adjustments.
    fn settings(&self, job: &SpeechJob) -> Result<(Value, Adjustments), ProviderError> {
        let mut changes = Adjustments::for_unsupported_fields(job, &["voice", "speed", "language"]);
        let language = language(job)?;
        if let Some(requested) = job
            .language
            .as_deref()
            .filter(|requested| !requested.eq_ignore_ascii_case(language))
        {
            let why = "the provider supports languages, not regions";
            changes.replace_value("language", requested, language, why);
        }
        let voice = match (&job.voice, language) {
            (Some(voice), _) => voice,
            (None, "zh") => &self.voices.zh,
            (None, _) => &self.voices.en,
        };
        let mut settings = json!({ "voice_id": voice, "voice_language": language });
        if let Some(speed) = job.speed {
            let used = nearest_speed(speed);
            let why = "the provider's speeds are 0.8 to 2.0, with one decimal: the nearest";
            changes.replace_value("speed", speed, used, why);
            settings["voice_speed"] = used.into();
        }
        Ok((settings, changes))
    }

    /// Generates one part; returns the link to its file.
    async fn generate_part(
        &self,
        body: &Value,
        attempt: &Attempt<'_>,
    ) -> Result<Link, ProviderError> {
        let key = attempt.key;
        let url = [&self.base, PATH].concat();
        let request = || {
            HttpRequest::post(&url, body)
                .with_timeout(CALL_TIME)
                .with_trace(attempt.trace)
                .creating()
        };
        let mut data = self.create(key, request).await?;
        let end = Instant::now() + POLL_TOTAL_TIME;
        loop {
            match State::parse(&data["task_status"]) {
                State::Completed => break,
                State::Failed => {
                    let message = data["task_status_msg"].as_str().unwrap_or_default();
                    return Err(errors::task_error(&self.client, message));
                }
                State::Open if Instant::now() >= end => {
                    let message = "the upstream did not finish the speech in time";
                    return Err(ProviderError::new(UpstreamErrorKind::Failed, message));
                }
                State::Open => {}
            }
            sleep(POLL_PAUSE).await;
            let id = data["task_id"].as_str().unwrap_or_default();
            let url = format!("{url}/{}", percent_encode(id));
            data = self
                .send_for_data(key, || HttpRequest::get(&url).with_timeout(POLL_TIME))
                .await
                .map_err(without_retry)?;
        }
        let audio = data["task_result"]["audios"][0]["url"].as_str();
        let audio = audio.ok_or_else(|| {
            let message = "the upstream's speech has no file";
            ProviderError::new(UpstreamErrorKind::Failed, message)
        })?;
        Ok(self.client.link(&self.base, audio, HeaderMap::new()))
    }

    /// Joins the files of several parts into one, fetching them one after the other while the result is stored.
    fn joined(&self, links: Vec<Link>) -> ResultData {
        let client = Arc::clone(&self.client);
        let parts = stream::iter(links).then(move |link| {
            let client = Arc::clone(&client);
            async move {
                let file = client.fetch(&link, MAX_PART_BYTES).await?;
                let frames = mp3::frames(&file).ok_or_else(|| {
                    let message = "a part of the upstream's speech is no MP3 file";
                    ProviderError::new(UpstreamErrorKind::Failed, message)
                })?;
                Ok(file.slice_ref(frames))
            }
        });
        ResultData::Stream(parts.boxed())
    }
}

/// The error of a poll or of the delivery of accepted speech, as one that is not retried: the speech must not be generated again.
fn without_retry(error: ProviderError) -> ProviderError {
    if !error.kind.is_retryable() {
        return error;
    }
    ProviderError {
        kind: UpstreamErrorKind::OutcomeUnknown,
        ..error
    }
}

/// The voice's language: the requested one, or the one whose script the text is in.
fn language(job: &SpeechJob) -> Result<&'static str, ProviderError> {
    let Some(requested) = &job.language else {
        let is_han = |c: char| matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}');
        return Ok(if job.text.contains(is_han) {
            "zh"
        } else {
            "en"
        });
    };
    let primary = requested.split(['-', '_']).next().unwrap_or_default();
    match primary.to_ascii_lowercase().as_str() {
        "zh" => Ok("zh"),
        "en" => Ok("en"),
        _ => {
            let message = format!(
                "`language` must be zh or en on the channel that serves this model, got {requested:?}"
            );
            Err(ProviderError::new(
                UpstreamErrorKind::UnsupportedByChannel,
                message,
            ))
        }
    }
}

/// The nearest speed that the provider supports: within its range, with one decimal.
fn nearest_speed(speed: f64) -> f64 {
    (speed.clamp(SPEEDS.0, SPEEDS.1) * 10.0).round() / 10.0
}
