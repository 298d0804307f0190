//! The plan of a piece of media work: its outcome, duration, polls and the size of its results.

use std::time::Duration;

use crate::directive::Directive;
use crate::options::Options;
use crate::scenario::Scenario;

/// How work ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Outcome {
    #[default]
    Succeeded,
    /// Moderation rejects the prompt.
    Blocked,
    /// Moderation rejects the result.
    Filtered,
    Failed,
    /// The work did not end in time.
    Expired,
}

impl Outcome {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Blocked => "blocked",
            Self::Filtered => "filtered",
            Self::Failed => "failed",
            Self::Expired => "expired",
        }
    }
}

/// The plan of a piece of work, determined when it is requested.
#[derive(Debug, Clone)]
pub(crate) struct WorkPlan {
    pub(crate) outcome: Outcome,
    /// The first poll at which a task can have ended.
    pub(crate) polls: u32,
    pub(crate) duration: Duration,
    /// The number of results that are generated; `None` if all are.
    pub(crate) partial: Option<usize>,
    /// The smallest size of a result in bytes.
    pub(crate) bytes: Option<u64>,
    /// The directives of the request for later steps.
    pub(crate) later: Vec<Directive>,
}

impl WorkPlan {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            outcome: Outcome::Succeeded,
            polls: options.polls,
            duration: options.work,
            partial: None,
            bytes: options.result_bytes,
            later: Vec::new(),
        }
    }

    /// Applies a scenario; returns false if it concerns the exchange rather than the work.
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

    /// The number of requested results that are generated.
    pub(crate) fn good(&self, requested: usize) -> usize {
        self.partial
            .map_or(requested, |partial| partial.min(requested))
    }
}
