//! The sandbox as an image provider.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::directives::Directives;
use crate::image::{ImageSpec, Renderer};
use crate::task::{Timer, moderated, run_attempt, run_on_cpu};
use tollgate_upstream::error::{ProviderError, UpstreamErrorKind};
use tollgate_upstream::provider::{
    Completed, ImageCall, ImageProvider, Moderation, ResultData, Started,
};

/// Generates images from prompt and seed.
pub(super) struct SandboxImages {
    /// The duration of a call without a `delay` directive.
    time: Duration,
}

impl SandboxImages {
    pub(super) fn new(time: Duration) -> Self {
        Self { time }
    }

    /// Renders and delivers the images one by one, and returns when the configured time has passed.
    async fn generate(
        &self,
        call: &ImageCall<'_>,
        directives: &Directives,
        text: &str,
    ) -> Result<Completed, ProviderError> {
        let requested = call.job.n;
        let time = directives.delay.unwrap_or(self.time);
        let timer = Timer::new(time, call.attempt.sink, requested);
        let delivered = directives.partial.unwrap_or(requested).min(requested);
        let spec = ImageSpec::for_call(call, text)?;
        let renderer = timer.during(0, run_on_cpu(|| Renderer::new(spec))).await?;
        let renderer = Arc::new(renderer);
        for index in 0..delivered {
            let renderer = Arc::clone(&renderer);
            let image = timer
                .during(index, run_on_cpu(move || renderer.encode_image(index)))
                .await?;
            call.attempt.sink.deliver(ResultData::Bytes(image)).await?;
            timer.report_delivered(index + 1);
        }
        timer.wait(delivered).await;
        Ok(Completed {
            failures: (delivered..requested)
                .map(|_| not_delivered(delivered))
                .collect(),
        })
    }
}

#[async_trait]
impl ImageProvider for SandboxImages {
    async fn start(&self, call: ImageCall<'_>) -> Result<Started, ProviderError> {
        let (directives, text) = Directives::parse(&call.job.prompt);
        run_attempt(
            &call.attempt,
            &directives,
            self.generate(&call, &directives, &text),
        )
        .await
    }
}

#[async_trait]
impl Moderation for SandboxImages {
    async fn check_prompt(&self, prompt: &str) -> Result<(), ProviderError> {
        if Directives::parse(prompt).0.moderated {
            return Err(moderated());
        }
        Ok(())
    }
}

fn not_delivered(delivered: u32) -> ProviderError {
    ProviderError::new(
        UpstreamErrorKind::Failed,
        format!(
            "the directive makes the sandbox generate {delivered} images only ([[sandbox:partial=K]])"
        ),
    )
}
