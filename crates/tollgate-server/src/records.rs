//! Records of finished tasks as they were last sent: they never change, so a poll for one costs no database.

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

/// A finished task's record.
#[derive(Clone)]
pub struct Finished {
    /// Whose it is.
    pub user_id: String,
    /// When it ended: it is forgotten with the task's row.
    pub ended_at: Millis,
    /// The answer to `GET /v1/tasks/<id>`.
    pub body: Bytes,
}

/// What is remembered, by task id.
pub struct Records(Cache<String, Finished, ByBytes>);

#[derive(Clone)]
struct ByBytes;

impl Weighter<String, Finished> for ByBytes {
    fn weight(&self, _: &String, record: &Finished) -> u64 {
        record.body.len() as u64 + OVERHEAD
    }
}

impl Default for Records {
    fn default() -> Self {
        Self(Cache::with_weighter(ENTRIES, CAPACITY, ByBytes))
    }
}

impl Records {
    /// The record of that task, if it is remembered and the row, kept for `kept` after the end, is not gone.
    pub fn get(&self, task_id: &str, now: Millis, kept: Millis) -> Option<Finished> {
        self.0
            .get(task_id)
            .filter(|record| record.ended_at + kept > now)
    }

    /// Remembers the record of a task that has ended.
    pub fn put(&self, task_id: &str, record: Finished) {
        self.0.insert(task_id.to_owned(), record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_within_bounds_and_forgets_with_the_row() {
        let records = Records::default();
        let record = |n: usize| Finished {
            user_id: "user_1".to_owned(),
            ended_at: 1_000,
            body: Bytes::from(vec![b'x'; n]),
        };
        records.put("task_1", record(10));
        assert_eq!(records.get("task_1", 1_500, 600).unwrap().body.len(), 10);
        assert!(records.get("task_1", 1_600, 600).is_none());
        for n in 0..2_000 {
            records.put(&format!("task_x{n}"), record(100_000));
        }
        assert!(records.0.weight() <= CAPACITY);
    }
}
