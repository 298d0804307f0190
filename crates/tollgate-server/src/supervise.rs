//! Runs background loops: a loop that ends or panics is restarted, which is logged and counted in the metrics.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

/// Pause before a restart; doubled as long as the loop keeps ending.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// If a loop ran this long, its next restart has the first pause again.
const STABLE_AFTER: Duration = Duration::from_secs(60);

/// Starts a loop.
type Start<'a> = dyn Fn() -> BoxFuture<'static, ()> + Send + Sync + 'a;

/// Runs a loop until it returns after `stop` has fired; if it returns before that, or panics, it is restarted. Dropping the future stops the loop.
pub fn run_forever<'a, Loop>(
    name: &'static str,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
    start: impl Fn() -> Loop + Send + Sync + 'a,
) -> BoxFuture<'a, ()>
where
    Loop: Future<Output = ()> + Send + 'static,
{
    // Boxed: the code below is compiled once, not once for each loop.
    let start = Box::new(move || Box::pin(start()) as BoxFuture<'static, ()>);
    Box::pin(restart_forever(name, metrics, stop, start))
}

async fn restart_forever(
    name: &'static str,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
    start: Box<Start<'_>>,
) {
    let mut pause = FIRST_PAUSE;
    loop {
        let started = Instant::now();
        // Dropping the set aborts the loop.
        let mut running = JoinSet::new();
        running.spawn(start());
        let panic = match running.join_next().await {
            Some(Err(e)) => Some(e.to_string()),
            _ if stop.is_cancelled() => return,
            _ => None,
        };
        tracing::error!(
            job = name,
            panic,
            "a background loop ended; it is restarted"
        );
        metrics.background_failure(name);
        if started.elapsed() >= STABLE_AFTER {
            pause = FIRST_PAUSE;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tollgate_store::WriterStats;

    use super::*;
    use crate::metrics::TextFormat;

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_ends_or_panics_is_restarted_until_it_is_stopped() {
        let (metrics, stop) = (Arc::new(Metrics::new()), CancellationToken::new());
        let starts = Arc::new(AtomicU32::new(0));
        let start = {
            let (starts, stop) = (Arc::clone(&starts), stop.clone());
            move || {
                let start = starts.fetch_add(1, Ordering::Relaxed);
                let stop = stop.clone();
                async move {
                    match start {
                        0 => std::panic::resume_unwind(Box::new("a defect")),
                        1 => {}
                        // A loop that panics after `stop` has fired is restarted too, so that it can end its work properly.
                        2 => {
                            stop.cancel();
                            std::panic::resume_unwind(Box::new("another"))
                        }
                        _ => stop.cancelled().await,
                    }
                }
            }
        };
        run_forever("test", Arc::clone(&metrics), stop, start).await;
        assert_eq!(starts.load(Ordering::Relaxed), 4);
        let text = metrics.render(&WriterStats::default(), TextFormat::Prometheus);
        let line = r#"tollgate_background_failures_total{job="test"} 3"#;
        assert!(text.contains(line), "{text}");
    }
}
