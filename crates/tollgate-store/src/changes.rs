//! Which tasks changed since somebody looked: what makes it safe to remember a task's record.
//!
//! Only for the embedded database, whose tasks this process alone changes, all of them through the writer. A
//! change is noted after its commit and before its answer, so who has an answer never sees an older record.

use std::sync::atomic::{AtomicU64, Ordering};

/// Tasks share slots by their last characters, which are random: a neighbour's change costs a read, no more.
const SLOTS: usize = 4096;

/// Counts the changes of every task.
pub(crate) struct Changes {
    slots: Vec<AtomicU64>,
    /// Changes of which nobody knows whether they happened: they concern every task.
    all: AtomicU64,
}

impl Default for Changes {
    fn default() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
            all: AtomicU64::new(0),
        }
    }
}

impl Changes {
    /// What a reader sees of that task may have changed.
    pub(crate) fn note(&self, task_id: &str) {
        self.slots[slot(task_id)].fetch_add(1, Ordering::Release);
    }

    /// What a reader sees of any task may have changed.
    pub(crate) fn note_all(&self) {
        self.all.fetch_add(1, Ordering::Release);
    }

    /// The number of changes so far: take it before reading the task; while it stays, so does what was read.
    pub(crate) fn stamp(&self, task_id: &str) -> u64 {
        let all = self.all.load(Ordering::Acquire);
        self.slots[slot(task_id)]
            .load(Ordering::Acquire)
            .wrapping_add(all)
    }
}

fn slot(task_id: &str) -> usize {
    let last = task_id.bytes().rev().take(4);
    last.fold(0, |slot, byte| slot * 31 + usize::from(byte)) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_moves_the_stamp_of_its_task() {
        let changes = Changes::default();
        let before = [changes.stamp("task_aaaa"), changes.stamp("task_aaab")];
        changes.note("task_aaaa");
        assert_ne!(changes.stamp("task_aaaa"), before[0]);
        assert_eq!(changes.stamp("task_aaab"), before[1]);
        changes.note_all();
        assert_ne!(changes.stamp("task_aaab"), before[1]);
        assert_eq!(changes.stamp(""), changes.stamp(""));
    }
}
