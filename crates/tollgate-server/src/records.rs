//! Records of tasks as they were last sent: while a task does not change, a poll for it costs no database.

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tollgate_core::Millis;

/// Bytes that are remembered in all.
const CAPACITY: u64 = 16 * 1_048_576;
/// What an entry takes beside its body, about.
const OVERHEAD: u64 = 256;
/// Entries that are reckoned with.
const ENTRIES: usize = 16_384;

/// A task's record.
#[derive(Clone)]
pub struct Record {
    /// Whose it is.
    pub user_id: String,
    /// How long it stays true.
    pub holds: Holds,
    /// The answer to `GET /v1/tasks/<id>`.
    pub body: Bytes,
}

/// How long a record stays true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// The task ended then: as long as its row is kept.
    SinceEnd(Millis),
    /// As long as [`tollgate_store::Store::stamp`] says this.
    WhileStamp(u64),
}

/// What is remembered, by task id.
pub struct Records(Cache<String, Record, ByBytes>);

#[derive(Clone)]
struct ByBytes;

impl Weighter<String, Record> for ByBytes {
    fn weight(&self, _: &String, record: &Record) -> u64 {
        record.body.len() as u64 + OVERHEAD
    }
}

impl Default for Records {
    fn default() -> Self {
        Self(Cache::with_weighter(ENTRIES, CAPACITY, ByBytes))
    }
}

impl Records {
    /// The record of that task, if it is remembered and still true: rows are kept for `kept` after the end.
    pub fn get(
        &self,
        task_id: &str,
        stamp: Option<u64>,
        now: Millis,
        kept: Millis,
    ) -> Option<Record> {
        self.0.get(task_id).filter(|record| match record.holds {
            Holds::SinceEnd(ended_at) => ended_at + kept > now,
            Holds::WhileStamp(then) => stamp == Some(then),
        })
    }

    /// Remembers a record.
    pub fn put(&self, task_id: &str, record: Record) {
        self.0.insert(task_id.to_owned(), record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_within_bounds_and_forgets_with_the_row() {
        let records = Records::default();
        let record = |n: usize, holds| Record {
            user_id: "user_1".to_owned(),
            holds,
            body: Bytes::from(vec![b'x'; n]),
        };
        let ended = Holds::SinceEnd(1_000);
        records.put("task_1", record(10, ended));
        assert_eq!(
            records.get("task_1", None, 1_500, 600).unwrap().body.len(),
            10
        );
        assert!(records.get("task_1", None, 1_600, 600).is_none());
        records.put("task_2", record(10, Holds::WhileStamp(7)));
        assert!(records.get("task_2", Some(7), 9_999, 600).is_some());
        assert!(records.get("task_2", Some(8), 1_000, 600).is_none());
        assert!(records.get("task_2", None, 1_000, 600).is_none());
        for n in 0..2_000 {
            records.put(&format!("task_x{n}"), record(100_000, ended));
        }
        assert!(records.0.weight() <= CAPACITY);
    }
}
