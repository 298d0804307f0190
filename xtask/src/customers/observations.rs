//! [`Observations`]: what customers observed: acknowledged tasks, final records, uploads, costs, violations.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::chat_costs::ChatCosts;
use super::record_check::Cancel;
use super::submission::Submission;

/// The maximum number of printed violations with the same beginning, and the length of that beginning.
const ALIKE: usize = 4;
const BEGINNING: usize = 8;

/// An acknowledged task.
#[derive(Clone)]
pub(super) struct Promise {
    pub(super) account: usize,
    pub(super) key: String,
    pub(super) submission: Submission,
    pub(super) cancel: Cancel,
    /// The record that was observed when the task had ended; it never changes again.
    pub(super) seen: Option<Value>,
}

/// Counters.
#[derive(Default)]
pub(crate) struct Counts {
    /// Requests that submitted something, including repetitions.
    pub(crate) submissions: AtomicU64,
    /// Submissions whose response was lost because the connection broke.
    pub(crate) cut_off: AtomicU64,
    /// Repeated receipts for the same idempotency key.
    pub(crate) repeated: AtomicU64,
    /// Submissions rejected for lack of balance (402).
    pub(crate) rejected: AtomicU64,
    /// Responses that shed load or found the database unavailable (429, 502, 503).
    pub(crate) shed: AtomicU64,
    pub(crate) polls: AtomicU64,
    pub(crate) downloads: AtomicU64,
    pub(crate) audits: AtomicU64,
    /// The number of times the disk was full.
    pub(crate) full_disks: AtomicU64,
    pub(crate) completed: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) cancelled: AtomicU64,
    pub(crate) chats: AtomicU64,
    /// Chats with a complete response.
    pub(crate) chats_complete: AtomicU64,
    /// Chats whose response is incomplete.
    pub(crate) chats_cut_off: AtomicU64,
}

/// Increments a counter.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// All observations, shared by the customers.
#[derive(Default)]
pub(crate) struct Observations {
    pub(crate) counts: Counts,
    promises: Mutex<HashMap<String, Promise>>,
    uploads: Mutex<Vec<(String, Bytes)>>,
    chats: Mutex<HashMap<usize, ChatCosts>>,
    restarts: Mutex<Vec<Duration>>,
    violations: Mutex<Vec<String>>,
    stopped: AtomicBool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observations {
    /// Makes every customer stop starting new requests.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn go_on(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }

    /// Records that something is not as promised.
    pub(crate) fn violation(&self, what: impl Into<String>) {
        locked(&self.violations).push(what.into());
    }

    /// Prints the violations, but only a few that are alike. Returns the number of violations.
    pub(crate) fn print_violations(&self) -> usize {
        let violations = locked(&self.violations);
        let mut printed: HashMap<&str, usize> = HashMap::new();
        for violation in violations.iter() {
            let beginning = violation.get(..BEGINNING).unwrap_or(violation);
            let alike = printed.entry(beginning).or_default();
            *alike += 1;
            if *alike <= ALIKE {
                println!("VIOLATION: {violation}");
            }
        }
        violations.len()
    }

    /// Records an acknowledged task.
    pub(super) fn promised(&self, id: &str, promise: Promise) {
        let mut promises = locked(&self.promises);
        promises.entry(id.to_owned()).or_insert(promise);
    }

    /// Records what is known about a task's cancellation.
    pub(super) fn cancelled(&self, id: &str, cancel: Cancel) {
        if let Some(promise) = locked(&self.promises).get_mut(id) {
            promise.cancel = cancel;
        }
    }

    /// Records the final record of a task; returns the record that was observed before.
    pub(super) fn seen(&self, id: &str, record: &Value) -> Option<Value> {
        let mut promises = locked(&self.promises);
        promises.get_mut(id)?.seen.replace(record.clone())
    }

    /// The acknowledged task with that id.
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

    /// Records an upload and the bytes that a download must return.
    pub(super) fn uploaded(&self, url: &str, bytes: Bytes) {
        locked(&self.uploads).push((url.to_owned(), bytes));
    }

    /// Every upload.
    pub(super) fn uploads(&self) -> Vec<(String, Bytes)> {
        locked(&self.uploads).clone()
    }

    /// Records what a chat of an account cost, and how much more it may have cost at most.
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

    /// Records a kill, and the time of the restart until the gateway listened.
    pub(crate) fn restarted(&self, took: Duration) {
        locked(&self.restarts).push(took);
    }

    /// The number of acknowledged tasks and complete chats.
    pub(crate) fn acknowledged(&self) -> u64 {
        let tasks = locked(&self.promises).len() as u64;
        tasks + self.counts.chats_complete.load(Ordering::Relaxed)
    }

    /// The summary that is printed.
    pub(crate) fn summary(&self, settled: Duration) -> String {
        let counts = &self.counts;
        let restarts = locked(&self.restarts);
        let slowest = restarts.iter().max().copied().unwrap_or_default();
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed).to_string();
        let mut lines = Vec::new();
        if !restarts.is_empty() {
            lines.push(("kill -9 and restarts", restarts.len().to_string()));
            let slowest = format!("{:.2} s", slowest.as_secs_f64());
            lines.push(("slowest restart", slowest));
        }
        lines.extend([
            (
                "last task final after",
                format!("{:.1} s", settled.as_secs_f64()),
            ),
            ("submissions sent", number(&counts.submissions)),
            ("  cut off", number(&counts.cut_off)),
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
        ]);
        if counts.full_disks.load(Ordering::Relaxed) > 0 {
            lines.push(("times that the disk was full", number(&counts.full_disks)));
        }
        lines.push(("violations", locked(&self.violations).len().to_string()));
        let mut text = String::new();
        for (name, value) in lines {
            let _ = writeln!(text, "{name:<32}{value:>10}");
        }
        text.trim_end().to_owned()
    }
}
