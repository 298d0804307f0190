//! Runs work on large bodies outside the event loop, so that it does not delay other requests.

use std::sync::LazyLock;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tollgate_core::ApiError;

/// From this many bytes on, work on a body runs outside the event loop: work on a smaller body takes less than a millisecond.
pub const LARGE: usize = 256 * 1024;

/// At most as many large bodies are parsed at the same time as there are processors.
static PARSERS: LazyLock<Semaphore> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism();
    Semaphore::new(processors.map_or(1, usize::from))
});

/// Runs `work` on a body of `bytes` bytes, on another thread if the body is large.
///
/// # Errors
/// 500 if the work panics.
pub(super) async fn run<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    if bytes < LARGE {
        return Ok(work());
    }
    let _permit = PARSERS.acquire().await;
    let outcome = tokio::task::spawn_blocking(work).await;
    outcome.map_err(|_| ApiError::internal())
}

/// Runs `work` on a body of `bytes` bytes; if it is large, the other tasks of this thread are moved to another thread first.
pub fn run_in_place<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let can_move = || Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
    if bytes >= LARGE && can_move() {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}
