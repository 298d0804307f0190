//! What all sandbox work on tasks shares: directives obeyed, time taken, progress told, one step at a time on the processor.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use super::directives::{Directives, Doom};
use crate::provider::{Attempt, Delivery, Done, ProviderError, ProviderErrorKind, Started};

/// Progress is reported every time this share of the time has passed.
const STEPS: u32 = 10;

/// Drawing is bounded in the whole process, not per channel, so that one core is left for serving.
static DRAWING: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Arc::new(Semaphore::new((cores - 1).max(1)))
});

/// Does `work` unless the directives doom the attempt, until it is told to stop.
pub(super) async fn obey(
    attempt: &Attempt<'_>,
    directives: &Directives,
    work: impl Future<Output = Result<Done, ProviderError>>,
) -> Result<Started, ProviderError> {
    let done = async {
        let verdict = verdict(directives, attempt.failed_attempts);
        if directives.hang || verdict.is_err() {
            // A failure takes the time that the prompt asks for, none otherwise: tests of
            // retries should not wait for results that never come.
            let delay = directives.delay.unwrap_or_default();
            Pace::new(delay, attempt.delivery, 1).rest(0).await;
        }
        if directives.hang {
            std::future::pending::<()>().await;
        }
        verdict?;
        work.await
    };
    tokio::select! {
        biased;
        () = attempt.cancel.cancelled() => Err(ProviderError::new(
            ProviderErrorKind::Interrupted,
            "the sandbox was told to stop",
        )),
        done = done => done.map(Started::Done),
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

pub(super) fn moderated() -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::Moderated,
        "the sandbox was told to refuse this prompt ([[sandbox:moderated]])",
    )
}

/// Runs one step of drawing on a blocking thread. The permit moves along: a call that is dropped in
/// the middle leaves its thread running to the end of the step, and that still counts.
pub(super) async fn draw<T: Send + 'static>(
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
pub(super) struct Pace<'a> {
    delivery: &'a dyn Delivery,
    pictures: u32,
    start: Instant,
    total: Duration,
}

impl<'a> Pace<'a> {
    /// For work of `pictures` results that is to take `total`.
    pub(super) fn new(total: Duration, delivery: &'a dyn Delivery, pictures: u32) -> Self {
        Self {
            delivery,
            pictures: pictures.max(1),
            start: Instant::now(),
            total,
        }
    }

    /// Waits for `work` on picture `index`, reporting progress meanwhile.
    pub(super) async fn during<T>(&self, index: u32, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = self.report(index) => {}
        }
        work.await
    }

    /// Reports `made` pictures, where the time is over and no longer tells how far the work is.
    pub(super) fn delivered(&self, made: u32) {
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
    pub(super) async fn rest(&self, made: u32) {
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
