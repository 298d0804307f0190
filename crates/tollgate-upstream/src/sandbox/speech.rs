//! The sandbox as a provider of speech.

use std::time::Duration;

use async_trait::async_trait;

use super::directives::Directives;
use super::voice::{Speaker, VoiceOrder};
use super::work::{Pace, obey};
use crate::provider::{
    Done, Made, ProviderError, ProviderErrorKind, SpeechCall, SpeechProvider, Started,
};

/// Speaks with the machine's own voice, or makes one up.
pub(super) struct SandboxSpeech {
    speaker: Speaker,
    /// How long a call takes where no directive says otherwise.
    time: Duration,
}

impl SandboxSpeech {
    pub(super) fn new(time: Duration) -> Self {
        Self {
            speaker: Speaker::find(),
            time,
        }
    }

    async fn work(
        &self,
        call: &SpeechCall<'_>,
        directives: &Directives,
        text: &str,
    ) -> Result<Done, ProviderError> {
        let delivery = call.attempt.delivery;
        let pace = Pace::new(directives.delay.unwrap_or(self.time), delivery, 1);
        if directives.partial == Some(0) {
            pace.rest(0).await;
            let message = "the sandbox was told to make nothing ([[sandbox:partial=K]])";
            let refused = vec![ProviderError::new(ProviderErrorKind::Failed, message)];
            return Ok(Done { refused });
        }
        let job = call.job;
        let order = VoiceOrder {
            text,
            voice: job.voice.as_deref().unwrap_or_default(),
            speed: job.speed.unwrap_or(1.0),
            language: job.language.as_deref(),
        };
        let sound = pace.during(0, self.speaker.speak(&order)).await;
        pace.rest(0).await;
        delivery.deliver(Made::Bytes(sound.into())).await?;
        Ok(Done::default())
    }
}

#[async_trait]
impl SpeechProvider for SandboxSpeech {
    async fn start(&self, call: SpeechCall<'_>) -> Result<Started, ProviderError> {
        let (directives, text) = Directives::parse(&call.job.text);
        obey(
            &call.attempt,
            &directives,
            self.work(&call, &directives, &text),
        )
        .await
    }
}
