//! Sends requests at a steady rate, whatever their outcome, to show when the cluster responds and when it does not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::http::{Client, HttpRequest};

/// The interval between requests of each kind.
const INTERVAL: Duration = Duration::from_millis(100);
/// The time after which a request counts as failed.
const LIMIT: Duration = Duration::from_secs(3);

/// Requests of one kind.
#[derive(Default)]
pub(super) struct Probes {
    sent: AtomicU64,
    failed: AtomicU64,
    /// The times of successful responses.
    success_times: Mutex<Vec<Instant>>,
}

impl Probes {
    /// Sends chats through the load balancer at `address` until the runtime ends.
    pub(super) fn start_chats(runtime: &Handle, address: &str, key: &str) -> Arc<Self> {
        let body = json!({
            "model": "gpt-5",
            "messages": [{ "role": "user", "content": "Tell me of the harbour. [[sandbox:words=5]]" }],
        });
        Self::start(
            runtime,
            format!("http://{address}/v1/chat/completions"),
            key,
            body,
        )
    }

    /// Submits image tasks.
    pub(super) fn start_submissions(runtime: &Handle, address: &str, key: &str) -> Arc<Self> {
        let body =
            json!({ "model": "gpt-image-1-official", "prompt": "a lighthouse [[sandbox:fail]]" });
        Self::start(
            runtime,
            format!("http://{address}/v1/images/generations"),
            key,
            body,
        )
    }

    fn start(runtime: &Handle, url: String, key: &str, body: Value) -> Arc<Self> {
        let probes = Arc::new(Self::default());
        let (sender, key) = (Arc::clone(&probes), key.to_owned());
        runtime.spawn(async move {
            let mut ticks = interval(INTERVAL);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            loop {
                ticks.tick().await;
                let (probes, key, url) = (Arc::clone(&sender), key.clone(), url.clone());
                let body = body.clone();
                tokio::spawn(async move { probes.send(&key, HttpRequest::json(url, &body)).await });
            }
        });
        probes
    }

    async fn send(&self, key: &str, request: HttpRequest<'_>) {
        self.sent.fetch_add(1, Ordering::Relaxed);
        match timeout(LIMIT, Client::new().send(key, request)).await {
            Ok(Ok(response)) if response.status == 200 => {
                let success_times = self.success_times.lock();
                let mut success_times = success_times.unwrap_or_else(PoisonError::into_inner);
                success_times.push(Instant::now());
            }
            _ => {
                self.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The number of requests that were sent, and that failed.
    pub(super) fn counts(&self) -> [u64; 2] {
        [&self.sent, &self.failed].map(|count| count.load(Ordering::Relaxed))
    }

    /// The longest time between `began` and now without a successful response.
    pub(super) fn longest_gap(&self, began: Instant) -> Duration {
        let success_times = self.success_times.lock();
        let mut success_times = success_times
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        success_times.retain(|at| *at >= began);
        success_times.push(Instant::now());
        let mut before = began;
        let mut longest = Duration::ZERO;
        for at in success_times {
            longest = longest.max(at.saturating_duration_since(before));
            before = at;
        }
        longest
    }
}
