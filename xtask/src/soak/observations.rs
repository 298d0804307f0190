//! What clients observed during a soak: acknowledged tasks, final records, uploads, costs, violations.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::chats::ChatCosts;
use super::record_check::Cancel;
use super::submission::Submission;

/// An acknowledged task.
#[derive(Clone)]
pub(super) struct Promise {
    pub(super) account: usize,
    pub(super) key: String,
    pub(super) submission: Submission,
    pub(super) cancel: Cancel,
    /// The record that was seen when the task had ended; it never changes again.
    pub(super) seen: Option<Value>,
}

/// Counters.
#[derive(Default)]
pub(super) struct Counts {
    /// Requests that submitted something, repetitions included.
    pub(super) submissions: AtomicU64,
    /// Submissions whose answer was lost with their connection.
    pub(super) cut_off: AtomicU64,
    /// Repeated receipts for the same idempotency key.
    pub(super) repeated: AtomicU64,
    /// Submissions rejected for lack of balance (402).
    pub(super) rejected: AtomicU64,
    /// Responses that shed load or found the database unavailable (429, 502, 503).
    pub(super) shed: AtomicU64,
    pub(super) polls: AtomicU64,
    pub(super) downloads: AtomicU64,
    pub(super) audits: AtomicU64,
    /// How often the disk was full.
    pub(super) full_disks: AtomicU64,
    pub(super) completed: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) cancelled: AtomicU64,
    pub(super) chats: AtomicU64,
    /// Chats without their end.
    pub(super) chats_cut_off: AtomicU64,
}

/// Adds one.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// All observations, shared by the customers.
#[derive(Default)]
pub(super) struct Observations {
    pub(super) counts: Counts,
    promises: Mutex<HashMap<String, Promise>>,
    uploads: Mutex<Vec<(String, Bytes)>>,
    chats: Mutex<HashMap<usize, ChatCosts>>,
    restarts: Mutex<Vec<Duration>>,
    violations: Mutex<Vec<String>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observations {
    /// Observations that something is not as it was promised.
    pub(super) fn violation(&self, what: impl Into<String>) {
        locked(&self.violations).push(what.into());
    }

    /// What was not as promised.
    pub(super) fn violations(&self) -> Vec<String> {
        locked(&self.violations).clone()
    }

    /// Observations an acknowledged task.
    pub(super) fn promised(&self, id: &str, promise: Promise) {
        let mut promises = locked(&self.promises);
        promises.entry(id.to_owned()).or_insert(promise);
    }

    /// Observations what is known about a task's cancellation.
    pub(super) fn cancelled(&self, id: &str, cancel: Cancel) {
        if let Some(promise) = locked(&self.promises).get_mut(id) {
            promise.cancel = cancel;
        }
    }

    /// Observations the final record of a task; returns the one that was seen before.
    pub(super) fn seen(&self, id: &str, record: &Value) -> Option<Value> {
        let mut promises = locked(&self.promises);
        promises.get_mut(id)?.seen.replace(record.clone())
    }

    /// An acknowledged task.
    pub(super) fn promise(&self, id: &str) -> Option<Promise> {
        locked(&self.promises).get(id).cloned()
    }

    /// Every acknowledged task.
    pub(super) fn promises(&self) -> Vec<(String, Promise)> {
        let promises = locked(&self.promises);
        promises
            .iter()
            .map(|(id, p)| (id.clone(), p.clone()))
            .collect()
    }

    /// Observations an upload and the bytes that must come back.
    pub(super) fn uploaded(&self, url: &str, bytes: Bytes) {
        locked(&self.uploads).push((url.to_owned(), bytes));
    }

    /// Every upload.
    pub(super) fn uploads(&self) -> Vec<(String, Bytes)> {
        locked(&self.uploads).clone()
    }

    /// Observations what a chat of an account cost, or what it may have cost at the most.
    pub(super) fn chatted(&self, account: usize, known: i64, at_most_more: i64) {
        let mut chats = locked(&self.chats);
        let costs = chats.entry(account).or_default();
        costs.known += known;
        costs.at_most_more += at_most_more;
    }

    /// What the chats of an account cost.
    pub(super) fn chats_of(&self, account: usize) -> ChatCosts {
        locked(&self.chats)
            .get(&account)
            .copied()
            .unwrap_or_default()
    }

    /// Observations a kill, and how long the restart after it took until the gateway listened.
    pub(super) fn restarted(&self, took: Duration) {
        locked(&self.restarts).push(took);
    }

    /// The summary that is printed.
    pub(super) fn summary(&self, settled: Duration) -> String {
        let counts = &self.counts;
        let restarts = locked(&self.restarts);
        let slowest = restarts.iter().max().copied().unwrap_or_default();
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed).to_string();
        let lines = [
            ("kill -9 and restarts", restarts.len().to_string()),
            ("slowest restart", format!("{:.2} s", slowest.as_secs_f64())),
            (
                "last task final after",
                format!("{:.1} s", settled.as_secs_f64()),
            ),
            ("submissions sent", number(&counts.submissions)),
            ("  cut off by a kill", number(&counts.cut_off)),
            ("  rejected, balance too low", number(&counts.rejected)),
            ("  shed (429, 502, 503)", number(&counts.shed)),
            ("  repeated receipts", number(&counts.repeated)),
            (
                "tasks acknowledged",
                locked(&self.promises).len().to_string(),
            ),
            ("  completed", number(&counts.completed)),
            ("  failed as ordered", number(&counts.failed)),
            ("  cancelled", number(&counts.cancelled)),
            ("chats", number(&counts.chats)),
            ("  cut off", number(&counts.chats_cut_off)),
            ("polls", number(&counts.polls)),
            ("uploads", locked(&self.uploads).len().to_string()),
            ("files downloaded and decoded", number(&counts.downloads)),
            ("audits", number(&counts.audits)),
            ("times that the disk was full", number(&counts.full_disks)),
            ("violations", locked(&self.violations).len().to_string()),
        ];
        let mut text = String::new();
        for (name, value) in lines {
            let _ = writeln!(text, "{name:<32}{value:>10}");
        }
        text.trim_end().to_owned()
    }
}
