//! A version number for each task's record, so that a caller can cache the record until it changes.
//!
//! Used only for SQLite, where only this process changes tasks, always through the writer. A version is raised after the commit and before the writer
//! replies, so a caller that has a reply never gets an older record.

use std::sync::atomic::{AtomicU64, Ordering};

/// Tasks share counters by the last characters of their ids, which are random. A collision costs one needless read.
const COUNTERS: usize = 4096;

/// Counts the changes of tasks.
pub(crate) struct TaskVersions {
    counters: Vec<AtomicU64>,
    /// Raised by writes of which it is unknown what they changed: this raises the version of every task.
    all: AtomicU64,
}

impl Default for TaskVersions {
    fn default() -> Self {
        Self {
            counters: (0..COUNTERS).map(|_| AtomicU64::new(0)).collect(),
            all: AtomicU64::new(0),
        }
    }
}

impl TaskVersions {
    /// Raises the version of one task.
    pub(crate) fn raise(&self, task_id: &str) {
        self.counters[counter_index(task_id)].fetch_add(1, Ordering::Release);
    }

    /// Raises the version of every task.
    pub(crate) fn raise_all(&self) {
        self.all.fetch_add(1, Ordering::Release);
    }

    /// The current version. Read it before reading the task: as long as it is the same, the record is unchanged.
    pub(crate) fn version(&self, task_id: &str) -> u64 {
        let all = self.all.load(Ordering::Acquire);
        self.counters[counter_index(task_id)]
            .load(Ordering::Acquire)
            .wrapping_add(all)
    }
}

fn counter_index(task_id: &str) -> usize {
    let last = task_id.bytes().rev().take(4);
    last.fold(0, |index, byte| index * 31 + usize::from(byte)) % COUNTERS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_raises_the_version_of_its_task_only() {
        let versions = TaskVersions::default();
        let before = ["task_aaaa", "task_aaab"].map(|id| versions.version(id));
        versions.raise("task_aaaa");
        assert_ne!(versions.version("task_aaaa"), before[0]);
        assert_eq!(versions.version("task_aaab"), before[1]);
        versions.raise_all();
        assert_ne!(versions.version("task_aaab"), before[1]);
        assert_eq!(versions.version(""), versions.version(""));
    }
}
