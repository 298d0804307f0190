//! Records the events of a process for the live tail while there is a watcher.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};
use tollgate_core::{Amount, Millis, id};

use crate::admin::json::{amount_json, time_json};
use crate::db::{DbError, Sql, Tx, args};

/// The most events that a process records in a second, and that it may record at once.
const EVENTS_PER_SECOND: f64 = 500.0;

const INSERT_EVENTS: Sql = Sql::both(
    "INSERT INTO tail_events (source, seq, at, events, omitted) VALUES ($1, $2, $3, $4, $5)",
);

/// An event of a task or chat.
pub(crate) struct TailEvent<'a> {
    /// `task` or `chat`.
    pub(crate) kind: &'static str,
    pub(crate) id: &'a str,
    /// The state of the task or the outcome of the chat.
    pub(crate) state: &'a str,
    pub(crate) model: &'a str,
    pub(crate) user_id: &'a str,
    pub(crate) key_id: &'a str,
    pub(crate) channel: Option<&'a str>,
    pub(crate) cost: Amount,
    pub(crate) at: Millis,
}

impl TailEvent<'_> {
    fn to_json(&self) -> Value {
        let state = match self.kind {
            "task" => "state",
            _ => "outcome",
        };
        json!([self.kind, {
            "id": self.id,
            state: self.state,
            "model": self.model,
            "user_id": self.user_id,
            "key_id": self.key_id,
            "channel": self.channel.filter(|channel| !channel.is_empty()),
            "cost": amount_json(self.cost),
            "at": time_json(self.at),
        }])
    }
}

/// Records the events of this process.
pub(crate) struct TailRecorder {
    source: String,
    is_watched: AtomicBool,
    /// Until when there is a watcher, as far as this process knows.
    watched_until: Mutex<Millis>,
    last_seq: AtomicI64,
    allowance: Mutex<Allowance>,
}

/// How many events may be recorded now.
struct Allowance {
    events: f64,
    at: Instant,
}

impl Default for TailRecorder {
    fn default() -> Self {
        Self {
            source: id::short_id(""),
            is_watched: AtomicBool::new(false),
            watched_until: Mutex::new(0),
            last_seq: AtomicI64::new(0),
            allowance: Mutex::new(Allowance {
                events: EVENTS_PER_SECOND,
                at: Instant::now(),
            }),
        }
    }
}

impl TailRecorder {
    /// Records until `until`, or until a later time that was known before, if that is after `now`.
    pub(super) fn watch_until(&self, until: Millis, now: Millis) {
        // Both are changed while the lock is held: an older value from the database must not end a newer request.
        let known = self.watched_until.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        *known = until.max(*known);
        self.is_watched.store(*known > now, Ordering::Relaxed);
    }

    /// Returns how many of `wanted` events may be recorded now, and deducts them.
    fn take(&self, wanted: usize) -> usize {
        let mut allowance = self
            .allowance
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let since = now.duration_since(allowance.at).as_secs_f64();
        allowance.events = (allowance.events + since * EVENTS_PER_SECOND).min(EVENTS_PER_SECOND);
        allowance.at = now;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to 500
        let taken = wanted.min(allowance.events as usize);
        allowance.events -= taken as f64;
        taken
    }
}

/// The events of a batch.
#[derive(Default)]
pub(crate) struct PendingTail {
    is_watched: bool,
    events: Vec<Value>,
    last_at: Millis,
}

impl PendingTail {
    pub(crate) fn new(recorder: &TailRecorder) -> Self {
        Self {
            is_watched: recorder.is_watched.load(Ordering::Relaxed),
            ..Self::default()
        }
    }

    /// Adds an event if there is a watcher.
    pub(crate) fn add(&mut self, event: &TailEvent<'_>) {
        if self.is_watched {
            self.last_at = self.last_at.max(event.at);
            self.events.push(event.to_json());
        }
    }

    /// Inserts the events as one row.
    pub(crate) fn insert(
        &mut self,
        tx: &mut Tx<'_>,
        recorder: &TailRecorder,
    ) -> Result<(), DbError> {
        if self.events.is_empty() {
            return Ok(());
        }
        let mut events = std::mem::take(&mut self.events);
        let recorded = recorder.take(events.len());
        let omitted = events.len() - recorded;
        events.truncate(recorded);
        let seq = recorder.last_seq.fetch_add(1, Ordering::Relaxed) + 1;
        let events = Value::Array(events).to_string();
        let args = args![&recorder.source, seq, self.last_at, &events, omitted as i64];
        tx.queue(&INSERT_EVENTS, args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_end_does_not_shorten_a_watch() {
        let recorder = TailRecorder::default();
        let is_watched = || recorder.is_watched.load(Ordering::Relaxed);
        recorder.watch_until(100, 10);
        recorder.watch_until(0, 11);
        assert!(is_watched());
        recorder.watch_until(0, 100);
        assert!(!is_watched());
    }

    #[test]
    fn recorded_events_are_limited() {
        let recorder = TailRecorder::default();
        assert_eq!(recorder.take(400), 400);
        let rest = recorder.take(400);
        assert!((100..400).contains(&rest), "{rest}");
    }
}
