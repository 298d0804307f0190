//! The sandbox as an image provider: obeys the directives, takes its time, hands the pictures over.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use super::directives::{Directives, Doom};
use super::picture::{Order, Studio};
use crate::provider::{
    Delivery, ImageCall, ImageDone, ImageProvider, ProviderError, ProviderErrorKind, Review,
};

/// Progress is reported every time this share of the time has passed.
const STEPS: u32 = 10;

/// Drawing is bounded in the whole process, not per channel, so that one core is left for serving.
static DRAWING: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Arc::new(Semaphore::new((cores - 1).max(1)))
});

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
    ) -> Result<ImageDone, ProviderError> {
        let clock = Pace::new(directives.delay.unwrap_or(self.time), call);
        let asked = call.job.n;
        let wanted = directives.partial.unwrap_or(asked).min(asked);
        let order = Order::new(call, text)?;
        let studio = clock.during(0, draw(|| Studio::open(order))).await?;
        let studio = Arc::new(studio);
        for index in 0..wanted {
            let artist = studio.clone();
            let picture = clock
                .during(index, draw(move || artist.make(index)))
                .await?;
            call.delivery.picture(picture).await?;
            clock.delivered(index + 1);
        }
        clock.rest(wanted).await;
        Ok(ImageDone {
            refused: (wanted..asked).map(|_| refused(wanted)).collect(),
        })
    }
}

#[async_trait]
impl ImageProvider for SandboxImages {
    async fn generate(&self, call: ImageCall<'_>) -> Result<ImageDone, ProviderError> {
        let (directives, text) = Directives::parse(&call.job.prompt);
        let work = async {
            let verdict = verdict(&directives, call.failed_attempts);
            if directives.hang || verdict.is_err() {
                // A failure takes the time that the prompt asks for, none otherwise: tests of
                // retries should not wait for pictures that never come.
                let delay = directives.delay.unwrap_or_default();
                Pace::new(delay, &call).rest(0).await;
            }
            if directives.hang {
                std::future::pending::<()>().await;
            }
            verdict?;
            self.work(&call, &directives, &text).await
        };
        tokio::select! {
            biased;
            () = call.cancel.cancelled() => Err(ProviderError::new(
                ProviderErrorKind::Interrupted,
                "the sandbox was told to stop",
            )),
            done = work => done,
        }
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

/// How an attempt ends that the prompt dooms.
fn verdict(directives: &Directives, failed_attempts: u32) -> Result<(), ProviderError> {
    match directives.doom(failed_attempts) {
        None => Ok(()),
        Some(Doom::Moderated) => Err(moderated()),
        Some(Doom::Status(status)) => Err(answered(status)),
        Some(Doom::Fails) => Err(ProviderError::new(
            ProviderErrorKind::Failed,
            "the sandbox was told to fail ([[sandbox:fail]])",
        )),
        Some(Doom::FailsNow(attempt)) => Err(ProviderError::new(
            ProviderErrorKind::Retryable,
            format!(
                "the sandbox was told to fail this attempt, number {attempt} ([[sandbox:fail=N]])"
            ),
        )),
    }
}

/// What a real adapter makes of an upstream that answered with HTTP `status`.
fn answered(status: u16) -> ProviderError {
    let kind = match status {
        401..=404 => ProviderErrorKind::ChannelUnfit,
        408 | 409 | 429 => ProviderErrorKind::Retryable,
        400..=499 => ProviderErrorKind::Rejected,
        // 5xx; and below 400 an answer that makes no sense for a picture, which may go better.
        _ => ProviderErrorKind::Retryable,
    };
    ProviderError {
        status: Some(status),
        ..ProviderError::new(
            kind,
            format!("the sandbox answered with HTTP status {status}"),
        )
    }
}

fn moderated() -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::Moderated,
        "the sandbox was told to refuse this prompt ([[sandbox:moderated]])",
    )
}

fn refused(delivered: u32) -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::Failed,
        format!("the sandbox was told to make only {delivered} ([[sandbox:partial=K]])"),
    )
}

/// Runs one step of drawing on a blocking thread. The permit moves along: a call that is dropped in
/// the middle leaves its thread running to the end of the step, and that still counts.
async fn draw<T: Send + 'static>(
    step: impl FnOnce() -> Result<T, ProviderError> + Send + 'static,
) -> Result<T, ProviderError> {
    let broken = |_| ProviderError::new(ProviderErrorKind::Retryable, "the sandbox broke down");
    let permit = DRAWING
        .clone()
        .acquire_owned()
        .await
        .expect("the semaphore is never closed");
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        step()
    })
    .await
    .map_err(broken)?
}

/// The time a call takes, and the progress reports while it passes.
struct Pace<'a> {
    delivery: &'a dyn Delivery,
    pictures: u32,
    start: Instant,
    total: Duration,
}

impl<'a> Pace<'a> {
    fn new(total: Duration, call: &ImageCall<'a>) -> Self {
        Self {
            delivery: call.delivery,
            pictures: call.job.n.max(1),
            start: Instant::now(),
            total,
        }
    }

    /// Waits for `work` on picture `index`, reporting progress meanwhile.
    async fn during<T>(&self, index: u32, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = self.report(index) => {}
        }
        work.await
    }

    /// Reports `made` pictures, where the time is over and no longer tells how far the work is.
    fn delivered(&self, made: u32) {
        if self.start.elapsed() >= self.total {
            self.delivery.progress(self.ceiling(made).saturating_sub(1));
        }
    }

    /// The share of `made` pictures in percent.
    fn ceiling(&self, made: u32) -> u8 {
        let percent = 100 * u64::from(made) / u64::from(self.pictures);
        u8::try_from(percent).unwrap_or(100).min(100)
    }

    /// Waits for what is left of the time, `made` pictures being done.
    async fn rest(&self, made: u32) {
        self.report(made).await;
    }

    /// Reports at every step of the time until it is over. What is reported never runs ahead of
    /// the pictures: the last percents belong to the one being drawn.
    async fn report(&self, made: u32) {
        let ceiling = self.ceiling(made + 1).saturating_sub(1);
        for step in 1..=STEPS {
            let due = self.start + self.total / STEPS * step;
            if due > Instant::now() {
                sleep_until(due).await;
                let percent = u8::try_from(100 * step / STEPS).unwrap_or(100);
                self.delivery.progress(percent.min(ceiling));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_mean_what_they_mean_from_a_real_upstream() {
        use ProviderErrorKind::{ChannelUnfit, Rejected, Retryable};
        for (status, kind) in [
            (200, Retryable),
            (302, Retryable),
            (400, Rejected),
            (401, ChannelUnfit),
            (402, ChannelUnfit),
            (403, ChannelUnfit),
            (404, ChannelUnfit),
            (408, Retryable),
            (409, Retryable),
            (413, Rejected),
            (422, Rejected),
            (429, Retryable),
            (500, Retryable),
            (503, Retryable),
        ] {
            let error = answered(status);
            assert_eq!((error.kind, error.status), (kind, Some(status)), "{status}");
        }
    }
}
