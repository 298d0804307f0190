//! The JSON of a response: complete, or one chunk of a stream.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::constants::MAX_CHOICE_INDEX;
use super::error::{self, malformed};
use super::usage::UsageMetadata;
use crate::error::MalformedResponse;

/// A response or a chunk of one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResponseChunk {
    #[serde(default)]
    candidates: Option<Vec<Candidate>>,
    pub(crate) prompt_feedback: Option<Map<String, Value>>,
    pub(crate) usage_metadata: Option<UsageMetadata>,
    pub(crate) model_version: Option<String>,
    pub(crate) response_id: Option<String>,
    error: Option<Value>,
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
}

/// One of the candidates, or a chunk of one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Candidate {
    content: Option<Content>,
    pub(crate) finish_reason: Option<String>,
    index: Option<u32>,
    pub(crate) grounding_metadata: Option<Value>,
    pub(crate) logprobs_result: Option<Value>,
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct Content {
    parts: Option<Vec<Value>>,
}

impl ResponseChunk {
    /// Parses a response or chunk. An error object in it is returned as [`MalformedResponse::Upstream`].
    pub(crate) fn parse(body: &[u8]) -> Result<Self, MalformedResponse> {
        let chunk: Self = serde_json::from_slice(body).map_err(|error| malformed(&error))?;
        match &chunk.error {
            Some(error) if !error.is_null() => {
                Err(MalformedResponse::Upstream(error::parse_error(error)))
            }
            _ => Ok(chunk),
        }
    }

    /// Takes the candidates out.
    pub(crate) fn candidates(&mut self) -> Vec<Candidate> {
        let mut candidates = self.candidates.take().unwrap_or_default();
        candidates.retain(|candidate| candidate.index() <= MAX_CHOICE_INDEX);
        candidates
    }

    /// Whether the prompt was blocked.
    pub(crate) fn is_prompt_blocked(&self) -> bool {
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
    /// The candidate's index; 0 if it is missing.
    pub(crate) fn index(&self) -> u32 {
        self.index.unwrap_or(0)
    }

    /// Takes the parts out; empty if there is no content.
    pub(crate) fn parts(&mut self) -> Vec<Value> {
        let content = self.content.take();
        content
            .and_then(|content| content.parts)
            .unwrap_or_default()
    }
}
