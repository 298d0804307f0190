//! The live tail: what happens to tasks and chats, for those who watch. While anybody does, on whichever node, the writer of each process
//! inserts the events of a transaction as one row in that transaction (table `tail_events`). At other times nothing is recorded.
//!
//! Each process is a source whose rows have ascending numbers, in the order of its commits. So a position, the number of the last row that was
//! read of each source, misses and repeats nothing, whatever node reads on.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use serde_json::{Value, json};
use tollgate_core::clock::MINUTE;
use tollgate_core::{Amount, Millis, id};

use crate::admin::{amount_json, time_json};
use crate::db::{DbError, Sql, Tx, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::writer::Write;
use crate::writer::batch::Batch;

/// How long events are kept.
const KEPT_FOR: Millis = 2 * MINUTE;
/// Events that a process records in a second, at most, and those that it may record at once.
const EVENTS_PER_SECOND: f64 = 500.0;

const INSERT_EVENTS: Sql = Sql::both(
    "INSERT INTO tail_events (source, seq, at, events, omitted) VALUES ($1, $2, $3, $4, $5)",
);
pub(crate) const WATCHED_UNTIL: Sql =
    Sql::both("SELECT value FROM meta WHERE name = 'tail_watched_until'");
const WATCH: Sql = Sql::both(
    "UPDATE meta SET value = CASE WHEN value < CAST($1 AS BIGINT) THEN CAST($1 AS BIGINT) ELSE value END WHERE name = 'tail_watched_until'",
);
const DELETE_OLD: Sql = Sql::both("DELETE FROM tail_events WHERE at < $1");
/// The sources with their last numbers; it jumps from source to source in the primary key.
pub(crate) const SOURCES: Sql = Sql::both(
    "WITH RECURSIVE sources(source) AS (
        SELECT MIN(source) FROM tail_events
        UNION ALL
        SELECT (SELECT MIN(t.source) FROM tail_events t WHERE t.source > s.source) FROM sources s WHERE s.source IS NOT NULL
     )
     SELECT s.source, (SELECT MAX(t.seq) FROM tail_events t WHERE t.source = s.source) FROM sources s WHERE s.source IS NOT NULL",
);
pub(crate) const EVENTS_AFTER: Sql = Sql::both(
    "SELECT seq, at, events, omitted FROM tail_events WHERE source = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4",
);

/// Something that happened to a task or chat.
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
    /// Until when somebody watches, as far as this process knows.
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
    /// Records if somebody watches at `now`: until the time `until`, or until a later one that was known before.
    fn watch_until(&self, until: Millis, now: Millis) {
        // Both are changed under the lock: what the database said a moment ago must not end what was asked for since.
        let known = self.watched_until.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        *known = until.max(*known);
        self.is_watched.store(*known > now, Ordering::Relaxed);
    }

    /// How many of `wanted` events may be recorded now.
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

    /// Adds an event if anybody watches.
    pub(crate) fn add(&mut self, event: &TailEvent<'_>) {
        if self.is_watched {
            self.last_at = self.last_at.max(event.at);
            self.events.push(event.to_json());
        }
    }

    /// Inserts them as one row.
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

/// The number of the last row that was read of each source, and of its last event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TailPosition {
    /// The time of the event that it is behind, in milliseconds since 1970.
    pub at: Millis,
    sources: BTreeMap<String, (i64, u32)>,
}

impl TailPosition {
    /// The position behind the event with that index in a row.
    pub fn advance(&mut self, row: &TailRow, index: u32) {
        self.at = self.at.max(row.at);
        self.sources.insert(row.source.clone(), (row.seq, index));
    }

    /// The position behind all events of a row.
    pub fn advance_to_end(&mut self, row: &TailRow) {
        self.advance(row, u32::MAX);
    }

    /// Whether the event with that index in a row is behind it.
    pub fn is_before(&self, row: &TailRow, index: u32) -> bool {
        let read = self.sources.get(&row.source);
        read.is_none_or(|read| *read < (row.seq, index))
    }

    /// Whether events behind it may have been deleted, or never been recorded because nobody watched.
    pub fn is_too_old(&self, now: Millis) -> bool {
        now - self.at > MINUTE
    }
}

/// `AT~SOURCE.ROW.EVENT~SOURCE.ROW.EVENT`
impl fmt::Display for TailPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.at)?;
        self.sources
            .iter()
            .try_for_each(|(source, (seq, index))| write!(f, "~{source}.{seq}.{index}"))
    }
}

/// A text is not a [`TailPosition`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidPosition;

impl FromStr for TailPosition {
    type Err = InvalidPosition;

    fn from_str(text: &str) -> Result<Self, InvalidPosition> {
        let mut parts = text.split('~');
        let at = parts.next().and_then(|at| at.parse().ok());
        let source = |part: &str| {
            let mut parts = part.split('.');
            let (source, seq, index) = (parts.next()?, parts.next()?, parts.next()?);
            let is_complete = parts.next().is_none() && !source.is_empty();
            let position = (seq.parse().ok()?, index.parse().ok()?);
            is_complete.then(|| (source.to_owned(), position))
        };
        Ok(Self {
            at: at.ok_or(InvalidPosition)?,
            sources: parts
                .map(source)
                .collect::<Option<_>>()
                .ok_or(InvalidPosition)?,
        })
    }
}

/// The events of one transaction.
#[derive(Debug, Clone)]
pub struct TailRow {
    source: String,
    seq: i64,
    /// When the last of them happened, in milliseconds since 1970.
    pub at: Millis,
    /// `task` or `chat`, and the event as the admin API shows it.
    pub events: Vec<(String, Value)>,
    /// Events that are missing because a process records at most 500 in a second.
    pub omitted: i64,
}

/// The live tail.
impl Store {
    /// Makes every process record events until that time; this one at once, the others when they next call
    /// [`Store::follow_tail_watch`]. Deletes old events.
    pub async fn watch_tail(&self, until: Millis, now: Millis) -> Result<(), StoreError> {
        self.write(WatchTail { until, now }).await?;
        self.writer.tail.watch_until(until, now);
        Ok(())
    }

    /// Records events from now on if anybody watches, on whichever node; else records none.
    pub async fn follow_tail_watch(&self, now: Millis) -> Result<(), StoreError> {
        let until = self.first(&WATCHED_UNTIL, &[], |row| row.int(0)).await?;
        self.writer.tail.watch_until(until.unwrap_or(0), now);
        Ok(())
    }

    /// The position behind everything that is recorded.
    pub async fn tail_end(&self, now: Millis) -> Result<TailPosition, StoreError> {
        let mut sources = BTreeMap::new();
        for mut row in self.query(&SOURCES, &[]).await? {
            sources.insert(row.text(0)?, (row.int(1)?, u32::MAX));
        }
        Ok(TailPosition { at: now, sources })
    }

    /// The rows with events behind `after`, in the order of each source; about `limit` of each source. Its first row may have events before
    /// that ([`TailPosition::is_before`]).
    pub async fn read_tail(
        &self,
        after: &TailPosition,
        limit: usize,
    ) -> Result<Vec<TailRow>, StoreError> {
        let mut found = Vec::new();
        for mut row in self.query(&SOURCES, &[]).await? {
            let (source, last) = (row.text(0)?, row.int(1)?);
            let (seq, index) = after.sources.get(&source).copied().unwrap_or((0, u32::MAX));
            // The row itself, if it was not read to its end.
            let first = if index == u32::MAX { seq } else { seq - 1 };
            if last <= first {
                continue;
            }
            let args = args![&source, first, last, limit as i64];
            for mut row in self.query(&EVENTS_AFTER, args).await? {
                let events = row.text(2)?;
                let events = serde_json::from_str(&events).map_err(|e| {
                    DbError::UnexpectedData(format!("events of the live tail: {e}"))
                })?;
                found.push(TailRow {
                    source: source.clone(),
                    seq: row.int(0)?,
                    at: row.int(1)?,
                    events,
                    omitted: row.int(3)?,
                });
            }
        }
        Ok(found)
    }
}

struct WatchTail {
    until: Millis,
    now: Millis,
}

#[async_trait(?Send)]
impl Write for WatchTail {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        batch.queue(&WATCH, args![self.until])?;
        batch.queue(&DELETE_OLD, args![self.now - KEPT_FOR])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_texts() {
        let row = |seq| TailRow {
            source: "a1".to_owned(),
            seq,
            at: 17,
            events: Vec::new(),
            omitted: 0,
        };
        let mut position = TailPosition::default();
        assert!(position.is_before(&row(1), 0));
        position.advance(&row(3), 2);
        assert_eq!(position.to_string(), "17~a1.3.2");
        assert_eq!("17~a1.3.2".parse(), Ok(position.clone()));
        assert!(!position.is_before(&row(3), 2) && position.is_before(&row(3), 3));
        assert!(!position.is_before(&row(2), 9) && position.is_before(&row(4), 0));
        for invalid in [
            "",
            "x",
            "17~",
            "17~a",
            "17~a.1",
            "17~a.1.2.3",
            "17~.1.2",
            "17~a.x.1",
            "1,2",
        ] {
            assert_eq!(
                invalid.parse::<TailPosition>(),
                Err(InvalidPosition),
                "{invalid}"
            );
        }
    }

    #[test]
    fn what_was_read_before_somebody_watched_does_not_end_it() {
        let recorder = TailRecorder::default();
        let is_watched = || recorder.is_watched.load(Ordering::Relaxed);
        recorder.watch_until(100, 10);
        recorder.watch_until(0, 11);
        assert!(is_watched());
        recorder.watch_until(0, 100);
        assert!(!is_watched());
    }

    #[test]
    fn no_more_events_than_allowed_are_recorded() {
        let recorder = TailRecorder::default();
        assert_eq!(recorder.take(400), 400);
        let rest = recorder.take(400);
        assert!((100..400).contains(&rest), "{rest}");
    }
}
