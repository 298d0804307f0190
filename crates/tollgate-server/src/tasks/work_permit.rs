//! Counts the tasks in work of each user, and their permits for calls. Tasks that fetch references, or wait for a channel or in a provider's queue,
//! need no permit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tollgate_store::FairShare;

use crate::fair_permits::{FairPermit, FairPermits, Reserve};

/// Permits for calls directly after a crash. They are few, so that some tasks can complete even if one of the tasks crashes the process again.
const CALLS_AFTER_CRASH: usize = 4;

/// The tasks in work in this process; clones share the counts.
#[derive(Clone)]
pub struct Workload {
    calls: FairPermits,
    max_calls: usize,
    counts: Arc<Mutex<Counts>>,
}

struct Counts {
    /// The number of tasks in work by user id, without tasks that wait in providers' queues.
    in_work: HashMap<String, usize>,
    /// Tasks that are about to take a permit for a call.
    starting: usize,
    /// The current number of permits for calls; it is below the maximum only after a crash.
    current_calls: usize,
}

impl Workload {
    /// Allows up to `max_calls` calls at the same time, of which `reserve` are reserved for users who have none.
    pub fn new(max_calls: usize, reserve: usize) -> Self {
        let counts = Counts {
            in_work: HashMap::new(),
            starting: 0,
            current_calls: max_calls,
        };
        Self {
            calls: FairPermits::new(max_calls, Reserve::Always(reserve)),
            max_calls,
            counts: Arc::new(Mutex::new(counts)),
        }
    }

    /// Counts a claimed task of a user.
    pub fn start(&self, user_id: &str) -> WorkPermit {
        let mut counts = self.lock();
        *counts.in_work.entry(user_id.to_owned()).or_default() += 1;
        counts.starting += 1;
        WorkPermit {
            workload: self.clone(),
            user_id: user_id.to_owned(),
            is_starting: true,
            call: None,
        }
    }

    /// How many more tasks may be claimed now.
    pub fn free(&self) -> usize {
        self.calls.free().saturating_sub(self.lock().starting)
    }

    /// How the next claim is shared among users; the caller sets where it continues.
    pub fn share(&self) -> FairShare {
        FairShare {
            reserve: self.calls.reserve(),
            max_per_user: Some(self.max_calls),
            in_work: self.lock().in_work.clone(),
            ..FairShare::default()
        }
    }

    /// After a crash: begins with few calls at the same time. [`Workload::grow`] adds one.
    pub fn begin_with_few(&self) {
        let few = CALLS_AFTER_CRASH.min(self.max_calls);
        self.lock().current_calls = few;
        self.calls.set_max(few);
    }

    /// Allows one more call at the same time, up to the configured number; returns whether that is reached.
    pub fn grow(&self) -> bool {
        let mut counts = self.lock();
        if counts.current_calls == self.max_calls {
            return true;
        }
        counts.current_calls += 1;
        let current = counts.current_calls;
        drop(counts);
        self.calls.set_max(current);
        current == self.max_calls
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task in work, until it is dropped.
pub struct WorkPermit {
    workload: Workload,
    user_id: String,
    is_starting: bool,
    call: Option<FairPermit>,
}

impl WorkPermit {
    /// Marks the task as not about to make a call, because it waits for something else, so that another task may be claimed. It still counts as in
    /// work.
    pub fn pause(&mut self) {
        if self.is_starting {
            self.is_starting = false;
            self.workload.lock().starting -= 1;
        }
    }

    /// Waits for a permit for a call; it is released with the task.
    pub async fn acquire_call(&mut self) {
        self.call = Some(self.workload.calls.acquire(&self.user_id).await);
        self.pause();
    }
}

impl Drop for WorkPermit {
    fn drop(&mut self) {
        self.pause();
        let mut counts = self.workload.lock();
        if let Some(count) = counts.in_work.get_mut(&self.user_id) {
            *count -= 1;
            if *count == 0 {
                counts.in_work.remove(&self.user_id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn tasks_that_wait_for_something_else_leave_their_permits_to_others() {
        let workload = Workload::new(4, 1);
        let mut tasks: Vec<_> = (0..4).map(|_| workload.start("ann")).collect();
        assert_eq!(workload.free(), 0, "all are about to call");
        tasks.iter_mut().for_each(WorkPermit::pause);
        assert_eq!(workload.free(), 4);
        let share = workload.share();
        assert_eq!((share.in_work["ann"], share.reserve), (4, 1));
        for task in &mut tasks[..3] {
            task.acquire_call().now_or_never().expect("a permit");
        }
        assert!(tasks[3].acquire_call().now_or_never().is_none(), "reserved");
        let mut bob = workload.start("bob");
        bob.acquire_call().now_or_never().expect("the reserve");
        drop((tasks, bob));
        assert_eq!(workload.free(), 4);
        assert!(workload.share().in_work.is_empty());
    }

    #[test]
    fn after_a_crash_a_few_tasks_are_started_and_more_as_they_end() {
        let workload = Workload::new(6, 1);
        workload.begin_with_few();
        assert_eq!(workload.free(), CALLS_AFTER_CRASH);
        assert!(!workload.grow());
        assert_eq!(workload.free(), CALLS_AFTER_CRASH + 1);
        assert!(workload.grow() && workload.grow());
        assert_eq!(workload.free(), 6);
    }
}
