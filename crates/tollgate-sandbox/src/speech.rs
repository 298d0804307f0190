//! The sandbox as a speech provider.

use std::time::Duration;

use async_trait::async_trait;

use crate::directives::Directives;
use crate::synthesis::{SpeechEngine, Utterance};
use crate::task::{Timer, run_attempt};
use tollgate_upstream::error::{ProviderError, UpstreamErrorKind};
use tollgate_upstream::provider::{Completed, ResultData, SpeechCall, SpeechProvider, Started};

/// Synthesises speech with `espeak-ng` if it is installed, otherwise with the built-in synthesiser.
pub(super) struct SandboxSpeech {
    engine: SpeechEngine,
    /// The duration of a call without a `delay` directive.
    time: Duration,
}

impl SandboxSpeech {
    pub(super) fn new(time: Duration) -> Self {
        Self {
            engine: SpeechEngine::find(),
            time,
        }
    }

    /// Synthesises and delivers the speech, and returns when the configured time has passed.
    async fn generate(
        &self,
        call: &SpeechCall<'_>,
        directives: &Directives,
        text: &str,
    ) -> Result<Completed, ProviderError> {
        let sink = call.attempt.sink;
        let timer = Timer::new(directives.delay.unwrap_or(self.time), sink, 1);
        if directives.partial == Some(0) {
            timer.wait(0).await;
            let message =
                "the directive makes the sandbox generate no speech ([[sandbox:partial=0]])";
            let failures = vec![ProviderError::new(UpstreamErrorKind::Failed, message)];
            return Ok(Completed { failures });
        }
        let job = call.job;
        let utterance = Utterance {
            text,
            voice: job.voice.as_deref().unwrap_or_default(),
            speed: job.speed.unwrap_or(1.0),
            language: job.language.as_deref(),
        };
        let wav = timer.during(0, self.engine.speak(&utterance)).await;
        timer.wait(0).await;
        sink.deliver(ResultData::Bytes(wav.into())).await?;
        Ok(Completed::default())
    }
}

#[async_trait]
impl SpeechProvider for SandboxSpeech {
    async fn start(&self, call: SpeechCall<'_>) -> Result<Started, ProviderError> {
        let (directives, text) = Directives::parse(&call.job.text);
        run_attempt(
            &call.attempt,
            &directives,
            self.generate(&call, &directives, &text),
        )
        .await
    }
}
