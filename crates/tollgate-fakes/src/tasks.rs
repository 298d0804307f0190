//! The task queue of a fake: submitted, polled, cancelled and listed tasks, in memory.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use crate::directive::Stage;
use crate::work_plan::{Outcome, WorkPlan};

/// A task.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) id: String,
    /// The values of the request that the provider stores for later responses.
    pub(crate) kept: Value,
    /// A number that is unique among the tasks.
    pub(crate) number: u64,
    pub(crate) created_at: SystemTime,
    pub(crate) plan: WorkPlan,
    /// The links to the results, after they were generated.
    pub(crate) results: Vec<String>,
    started: Instant,
    polls: Vec<Instant>,
    /// The number of requests about the task for each other step.
    others: HashMap<Stage, u32>,
    cancelled: bool,
    /// When the end of the task was first observed, and the time at which the task ended. `None` until then.
    ended: Option<(Instant, SystemTime)>,
}

/// The progress of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskState {
    Queued,
    /// Running, with the progress in percent.
    Running(u8),
    Ended(Outcome),
    Cancelled,
}

impl Task {
    pub(crate) fn new(id: String, kept: Value, number: u64, plan: WorkPlan) -> Self {
        Self {
            id,
            kept,
            number,
            created_at: SystemTime::now(),
            plan,
            results: Vec::new(),
            started: Instant::now(),
            polls: Vec::new(),
            others: HashMap::new(),
            cancelled: false,
            ended: None,
        }
    }

    /// The current state.
    pub(crate) fn state(&mut self, now: Instant) -> TaskState {
        if self.cancelled {
            return TaskState::Cancelled;
        }
        let (polls, needed) = (self.polls.len() as u32, self.plan.polls);
        let (spent, work) = (
            now.saturating_duration_since(self.started),
            self.plan.duration,
        );
        if polls >= needed && spent >= work {
            let since = spent.saturating_sub(work);
            let at = SystemTime::now().checked_sub(since.min(spent));
            self.ended
                .get_or_insert((now, at.unwrap_or(self.created_at).max(self.created_at)));
            return TaskState::Ended(self.plan.outcome);
        }
        let started = if spent < work {
            spent * 10 >= work
        } else {
            polls > 1 || (polls == 1 && needed <= 2)
        };
        if !started {
            return TaskState::Queued;
        }
        let by_polls = 100 * polls.min(needed) / needed.max(1);
        let by_time = match work {
            Duration::ZERO => 100,
            work => (100 * spent.as_millis() / work.as_millis().max(1)) as u32,
        };
        TaskState::Running(by_polls.max(1).min(by_time).min(99) as u8)
    }

    /// The time when the task ended, or the current time if it has not.
    pub(crate) fn changed_at(&self) -> SystemTime {
        self.ended.map_or_else(SystemTime::now, |(_, at)| at)
    }

    /// Cancels the task.
    pub(crate) fn cancel(&mut self) {
        self.cancelled = true;
        self.ended = Some((Instant::now(), SystemTime::now()));
    }

    /// Records a request about the task; returns its number, from 1, among those of the same step.
    pub(crate) fn count_request(&mut self, stage: Stage, now: Instant) -> u32 {
        if stage == Stage::Poll {
            self.polls.push(now);
            return self.polls.len() as u32;
        }
        let count = self.others.entry(stage).or_default();
        *count += 1;
        *count
    }
}

/// All tasks of a fake.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    by_id: HashMap<String, Task>,
    by_external: HashMap<String, String>,
    /// The ids in the order of their creation.
    ids: Vec<String>,
}

impl Tasks {
    pub(crate) fn add(&mut self, task: Task) {
        self.ids.push(task.id.clone());
        self.by_id.insert(task.id.clone(), task);
    }

    pub(crate) fn get(&mut self, id: &str) -> Option<&mut Task> {
        self.by_id.get_mut(id)
    }

    pub(crate) fn remove(&mut self, id: &str) {
        self.by_id.remove(id);
        self.ids.retain(|known| known != id);
    }

    /// Stores the client's own id of a task; returns false if another task has that id already.
    pub(crate) fn name(&mut self, external: &str, id: &str) -> bool {
        let free = !self.by_external.contains_key(external);
        if free {
            self.by_external.insert(external.to_owned(), id.to_owned());
        }
        free
    }

    /// The id of the task with this id of the client's.
    pub(crate) fn id_of(&self, external: &str) -> Option<&str> {
        self.by_external.get(external).map(String::as_str)
    }

    /// The ids, the oldest first.
    pub(crate) fn ids(&self) -> &[String] {
        &self.ids
    }

    /// The times when each task was polled, the oldest task first.
    pub(crate) fn polls(&self) -> Vec<(String, Vec<Instant>)> {
        let tasks = self.ids.iter().filter_map(|id| self.by_id.get(id));
        tasks
            .map(|task| (task.id.clone(), task.polls.clone()))
            .collect()
    }

    pub(crate) fn report(&self) -> PollReport {
        let mut gaps = Vec::new();
        let mut late = Vec::new();
        let mut polls = 0;
        for task in self.by_id.values() {
            polls += task.polls.len();
            let each = task.polls.windows(2);
            gaps.extend(each.map(|pair| pair[1].duration_since(pair[0])));
            let work_end = task.started + task.plan.duration;
            late.extend(
                task.ended
                    .map(|(observed, _)| observed.saturating_duration_since(work_end)),
            );
        }
        PollReport {
            tasks: self.ids.len(),
            ended: late.len(),
            polls,
            gaps: Distribution::from_times(gaps),
            late: Distribution::from_times(late),
        }
    }
}

/// Statistics on how the tasks of a fake were polled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollReport {
    /// The number of tasks that were started.
    pub tasks: usize,
    /// The number of tasks whose end was observed.
    pub ended: usize,
    /// The number of polls of all tasks.
    pub polls: usize,
    /// The times between two polls of the same task.
    pub gaps: Distribution,
    /// The delays between the end of a task's work and the observation of it.
    pub late: Distribution,
}

impl PollReport {
    /// The report as JSON, times in milliseconds.
    pub(crate) fn json(&self) -> Value {
        json!({
            "tasks": self.tasks, "ended": self.ended, "polls": self.polls,
            "gaps_ms": self.gaps.json(), "late_ms": self.late.json(),
        })
    }
}

impl fmt::Display for PollReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tasks, ended, polls) = (self.tasks, self.ended, self.polls);
        write!(
            f,
            "{tasks} tasks, {ended} seen to their end, {polls} polls; "
        )?;
        let (gaps, late) = (&self.gaps, &self.late);
        write!(f, "between two polls: {gaps}; end seen late by: {late}")
    }
}

/// The distribution of times; all values are zero if there are no times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distribution {
    /// The shortest.
    pub min: Duration,
    /// Half of the times are no longer than this.
    pub median: Duration,
    /// One in a hundred times is longer than this.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (min, median) = (self.min, self.median);
        write!(f, "min {min:.1?}, median {median:.1?}, ")?;
        write!(f, "p99 {:.1?}, max {:.1?}", self.p99, self.max)
    }
}

impl Distribution {
    fn json(&self) -> Value {
        let ms = |time: Duration| (time.as_secs_f64() * 10_000.0).round() / 10.0;
        json!({
            "min": ms(self.min), "median": ms(self.median), "p99": ms(self.p99),
            "max": ms(self.max),
        })
    }

    fn from_times(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| {
            let last = times.len().saturating_sub(1);
            times.get(last * percent / 100).copied().unwrap_or_default()
        };
        Self {
            min: at(0),
            median: at(50),
            p99: at(99),
            max: at(100),
        }
    }
}
