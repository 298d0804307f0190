//! [`Observations`]: what customers observed: acknowledged tasks, final records, uploads, costs, violations.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::chat_costs::ChatCosts;
use super::record_check::Cancellation;
use super::submission::Submission;

/// The maximum number of printed violations with the same prefix, and the length of that prefix.
const MAX_SIMILAR: usize = 4;
const PREFIX_LENGTH: usize = 8;

/// An acknowledged task.
#[derive(Clone)]
pub(super) struct AcknowledgedTask {
    pub(super) account: usize,
    pub(super) key: String,
    pub(super) submission: Submission,
    pub(super) cancellation: Cancellation,
    /// The record that was observed when the task had ended; it never changes again.
    pub(super) final_record: Option<Value>,
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
pub(crate) fn increment(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// All observations, shared by the customers.
#[derive(Default)]
pub(crate) struct Observations {
    pub(crate) counts: Counts,
    acknowledged_tasks: Mutex<HashMap<String, AcknowledgedTask>>,
    uploads: Mutex<Vec<(String, Bytes)>>,
    chat_costs: Mutex<HashMap<usize, ChatCosts>>,
    restarts: Mutex<Vec<Duration>>,
    violations: Mutex<Vec<String>>,
    stopped: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observations {
    /// Makes every customer stop starting new requests.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_running(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }

    /// Records a mismatch between what the gateways acknowledged and what they report.
    pub(crate) fn record_violation(&self, what: impl Into<String>) {
        lock(&self.violations).push(what.into());
    }

    /// Prints the violations, but only a few with the same prefix. Returns the number of violations.
    pub(crate) fn print_violations(&self) -> usize {
        let violations = lock(&self.violations);
        let mut printed: HashMap<&str, usize> = HashMap::new();
        for violation in violations.iter() {
            let prefix = violation.get(..PREFIX_LENGTH).unwrap_or(violation);
            let similar = printed.entry(prefix).or_default();
            *similar += 1;
            if *similar <= MAX_SIMILAR {
                println!("VIOLATION: {violation}");
            }
        }
        violations.len()
    }

    /// Records an acknowledged task.
    pub(super) fn record_acknowledged(&self, id: &str, task: AcknowledgedTask) {
        let mut tasks = lock(&self.acknowledged_tasks);
        tasks.entry(id.to_owned()).or_insert(task);
    }

    /// Records the state of a task's cancellation.
    pub(super) fn record_cancellation(&self, id: &str, cancellation: Cancellation) {
        if let Some(task) = lock(&self.acknowledged_tasks).get_mut(id) {
            task.cancellation = cancellation;
        }
    }

    /// Records the final record of a task; returns the final record that was observed before.
    pub(super) fn record_final(&self, id: &str, record: &Value) -> Option<Value> {
        let mut tasks = lock(&self.acknowledged_tasks);
        tasks.get_mut(id)?.final_record.replace(record.clone())
    }

    /// The acknowledged task with that id.
    pub(super) fn acknowledged_task(&self, id: &str) -> Option<AcknowledgedTask> {
        lock(&self.acknowledged_tasks).get(id).cloned()
    }

    /// Every acknowledged task.
    pub(super) fn acknowledged_tasks(&self) -> Vec<(String, AcknowledgedTask)> {
        let tasks = lock(&self.acknowledged_tasks);
        tasks
            .iter()
            .map(|(id, task)| (id.clone(), task.clone()))
            .collect()
    }

    /// Records an upload and the bytes that a download must return.
    pub(super) fn record_upload(&self, url: &str, bytes: Bytes) {
        lock(&self.uploads).push((url.to_owned(), bytes));
    }

    /// Every upload.
    pub(super) fn uploads(&self) -> Vec<(String, Bytes)> {
        lock(&self.uploads).clone()
    }

    /// Adds the cost of a chat of an account: the exact cost, and the maximum of an additional cost that is not known.
    pub(super) fn add_chat_cost(&self, account: usize, exact: i64, max_additional: i64) {
        let mut chat_costs = lock(&self.chat_costs);
        let costs = chat_costs.entry(account).or_default();
        costs.exact += exact;
        costs.max_additional += max_additional;
    }

    /// The costs of the chats of an account.
    pub(super) fn chat_costs(&self, account: usize) -> ChatCosts {
        lock(&self.chat_costs)
            .get(&account)
            .copied()
            .unwrap_or_default()
    }

    /// Records a kill, and the time of the restart until the gateway listened.
    pub(crate) fn record_restart(&self, took: Duration) {
        lock(&self.restarts).push(took);
    }

    /// The number of acknowledged tasks and complete chats.
    pub(crate) fn acknowledged_count(&self) -> u64 {
        let tasks = lock(&self.acknowledged_tasks).len() as u64;
        tasks + self.counts.chats_complete.load(Ordering::Relaxed)
    }

    /// The summary that is printed.
    pub(crate) fn summary(&self, settled: Duration) -> String {
        let counts = &self.counts;
        let restarts = lock(&self.restarts);
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
                lock(&self.acknowledged_tasks).len().to_string(),
            ),
            ("  completed", number(&counts.completed)),
            ("  failed as expected", number(&counts.failed)),
            ("  cancelled", number(&counts.cancelled)),
            ("chats", number(&counts.chats)),
            ("  cut off", number(&counts.chats_cut_off)),
            ("polls", number(&counts.polls)),
            ("uploads", lock(&self.uploads).len().to_string()),
            ("files downloaded and decoded", number(&counts.downloads)),
            ("audits", number(&counts.audits)),
        ]);
        if counts.full_disks.load(Ordering::Relaxed) > 0 {
            lines.push(("times that the disk was full", number(&counts.full_disks)));
        }
        lines.push(("violations", lock(&self.violations).len().to_string()));
        let mut text = String::new();
        for (name, value) in lines {
            let _ = writeln!(text, "{name:<32}{value:>10}");
        }
        text.trim_end().to_owned()
    }
}
