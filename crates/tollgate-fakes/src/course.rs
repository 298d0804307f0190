//! How a piece of media work goes.

use std::time::Duration;

use crate::behaviour::Behaviour;
use crate::directive::Directive;
use crate::fake::Options;

/// How it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Verdict {
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

/// What is decided for a piece of work when it is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Course {
    pub(crate) verdict: Verdict,
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

impl Course {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            verdict: Verdict::Good,
            polls: options.polls,
            work: options.work,
            partial: None,
            bytes: options.result_bytes,
            later: Vec::new(),
        }
    }

    /// Takes a behaviour of work into account.
    pub(crate) fn obey(&mut self, behaviour: &Behaviour) {
        match behaviour {
            Behaviour::Blocked => self.verdict = Verdict::Blocked,
            Behaviour::ContentFilter => self.verdict = Verdict::Filtered,
            Behaviour::Fail => self.verdict = Verdict::Failed,
            Behaviour::Expire => self.verdict = Verdict::Expired,
            Behaviour::Partial { count } => self.partial = Some(*count),
            Behaviour::Polls { count } => self.polls = *count,
            Behaviour::Work { ms } => self.work = Duration::from_millis(*ms),
            Behaviour::ResultBytes { bytes } => self.bytes = Some(*bytes),
            _ => {}
        }
    }

    /// How many of the results that were asked for are good.
    pub(crate) fn good(&self, asked: usize) -> usize {
        self.partial.map_or(asked, |partial| partial.min(asked))
    }
}
