//! How a piece of media work goes: its outcome, duration, polls and the size of its results.

use std::time::Duration;

use crate::directive::Directive;
use crate::options::Options;
use crate::scenario::Scenario;

/// How work ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Outcome {
    #[default]
    Good,
    /// Moderation rejects the prompt.
    Blocked,
    /// Moderation rejects the result.
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

/// What is decided for a piece of work when it is requested.
#[derive(Debug, Clone)]
pub(crate) struct WorkPlan {
    pub(crate) outcome: Outcome,
    /// The first poll at which a task can have ended.
    pub(crate) polls: u32,
    pub(crate) duration: Duration,
    /// How many results are good; `None` if all are.
    pub(crate) partial: Option<usize>,
    /// The smallest size of a result in bytes.
    pub(crate) bytes: Option<u64>,
    /// The directives of the request for later steps.
    pub(crate) later: Vec<Directive>,
}

impl WorkPlan {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            outcome: Outcome::Good,
            polls: options.polls,
            duration: options.work,
            partial: None,
            bytes: options.result_bytes,
            later: Vec::new(),
        }
    }

    /// Applies a scenario; false if it says nothing of the work, but of the exchange.
    pub(crate) fn apply(&mut self, scenario: &Scenario) -> bool {
        match scenario {
            Scenario::Blocked => self.outcome = Outcome::Blocked,
            Scenario::ContentFilter => self.outcome = Outcome::Filtered,
            Scenario::Fail => self.outcome = Outcome::Failed,
            Scenario::Expire => self.outcome = Outcome::Expired,
            Scenario::Partial { count } => self.partial = Some(*count),
            Scenario::Polls { count } => self.polls = *count,
            Scenario::Work { ms } => self.duration = Duration::from_millis(*ms),
            Scenario::ResultBytes { bytes } => self.bytes = Some(*bytes),
            _ => return false,
        }
        true
    }

    /// How many of the requested results are good.
    pub(crate) fn good(&self, requested: usize) -> usize {
        self.partial
            .map_or(requested, |partial| partial.min(requested))
    }
}
