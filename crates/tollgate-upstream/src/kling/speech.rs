//! Speech: one call per part of the text; the parts' files are concatenated.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{self, StreamExt as _};
use http::HeaderMap;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tollgate_core::Secret;
use tollgate_media::speech::SpeechJob;

use super::response::{self, State};
use super::{Kling, mp3, text_parts};
use crate::adapter::{Adjustments, HttpRequest, percent_encode};
use crate::channel::Channel;
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::{Completed, Link, ResultData, SpeechCall, SpeechProvider, Started};

const PATH: &str = "/v1/audio/tts";
/// The longest text of one call, in characters.
const MOST_CHARACTERS: usize = 1000;
/// The slowest and fastest pace.
const PACES: (f64, f64) = (0.8, 2.0);
/// How long a call may take; the answer holds the whole result.
const CALL_TIME: Duration = Duration::from_secs(120);
/// How long one is asked for, and how often, that the answer calls unfinished after all.
const REST_TIME: Duration = Duration::from_secs(120);
const REST_PAUSE: Duration = Duration::from_secs(2);
const POLL_TIME: Duration = Duration::from_secs(30);
/// The largest file of one part, in bytes: a thousand characters are a few minutes.
const LARGEST_PART: u64 = 32 * 1024 * 1024;

/// Voices for clients that name none. The provider's own examples, one per language.
#[derive(Clone)]
pub(super) struct Voices {
    zh: String,
    en: String,
}

impl Voices {
    /// The voices of a channel's option `voices`.
    pub(super) fn of(channel: &Channel) -> Result<Self, String> {
        let mut voices = Self {
            zh: "genshin_vindi2".to_owned(),
            en: "oversea_male1".to_owned(),
        };
        let Some(given) = channel.options.get("voices") else {
            return Ok(voices);
        };
        let wrong = |what: &Value| {
            format!(
                "`voices` must be a table of voice ids by language, zh and en, as in {{ zh = \"genshin_vindi2\" }}, got {what}"
            )
        };
        for (language, voice) in given.as_object().ok_or_else(|| wrong(given))? {
            let id = voice.as_str().filter(|id| !id.is_empty());
            let id = id.ok_or_else(|| wrong(given))?.to_owned();
            match language.as_str() {
                "zh" => voices.zh = id,
                "en" => voices.en = id,
                _ => return Err(wrong(given)),
            }
        }
        Ok(voices)
    }
}

#[async_trait]
impl SpeechProvider for Kling {
    async fn start(&self, call: SpeechCall<'_>) -> Result<Started, ProviderError> {
        tokio::select! {
            biased;
            () = call.attempt.cancel.cancelled() => Err(ProviderError::new(
                UpstreamErrorKind::Interrupted,
                "the speech was told to stop",
            )),
            done = self.speak(&call) => done.map(Started::Completed),
        }
    }
}

impl Kling {
    async fn speak(&self, call: &SpeechCall<'_>) -> Result<Completed, ProviderError> {
        let attempt = &call.attempt;
        let (settings, changes) = self.settings(call.job)?;
        changes.report_to(attempt.sink);
        let parts = text_parts::split(&call.job.text, MOST_CHARACTERS);
        let mut links = Vec::with_capacity(parts.len());
        // One after the other: the account's slots are shared by all its tasks.
        for (done, text) in parts.iter().enumerate() {
            let percent = u8::try_from(100 * done / parts.len()).unwrap_or_default();
            attempt.sink.progress(percent);
            let mut body = json!({ "text": text });
            if let (Some(body), Some(settings)) = (body.as_object_mut(), settings.as_object()) {
                body.extend(settings.clone());
            }
            links.push(self.say(&body, attempt.key).await?);
        }
        let made = match links.len() {
            1 => links.pop().map(ResultData::Link),
            _ => Some(self.joined(links)),
        };
        let made = made.ok_or_else(|| {
            ProviderError::new(UpstreamErrorKind::Rejected, "the text has nothing to say")
        })?;
        attempt.sink.deliver(made).await?;
        Ok(Completed::default())
    }

    /// Everything of a call but its text, and what differs from the job.
    fn settings(&self, job: &SpeechJob) -> Result<(Value, Adjustments), ProviderError> {
        let mut changes = Adjustments::for_unsupported_fields(job, &["voice", "speed", "language"]);
        let language = language(job)?;
        if let Some(asked) = job
            .language
            .as_deref()
            .filter(|asked| !asked.eq_ignore_ascii_case(language))
        {
            let why = "the provider knows languages, no regions";
            changes.replace_value("language", asked, language, why);
        }
        let voice = match (&job.voice, language) {
            (Some(voice), _) => voice,
            (None, "zh") => &self.voices.zh,
            (None, _) => &self.voices.en,
        };
        let mut settings = json!({ "voice_id": voice, "voice_language": language });
        if let Some(speed) = job.speed {
            let pace = pace(speed);
            let why = "the provider's paces are 0.8 to 2.0, with one decimal: the nearest";
            changes.replace_value("speed", speed, pace, why);
            settings["voice_speed"] = pace.into();
        }
        Ok((settings, changes))
    }

    /// Has one part spoken; returns where its file is.
    async fn say(&self, body: &Value, key: Option<&Secret>) -> Result<Link, ProviderError> {
        let url = [&self.base, PATH].concat();
        let make = || {
            HttpRequest::post(&url, body)
                .with_timeout(CALL_TIME)
                .creating()
        };
        let mut data = self.created(key, make).await?;
        let end = Instant::now() + REST_TIME;
        loop {
            match State::of(&data["task_status"]) {
                State::Completed => break,
                State::Failed => {
                    let words = data["task_status_msg"].as_str().unwrap_or_default();
                    return Err(response::failure(&self.client, words));
                }
                State::Open if Instant::now() >= end => {
                    let words = "the upstream did not finish the speech in time";
                    return Err(ProviderError::new(UpstreamErrorKind::Failed, words));
                }
                State::Open => {}
            }
            sleep(REST_PAUSE).await;
            let id = data["task_id"].as_str().unwrap_or_default();
            let url = format!("{url}/{}", percent_encode(id));
            data = self
                .data(key, || HttpRequest::get(&url).with_timeout(POLL_TIME))
                .await
                .map_err(accepted)?;
        }
        let audio = data["task_result"]["audios"][0]["url"].as_str();
        let audio = audio.ok_or_else(|| {
            let words = "the upstream's speech has no file";
            ProviderError::new(UpstreamErrorKind::Failed, words)
        })?;
        Ok(self.client.link(&self.base, audio, HeaderMap::new()))
    }

    /// The files of several parts as one, fetched one after the other while it is stored.
    fn joined(&self, links: Vec<Link>) -> ResultData {
        let client = Arc::clone(&self.client);
        let parts = stream::iter(links).then(move |link| {
            let client = Arc::clone(&client);
            async move {
                let file = client.fetch(&link, LARGEST_PART).await?;
                let sound = mp3::frames(&file).ok_or_else(|| {
                    let words = "a part of the upstream's speech is no MP3 file";
                    ProviderError::new(UpstreamErrorKind::Failed, words)
                })?;
                Ok(file.slice_ref(sound))
            }
        });
        ResultData::Stream(parts.boxed())
    }
}

/// An error on the way to speech that was accepted: it must not be made again for that.
fn accepted(error: ProviderError) -> ProviderError {
    if !error.kind.is_retryable() {
        return error;
    }
    ProviderError {
        kind: UpstreamErrorKind::OutcomeUnknown,
        ..error
    }
}

/// The voice's language: the one asked for, or the one whose script the text is in.
fn language(job: &SpeechJob) -> Result<&'static str, ProviderError> {
    let Some(asked) = &job.language else {
        let is_han = |c: char| matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}');
        return Ok(if job.text.contains(is_han) {
            "zh"
        } else {
            "en"
        });
    };
    let primary = asked.split(['-', '_']).next().unwrap_or_default();
    match primary.to_ascii_lowercase().as_str() {
        "zh" => Ok("zh"),
        "en" => Ok("en"),
        _ => {
            let words = format!(
                "`language` must be zh or en on the channel that serves this model, got {asked:?}"
            );
            Err(ProviderError::new(
                UpstreamErrorKind::UnsupportedByChannel,
                words,
            ))
        }
    }
}

/// `speed` as the provider takes it: within its range, with one decimal.
fn pace(speed: f64) -> f64 {
    (speed.clamp(PACES.0, PACES.1) * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paces_come_within_the_range() {
        for (speed, expected) in [
            (0.25, 0.8),
            (0.84, 0.8),
            (0.86, 0.9),
            (1.0, 1.0),
            (4.0, 2.0),
        ] {
            assert!((pace(speed) - expected).abs() < 1e-9, "{speed}");
        }
    }

    #[test]
    fn the_language_is_the_one_asked_for_or_the_scripts() {
        let check = |text: &str, asked: Option<&str>| {
            let job = json!({ "model": "m", "family": "f", "text": text, "language": asked, "extra": {} });
            language(&serde_json::from_value(job).unwrap()).ok()
        };
        assert_eq!(check("Hello", None), Some("en"));
        assert_eq!(check("Hello 世界", None), Some("zh"));
        assert_eq!(check("Hello", Some("zh-CN")), Some("zh"));
        assert_eq!(check("你好", Some("EN")), Some("en"));
        assert_eq!(check("Bonjour", Some("fr")), None);
    }
}
