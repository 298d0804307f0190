//! Code that image, video and speech tasks share: failures by directive, the configured duration, progress, CPU permits.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use crate::directives::{Directives, FailureMode};
use tollgate_upstream::error::{ProviderError, UpstreamErrorKind};
use tollgate_upstream::provider::{Attempt, Completed, ResultSink, Started};

/// The number of progress reports per task.
const STEPS: u32 = 10;

/// Permits for CPU-bound work, for the complete process: one core is reserved for serving requests.
static CPU_PERMITS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Arc::new(Semaphore::new((cores - 1).max(1)))
});

/// Runs `work`, unless the directives make this attempt fail or hang. Ends with an error when the attempt is cancelled.
pub(super) async fn run_attempt(
    attempt: &Attempt<'_>,
    directives: &Directives,
    work: impl Future<Output = Result<Completed, ProviderError>>,
) -> Result<Started, ProviderError> {
    let result = async {
        let outcome = check_failure(directives, attempt.failed_attempts);
        if directives.hang || outcome.is_err() {
            // A failure takes the time of the `delay` directive, or no time without it: tests of retries should not wait for the configured duration
            // of a success.
            let delay = directives.delay.unwrap_or_default();
            Timer::new(delay, attempt.sink, 1).wait(0).await;
        }
        if directives.hang {
            std::future::pending::<()>().await;
        }
        outcome?;
        work.await
    };
    tokio::select! {
        biased;
        () = attempt.cancel.cancelled() => Err(ProviderError::new(
            UpstreamErrorKind::Interrupted,
            "the task was cancelled while the sandbox worked on it",
        )),
        result = result => result.map(Started::Completed),
    }
}

/// Fails with the error that the directives prescribe for this attempt, if they prescribe one.
fn check_failure(directives: &Directives, failed_attempts: u32) -> Result<(), ProviderError> {
    match directives.failure_mode(failed_attempts) {
        None => Ok(()),
        Some(FailureMode::Moderated) => Err(moderated()),
        Some(FailureMode::Status(status)) => Err(error_for_status(status)),
        Some(FailureMode::Fails) => Err(ProviderError::new(
            UpstreamErrorKind::Failed,
            "the request's directive says that it fails ([[sandbox:fail]])",
        )),
        Some(FailureMode::FailsAttempt(attempt)) => Err(ProviderError::new(
            UpstreamErrorKind::Unavailable,
            format!(
                "the request's directive says that attempt {attempt} fails ([[sandbox:fail=N]])"
            ),
        )),
    }
}

/// The error of an adapter whose upstream returns HTTP `status`.
fn error_for_status(status: u16) -> ProviderError {
    let kind = match status {
        401..=404 => UpstreamErrorKind::UnsupportedByChannel,
        408 | 409 | 429 => UpstreamErrorKind::Unavailable,
        400..=499 => UpstreamErrorKind::Rejected,
        // 5xx, and 1xx to 3xx, which are unexpected for a generation request.
        _ => UpstreamErrorKind::Unavailable,
    };
    ProviderError {
        status: Some(status),
        ..ProviderError::new(
            kind,
            format!("the sandbox responded with HTTP status {status}"),
        )
    }
}

/// The error of the `moderated` directive.
pub(super) fn moderated() -> ProviderError {
    ProviderError::new(
        UpstreamErrorKind::Moderated,
        "the directive makes the sandbox reject the prompt ([[sandbox:moderated]])",
    )
}

/// Runs CPU-bound `work` on a blocking thread under a permit. The thread holds the permit: it continues to the end of `work` even if this future is
/// dropped.
pub(super) async fn run_on_cpu<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ProviderError> + Send + 'static,
) -> Result<T, ProviderError> {
    let panicked = |_| {
        ProviderError::new(
            UpstreamErrorKind::Unavailable,
            "the sandbox's worker thread panicked",
        )
    };
    let permit = CPU_PERMITS
        .clone()
        .acquire_owned()
        .await
        .expect("the semaphore is never closed");
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work()
    })
    .await
    .map_err(panicked)?
}

/// Makes a task last the configured time and reports its progress in the meantime.
pub(super) struct Timer<'a> {
    sink: &'a dyn ResultSink,
    results: u32,
    start: Instant,
    total: Duration,
}

impl<'a> Timer<'a> {
    /// A timer for `results` results that together take the time `total`.
    pub(super) fn new(total: Duration, sink: &'a dyn ResultSink, results: u32) -> Self {
        Self {
            sink,
            results: results.max(1),
            start: Instant::now(),
            total,
        }
    }

    /// Awaits `work` on result number `index` and reports progress in the meantime.
    pub(super) async fn during<T>(&self, index: u32, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        tokio::select! {
            biased;
            output = &mut work => return output,
            () = self.wait(index) => {}
        }
        work.await
    }

    /// Reports that `delivered` results are delivered, if the configured time has passed (until then, progress follows the time).
    pub(super) fn report_delivered(&self, delivered: u32) {
        if self.start.elapsed() >= self.total {
            self.sink
                .progress(self.max_percent(delivered).saturating_sub(1));
        }
    }

    /// The percentage of all results that `delivered` results are: the maximum of the progress until another one is delivered.
    fn max_percent(&self, delivered: u32) -> u8 {
        let percent = 100 * u64::from(delivered) / u64::from(self.results);
        u8::try_from(percent).unwrap_or(100).min(100)
    }

    /// Waits until the configured time has passed, reporting progress. The progress stays below the percentage of `delivered` + 1 results, so that it
    /// is never ahead of the work.
    pub(super) async fn wait(&self, delivered: u32) {
        let max = self.max_percent(delivered + 1).saturating_sub(1);
        for step in 1..=STEPS {
            let due = self.start + self.total / STEPS * step;
            if due > Instant::now() {
                sleep_until(due).await;
                let percent = u8::try_from(100 * step / STEPS).unwrap_or(100);
                self.sink.progress(percent.min(max));
            }
        }
    }
}
