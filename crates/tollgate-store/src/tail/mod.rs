//! The live tail: events of tasks and chats for watchers. While there is a watcher on any node, the writer of each process inserts the events of a
//! transaction as one row in that transaction (table `tail_events`). At other times no events are recorded.
//!
//! Each process is a source whose rows have ascending numbers, in the order of its commits. So with a position, which contains the number of the last
//! read row of each source, reading misses and repeats nothing, whatever node continues to read.

pub(crate) mod recorder;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use serde_json::Value;
use tollgate_core::Millis;
use tollgate_core::clock::MINUTE;

use crate::db::{DbError, Sql, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::writer::Write;
use crate::writer::batch::Batch;

/// How long events are kept.
const KEPT_FOR: Millis = 2 * MINUTE;
pub(crate) const WATCHED_UNTIL: Sql =
    Sql::both("SELECT value FROM meta WHERE name = 'tail_watched_until'");
const WATCH: Sql = Sql::both(
    "UPDATE meta SET value = CASE WHEN value < CAST($1 AS BIGINT) THEN CAST($1 AS BIGINT) ELSE value END WHERE name = 'tail_watched_until'",
);
const DELETE_OLD: Sql = Sql::both("DELETE FROM tail_events WHERE at < $1");
/// The sources with their last numbers; the query skips from source to source in the primary key.
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

/// For each source, the number of the last row that was read and the index of its last event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TailPosition {
    /// The time of the last event before the position, in milliseconds since 1970.
    pub at: Millis,
    sources: BTreeMap<String, (i64, u32)>,
}

impl TailPosition {
    /// Moves the position after the event with that index in a row.
    pub fn advance(&mut self, row: &TailRow, index: u32) {
        self.at = self.at.max(row.at);
        self.sources.insert(row.source.clone(), (row.seq, index));
    }

    /// Moves the position after all events of a row.
    pub fn advance_to_end(&mut self, row: &TailRow) {
        self.advance(row, u32::MAX);
    }

    /// Whether the event with that index in a row is after the position.
    pub fn is_before(&self, row: &TailRow, index: u32) -> bool {
        let read = self.sources.get(&row.source);
        read.is_none_or(|read| *read < (row.seq, index))
    }

    /// Whether events after the position may have been deleted, or were never recorded because there was no watcher.
    pub fn is_too_old(&self, now: Millis) -> bool {
        now - self.at > MINUTE
    }
}

/// Written as `AT~SOURCE.ROW.EVENT~SOURCE.ROW.EVENT`.
impl fmt::Display for TailPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.at)?;
        self.sources
            .iter()
            .try_for_each(|(source, (seq, index))| write!(f, "~{source}.{seq}.{index}"))
    }
}

/// The error for a text that is not a [`TailPosition`].
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
    /// The kind (`task` or `chat`), and the event as a JSON object of the admin API.
    pub events: Vec<(String, Value)>,
    /// Events that are missing because a process records at most 500 in a second.
    pub omitted: i64,
}

/// The live tail.
impl Store {
    /// Requests that every process records events until that time: this process begins at once, the others when they next call
    /// [`Store::follow_tail_watch`]. Deletes old events.
    pub async fn watch_tail(&self, until: Millis, now: Millis) -> Result<(), StoreError> {
        self.write(WatchTail { until, now }).await?;
        self.writer.tail.watch_until(until, now);
        Ok(())
    }

    /// From now on records events if there is a watcher on any node; else records none.
    pub async fn follow_tail_watch(&self, now: Millis) -> Result<(), StoreError> {
        let until = self.first(&WATCHED_UNTIL, &[], |row| row.int(0)).await?;
        self.writer.tail.watch_until(until.unwrap_or(0), now);
        Ok(())
    }

    /// The position after all recorded events.
    pub async fn tail_end(&self, now: Millis) -> Result<TailPosition, StoreError> {
        let mut sources = BTreeMap::new();
        for mut row in self.query(&SOURCES, &[]).await? {
            sources.insert(row.text(0)?, (row.int(1)?, u32::MAX));
        }
        Ok(TailPosition { at: now, sources })
    }

    /// The rows with events after `after`, in the order of each source; about `limit` of each source. The first row of a source may also contain
    /// events before that ([`TailPosition::is_before`]).
    pub async fn read_tail(
        &self,
        after: &TailPosition,
        limit: usize,
    ) -> Result<Vec<TailRow>, StoreError> {
        let mut found = Vec::new();
        for mut row in self.query(&SOURCES, &[]).await? {
            let (source, last) = (row.text(0)?, row.int(1)?);
            let (seq, index) = after.sources.get(&source).copied().unwrap_or((0, u32::MAX));
            // Includes the row itself, if it was not read to its end.
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
    fn positions_are_written_and_parsed_as_text() {
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
}
