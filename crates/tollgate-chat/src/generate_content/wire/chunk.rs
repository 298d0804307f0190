//! A reply, or a piece of one: the same object on the wire.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::error;
use super::super::usage::UsageMetadata;
use crate::error::Garbled;

/// A reply or a piece of one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Chunk {
    #[serde(default)]
    candidates: Option<Vec<Candidate>>,
    pub(in super::super) prompt_feedback: Option<Map<String, Value>>,
    pub(in super::super) usage_metadata: Option<UsageMetadata>,
    pub(in super::super) model_version: Option<String>,
    pub(in super::super) response_id: Option<String>,
    error: Option<Value>,
    #[serde(flatten)]
    pub(in super::super) rest: Map<String, Value>,
}

/// One of the replies, or a piece of it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Candidate {
    content: Option<Content>,
    pub(in super::super) finish_reason: Option<String>,
    index: Option<u32>,
    pub(in super::super) grounding_metadata: Option<Value>,
    pub(in super::super) logprobs_result: Option<Value>,
    #[serde(flatten)]
    pub(in super::super) rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct Content {
    parts: Option<Vec<Value>>,
}

/// Choices beyond this were never asked for.
const MOST_CHOICES: u32 = 127;

impl Chunk {
    /// Reads one. An error in it is the upstream's.
    pub(in super::super) fn read(body: &[u8]) -> Result<Self, Garbled> {
        let chunk: Self = serde_json::from_slice(body).map_err(|fault| malformed(&fault))?;
        match &chunk.error {
            Some(error) if !error.is_null() => Err(Garbled::Upstream(error::words_of(error))),
            _ => Ok(chunk),
        }
    }

    /// The replies in it.
    pub(in super::super) fn candidates(&mut self) -> Vec<Candidate> {
        let mut candidates = self.candidates.take().unwrap_or_default();
        candidates.retain(|candidate| candidate.index() <= MOST_CHOICES);
        candidates
    }

    /// Whether it says that the prompt was refused.
    pub(in super::super) fn is_blocked(&self) -> bool {
        let reason = self
            .prompt_feedback
            .as_ref()
            .and_then(|f| f.get("blockReason"));
        reason
            .and_then(Value::as_str)
            .is_some_and(|r| !r.is_empty())
    }
}

impl Candidate {
    /// Which reply it is.
    pub(in super::super) fn index(&self) -> u32 {
        self.index.unwrap_or(0)
    }

    /// Its parts; none where there is no content.
    pub(in super::super) fn parts(&mut self) -> Vec<Value> {
        let content = self.content.take();
        content
            .and_then(|content| content.parts)
            .unwrap_or_default()
    }
}

/// What is wrong with JSON, for the log: its place, no content.
pub(in super::super) fn malformed(fault: &serde_json::Error) -> Garbled {
    let what = match fault.classify() {
        serde_json::error::Category::Data => "JSON of another shape",
        _ => "no JSON",
    };
    Garbled::Malformed(format!(
        "{what} at line {} column {}",
        fault.line(),
        fault.column()
    ))
}
