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
    /// What the provider wants to know of it later.
    pub(crate) kept: Value,
    /// Different for every task.
    pub(crate) number: u64,
    pub(crate) created_at: SystemTime,
    pub(crate) plan: WorkPlan,
    /// Links to its results, once there are some.
    pub(crate) results: Vec<String>,
    started: Instant,
    polls: Vec<Instant>,
    /// How many requests of other kinds were about it.
    others: HashMap<Stage, u32>,
    cancelled: bool,
    /// When it was seen to have ended.
    ended: Option<(Instant, SystemTime)>,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskState {
    Queued,
    /// Percent.
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

    /// How far it is now.
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

    /// When it ended, or the present.
    pub(crate) fn changed_at(&self) -> SystemTime {
        self.ended.map_or_else(SystemTime::now, |(_, at)| at)
    }

    /// Ends it before its time.
    pub(crate) fn cancel(&mut self) {
        self.cancelled = true;
        self.ended = Some((Instant::now(), SystemTime::now()));
    }

    /// Notes a request about it: the number of its kind.
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

/// All tasks.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    by_id: HashMap<String, Task>,
    by_external: HashMap<String, String>,
    /// In the order in which they came.
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

    /// Notes the client's own id of a task; false if it has that of another already.
    pub(crate) fn name(&mut self, external: &str, id: &str) -> bool {
        let free = !self.by_external.contains_key(external);
        if free {
            self.by_external.insert(external.to_owned(), id.to_owned());
        }
        free
    }

    /// The task that has this id of the client's.
    pub(crate) fn id_of(&self, external: &str) -> Option<&str> {
        self.by_external.get(external).map(String::as_str)
    }

    /// The ids, the oldest first.
    pub(crate) fn ids(&self) -> &[String] {
        &self.ids
    }

    /// When each task was asked about, the oldest first.
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
            let done = task.started + task.plan.duration;
            late.extend(
                task.ended
                    .map(|(request, _)| request.saturating_duration_since(done)),
            );
        }
        PollReport {
            tasks: self.ids.len(),
            ended: late.len(),
            polls,
            gaps: Distribution::of(gaps),
            late: Distribution::of(late),
        }
    }
}

/// How the tasks of a fake were polled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollReport {
    /// Tasks that were started.
    pub tasks: usize,
    /// Those of them that were seen to have ended.
    pub ended: usize,
    /// Polls of all tasks.
    pub polls: usize,
    /// The times between two polls of the same task.
    pub gaps: Distribution,
    /// How long after its work was done the end of a task was seen.
    pub late: Distribution,
}

impl PollReport {
    /// The same as JSON, times in milliseconds.
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

/// How some times spread; all are zero if there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distribution {
    /// The shortest.
    pub min: Duration,
    /// Half of them are no longer than this.
    pub median: Duration,
    /// Of a hundred, one is longer than this.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (min, median) = (self.min, self.median);
        write!(f, "least {min:.1?}, median {median:.1?}, ")?;
        write!(f, "p99 {:.1?}, most {:.1?}", self.p99, self.max)
    }
}

impl Distribution {
    fn json(&self) -> Value {
        let ms = |time: Duration| (time.as_secs_f64() * 10_000.0).round() / 10.0;
        json!({
            "least": ms(self.min), "median": ms(self.median), "p99": ms(self.p99),
            "most": ms(self.max),
        })
    }

    fn of(mut times: Vec<Duration>) -> Self {
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
