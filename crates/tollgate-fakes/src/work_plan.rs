//! How a piece of media work goes: its outcome, duration, polls and the size of its results.

use std::time::Duration;

use crate::directive::Directive;
use crate::fake::Options;
use crate::scenario::Scenario;

/// How it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Outcome {
    #[default]
    Good,
    /// Refused by moderation for what was asked.
    Blocked,
    /// Refused by moderation for what was made.
    Filtered,
    Failed,
    /// Not done in time.
    Expired,
}

impl Outcome {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Good => "succeeded",
            Self::Blocked => "blocked",
            Self::Filtered => "filtered",
            Self::Failed => "failed",
            Self::Expired => "expired",
        }
    }
}

/// What is decided for a piece of work when it is asked for.
#[derive(Debug, Clone)]
pub(crate) struct WorkPlan {
    pub(crate) outcome: Outcome,
    /// The poll at which a task is done at the earliest.
    pub(crate) polls: u32,
    /// How long it takes.
    pub(crate) work: Duration,
    /// How many results are good; all if there is no number.
    pub(crate) partial: Option<usize>,
    /// How large a result is at least.
    pub(crate) bytes: Option<u64>,
    /// What the request has said of later steps.
    pub(crate) later: Vec<Directive>,
}

impl WorkPlan {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            outcome: Outcome::Good,
            polls: options.polls,
            work: options.work,
            partial: None,
            bytes: options.result_bytes,
            later: Vec::new(),
        }
    }

    /// Takes a scenario of work into account.
    pub(crate) fn apply(&mut self, scenario: &Scenario) {
        match scenario {
            Scenario::Blocked => self.outcome = Outcome::Blocked,
            Scenario::ContentFilter => self.outcome = Outcome::Filtered,
            Scenario::Fail => self.outcome = Outcome::Failed,
            Scenario::Expire => self.outcome = Outcome::Expired,
            Scenario::Partial { count } => self.partial = Some(*count),
            Scenario::PollReport { count } => self.polls = *count,
            Scenario::ChatRequest { ms } => self.work = Duration::from_millis(*ms),
            Scenario::ResultBytes { bytes } => self.bytes = Some(*bytes),
            _ => {}
        }
    }

    /// How many of the results that were asked for are good.
    pub(crate) fn good(&self, asked: usize) -> usize {
        self.partial.map_or(asked, |partial| partial.min(asked))
    }
}
