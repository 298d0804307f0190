//! A cache of task records as they were last sent: polling a task that has not changed needs no database query.

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tollgate_core::Millis;

/// Bytes of all cached records.
const MAX_BYTES: u64 = 16 * 1_048_576;
/// Approximate bytes of an entry beside its body.
const ENTRY_OVERHEAD: u64 = 256;
/// Expected number of entries.
const ESTIMATED_ENTRIES: usize = 16_384;

/// A cached record.
#[derive(Clone)]
pub struct Record {
    /// The user whose task it is.
    pub user_id: String,
    /// How long it is valid.
    pub validity: Validity,
    /// The response to `GET /v1/tasks/<id>`.
    pub body: Bytes,
}

/// How long a record of an ended task is valid if other processes may refund the task.
const ENDED_TTL: Millis = 10_000;

/// How long a cached record is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// As long as [`tollgate_store::Store::task_version`] returns this number and, if the task ended at this time, its row is kept.
    WhileVersion(u64, Option<Millis>),
    /// The task has ended, and only a refund, which another process may make, can change it: the record is valid for ten seconds, while its row is
    /// kept.
    Ended {
        /// When it ended.
        ended_at: Millis,
        /// When the record was read.
        read_at: Millis,
    },
}

/// The cached records, by task id.
pub struct RecordCache(Cache<String, Record, ByBytes>);

#[derive(Clone)]
struct ByBytes;

impl Weighter<String, Record> for ByBytes {
    fn weight(&self, _: &String, record: &Record) -> u64 {
        record.body.len() as u64 + ENTRY_OVERHEAD
    }
}

impl Default for RecordCache {
    fn default() -> Self {
        Self(Cache::with_weighter(ESTIMATED_ENTRIES, MAX_BYTES, ByBytes))
    }
}

impl RecordCache {
    /// The record of that task, if it is cached and still valid. `version` is the task's version now; rows are kept for `ttl`
    /// after the end.
    pub fn get(
        &self,
        task_id: &str,
        version: Option<u64>,
        now: Millis,
        ttl: Millis,
    ) -> Option<Record> {
        self.0.get(task_id).filter(|record| match record.validity {
            Validity::WhileVersion(cached, ended_at) => {
                version == Some(cached) && ended_at.is_none_or(|at| at + ttl > now)
            }
            Validity::Ended { ended_at, read_at } => {
                ended_at + ttl > now && (read_at..read_at + ENDED_TTL).contains(&now)
            }
        })
    }

    /// Removes the record of a task that this process has changed.
    pub fn remove(&self, task_id: &str) {
        self.0.remove(task_id);
    }

    /// Caches a record.
    pub fn insert(&self, task_id: &str, record: Record) {
        self.0.insert(task_id.to_owned(), record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_cached_within_bounds_and_no_longer_than_their_rows() {
        let records = RecordCache::default();
        let record = |n: usize, validity| Record {
            user_id: "user_1".to_owned(),
            validity,
            body: Bytes::from(vec![b'x'; n]),
        };
        let ended = Validity::WhileVersion(1, Some(1_000));
        records.insert("task_1", record(10, ended));
        assert_eq!(
            records
                .get("task_1", Some(1), 1_500, 600)
                .unwrap()
                .body
                .len(),
            10
        );
        assert!(records.get("task_1", Some(2), 1_500, 600).is_none());
        assert!(records.get("task_1", Some(1), 1_600, 600).is_none());
        let (ended_at, read_at) = (900, 1_000);
        records.insert("task_1", record(10, Validity::Ended { ended_at, read_at }));
        assert!(records.get("task_1", None, 10_999, 60_000).is_some());
        assert!(records.get("task_1", None, 11_000, 60_000).is_none());
        assert!(records.get("task_1", None, 1_500, 600).is_none());
        records.insert("task_2", record(10, Validity::WhileVersion(7, None)));
        assert!(records.get("task_2", Some(7), 9_999, 600).is_some());
        assert!(records.get("task_2", Some(8), 1_000, 600).is_none());
        assert!(records.get("task_2", None, 1_000, 600).is_none());
        for n in 0..2_000 {
            records.insert(&format!("task_x{n}"), record(100_000, ended));
        }
        assert!(records.0.weight() <= MAX_BYTES);
    }
}
