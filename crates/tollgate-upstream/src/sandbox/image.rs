//! The sandbox as an image provider: obeys the directives, takes its time, hands the pictures over.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::directives::Directives;
use super::picture::{Order, Studio};
use super::work::{Pace, draw, moderated, obey};
use crate::provider::{
    Done, ImageCall, ImageProvider, Made, ProviderError, ProviderErrorKind, Review, Started,
};

/// Makes pictures from prompt and seed.
pub(super) struct SandboxImages {
    /// How long a call takes where no directive says otherwise.
    time: Duration,
}

impl SandboxImages {
    pub(super) fn new(time: Duration) -> Self {
        Self { time }
    }

    /// Draws, delivers and reports until all asked pictures are there and the time is over.
    async fn work(
        &self,
        call: &ImageCall<'_>,
        directives: &Directives,
        text: &str,
    ) -> Result<Done, ProviderError> {
        let asked = call.job.n;
        let time = directives.delay.unwrap_or(self.time);
        let clock = Pace::new(time, call.attempt.delivery, asked);
        let wanted = directives.partial.unwrap_or(asked).min(asked);
        let order = Order::new(call, text)?;
        let studio = clock.during(0, draw(|| Studio::open(order))).await?;
        let studio = Arc::new(studio);
        for index in 0..wanted {
            let artist = studio.clone();
            let picture = clock
                .during(index, draw(move || artist.make(index)))
                .await?;
            call.attempt
                .delivery
                .deliver(Made::Bytes(picture.bytes))
                .await?;
            clock.delivered(index + 1);
        }
        clock.rest(wanted).await;
        Ok(Done {
            refused: (wanted..asked).map(|_| refused(wanted)).collect(),
        })
    }
}

#[async_trait]
impl ImageProvider for SandboxImages {
    async fn start(&self, call: ImageCall<'_>) -> Result<Started, ProviderError> {
        let (directives, text) = Directives::parse(&call.job.prompt);
        obey(
            &call.attempt,
            &directives,
            self.work(&call, &directives, &text),
        )
        .await
    }
}

#[async_trait]
impl Review for SandboxImages {
    async fn review(&self, prompt: &str) -> Result<(), ProviderError> {
        if Directives::parse(prompt).0.moderated {
            return Err(moderated());
        }
        Ok(())
    }
}

fn refused(delivered: u32) -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::Failed,
        format!("the sandbox was told to make only {delivered} ([[sandbox:partial=K]])"),
    )
}
