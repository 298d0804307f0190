//! Parses scenarios in the text of a request: `[[fake:NAME]]`, optionally for one step of the work or for its first requests only.

use std::str::FromStr;

use serde::Deserialize;

use crate::scenario::Scenario;

/// The step of a piece of work to which a scenario applies. Responses without a task have only the first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// The request that starts the work.
    Submit,
    /// A request for the state of a task.
    Poll,
    /// A request that ends a task early.
    Cancel,
    /// A request for a result.
    File,
}

/// A scenario, the step to which it applies, and for how many requests of that step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directive {
    pub(crate) scenario: Scenario,
    pub(crate) stage: Stage,
    /// The scenario applies to this many first requests only; `None` if it applies to all of them.
    pub(crate) first: Option<u32>,
}

impl FromStr for Directive {
    type Err = String;

    /// Reads `NAME[=VALUE][@STAGE][*FIRST]`, such as `status=503@poll*2`: the first two polls.
    fn from_str(text: &str) -> Result<Self, String> {
        let ending = text.rsplit_once('*');
        let ending = ending.and_then(|(rest, first)| Some((rest, first.parse().ok()?)));
        let (rest, first) = ending.map_or((text, None), |(rest, first)| (rest, Some(first)));
        let ending = rest.rsplit_once('@').and_then(|(rest, stage)| {
            let stage = match stage {
                "submit" => Stage::Submit,
                "poll" => Stage::Poll,
                "cancel" => Stage::Cancel,
                "file" => Stage::File,
                _ => return None,
            };
            Some((rest, stage))
        });
        let (name, stage) = ending.unwrap_or((rest, Stage::Submit));
        Ok(Self {
            scenario: name.parse()?,
            stage,
            first,
        })
    }
}
