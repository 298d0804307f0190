//! Directives in the text of a request: `[[fake:…]]` scenarios, tools to call.

use std::str::FromStr;

use crate::scenario::Scenario;

/// At which step of a piece of work a scenario shows. Answers that no task is made for know the
/// first step alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The request that asks for it.
    Submit,
    /// A request for the state of a task.
    Poll,
    /// A request that ends a task before its time.
    Cancel,
    /// A request for a result.
    File,
}

impl Stage {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "submit" => Some(Self::Submit),
            "poll" => Some(Self::Poll),
            "cancel" => Some(Self::Cancel),
            "file" => Some(Self::File),
            _ => None,
        }
    }
}

/// A scenario, the step that it is for, and for how many requests of that step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directive {
    pub(crate) scenario: Scenario,
    pub(crate) stage: Stage,
    /// Only the first requests; all of them if there is no number.
    pub(crate) first: Option<u32>,
}

impl Directive {
    /// Whether it is for request number `turn`, counted from 1, of a step.
    pub(crate) fn is_for(&self, stage: Stage, turn: u32) -> bool {
        self.stage == stage && self.first.is_none_or(|first| turn <= first)
    }
}

impl FromStr for Directive {
    type Err = String;

    /// Reads `NAME[=VALUE][@STAGE][*FIRST]`, such as `status=503@poll*2`: the first two polls.
    fn from_str(text: &str) -> Result<Self, String> {
        let ending = text.rsplit_once('*');
        let ending = ending.and_then(|(rest, first)| Some((rest, first.parse().ok()?)));
        let (rest, first) = match ending {
            Some((rest, first)) => (rest, Some(first)),
            None => (text, None),
        };
        let ending = rest.rsplit_once('@');
        let ending = ending.and_then(|(rest, stage)| Some((rest, Stage::named(stage)?)));
        let (name, stage) = ending.unwrap_or((rest, Stage::Submit));
        Ok(Self {
            scenario: name.parse()?,
            stage,
            first,
        })
    }
}

/// Every `[[fake:…]]` of a text.
pub(crate) fn all(text: &str) -> Result<Vec<Directive>, String> {
    let begins = text.split("[[fake:").skip(1);
    let names = begins.filter_map(|rest| rest.split_once("]]"));
    names.map(|(name, _)| name.parse()).collect()
}

/// The name after `call tool`.
pub(crate) fn tool(text: &str) -> Option<&str> {
    let rest = text.split_once("call tool ")?.1.trim_start();
    let legal = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
    let end = rest.find(|c| !legal(c)).unwrap_or(rest.len());
    let name = rest[..end].trim_end_matches(['.', ':']);
    (!name.is_empty()).then_some(name)
}

/// Whether the text asks for thought.
pub(crate) fn thinks(text: &str) -> bool {
    text.contains("think")
}
