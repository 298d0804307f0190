//! Replicate's predictions, and what its refusals mean.

use serde_json::Value;

use crate::mapped::State;
use crate::provider::{ProviderError, ProviderErrorKind};
use crate::wire::{Answer, Wire, judged, unnamed};

/// Words of a failed prediction's free text that say that the content was refused.
const REFUSAL_WORDS: &[&str] = &[
    "nsfw",
    "sensitive",
    "(e005)",
    "safety",
    "moderation",
    "content policy",
];
/// Words that say that another try may do.
const RETRY_WORDS: &[&str] = &[
    "please retry",
    "interrupted",
    "(code: pa)",
    "out of capacity",
];

/// The id of the prediction that a submission made.
pub(super) fn accepted(wire: &Wire, answer: &Answer) -> Result<String, ProviderError> {
    let json = answer.json();
    match json["id"].as_str() {
        Some(id) if answer.status.is_success() && !id.is_empty() => Ok(id.to_owned()),
        _ => Err(unnamed(answer, refusal(wire, answer))),
    }
}

/// A prediction as the answer to a poll tells it.
pub(super) fn prediction(wire: &Wire, answer: &Answer) -> Result<State, ProviderError> {
    let mut json = answer.json();
    let Some(status) = json["status"]
        .as_str()
        .filter(|_| answer.status.is_success())
    else {
        return Err(refusal(wire, answer));
    };
    let failed = |kind, words: &str| State::Failed(ProviderError::new(kind, words));
    Ok(match status {
        "starting" | "processing" => State::Open,
        "succeeded" => State::Done(json["output"].take()),
        "failed" => State::Failed(failure(wire, &json["error"])),
        "canceled" => failed(
            ProviderErrorKind::Failed,
            "the upstream's task was cancelled",
        ),
        // A deadline passed in the queue: nothing was made, nothing is charged.
        "aborted" => failed(
            ProviderErrorKind::Retryable,
            "the upstream ended the task before it began",
        ),
        other => {
            tracing::warn!(
                status = other,
                "a prediction's state that is not documented"
            );
            State::Open
        }
    })
}

/// Why a prediction failed: free text is all there is.
fn failure(wire: &Wire, error: &Value) -> ProviderError {
    let text = error.as_str().unwrap_or_default();
    let words = text.to_lowercase();
    let says = |list: &[&str]| list.iter().any(|phrase| words.contains(phrase));
    let kind = if says(REFUSAL_WORDS) {
        ProviderErrorKind::Moderated
    } else if says(RETRY_WORDS) {
        ProviderErrorKind::Retryable
    } else {
        ProviderErrorKind::Failed
    };
    match wire.clean(text) {
        text if text.is_empty() => {
            ProviderError::new(kind, "the upstream's task failed without a reason")
        }
        text => ProviderError::new(kind, text),
    }
}

/// What an answer means that is not the one asked for (RFC 7807).
pub(super) fn refusal(wire: &Wire, answer: &Answer) -> ProviderError {
    let json = answer.json();
    let detail = json["detail"].as_str().or_else(|| json["title"].as_str());
    let detail = detail.unwrap_or_default();
    let kind = match answer.status.as_u16() {
        // No access to the model, where a bad token is a 401.
        403 | 404 => ProviderErrorKind::ModelMissing,
        status => judged(status, "", detail),
    };
    wire.told(kind, answer, detail)
}
