//! Kling's envelope, and what its codes mean (kling.ai › document-api › error codes).

use serde_json::Value;

use crate::provider::{ProviderError, ProviderErrorKind};
use crate::wire::{Answer, Wire, judged};

/// Words by which a failed task's message tells that the content was refused: it has no code.
const REFUSAL_WORDS: &[&str] = &[
    "risk control",
    "sensitive",
    "content security",
    "content policy",
    "safety",
    "violat",
    "moderation",
    "审核",
    "违规",
    "敏感",
];

/// The code of the envelope; none where the answer is no envelope.
pub(super) fn code(answer: &Answer) -> Option<i64> {
    answer.json()["code"].as_i64()
}

/// The `data` of a good answer.
pub(super) fn data(wire: &Wire, answer: &Answer) -> Result<Value, ProviderError> {
    let mut json = answer.json();
    let code = json["code"].as_i64();
    if answer.status.is_success() && code == Some(0) {
        return Ok(json["data"].take());
    }
    let message = json["message"].as_str().unwrap_or_default();
    let kind = code.and_then(known);
    let kind = kind.unwrap_or_else(|| judged(answer.status.as_u16(), "", message));
    Err(wire.told(kind, answer, message))
}

fn known(code: i64) -> Option<ProviderErrorKind> {
    use ProviderErrorKind::{
        ChannelUnfit, KeyRefused, ModelMissing, Moderated, QuotaExhausted, RateLimited, Rejected,
        Retryable,
    };
    Some(match code {
        // 1304: this machine's address is not on the account's list.
        1000..=1004 | 1304 => KeyRefused,
        // With HTTP 429, but waiting does not help.
        1100..=1102 => QuotaExhausted,
        1103 | 1203 => ModelMissing,
        1200 | 1201 => Rejected,
        1202 => ChannelUnfit,
        1300 | 1301 => Moderated,
        1302 | 1303 => RateLimited,
        5000..=5002 => Retryable,
        _ => return None,
    })
}

/// Why a task failed, by its own words.
pub(super) fn failure(wire: &Wire, message: &str) -> ProviderError {
    let words = message.to_lowercase();
    let is_refusal = REFUSAL_WORDS.iter().any(|word| words.contains(word));
    let kind = match is_refusal {
        true => ProviderErrorKind::Moderated,
        false => ProviderErrorKind::Failed,
    };
    match wire.clean(message) {
        text if text.is_empty() => {
            ProviderError::new(kind, "the upstream's task failed without a reason")
        }
        text => ProviderError::new(kind, text),
    }
}

/// Where a task stands. The older APIs say `succeed`, the newer ones `succeeded`.
pub(super) enum State {
    Open,
    Done,
    Failed,
}

impl State {
    pub(super) fn of(status: &Value) -> Self {
        match status.as_str().unwrap_or_default() {
            "succeed" | "succeeded" => Self::Done,
            "failed" => Self::Failed,
            "submitted" | "processing" => Self::Open,
            other => {
                tracing::warn!(status = other, "a task's state that is not documented");
                Self::Open
            }
        }
    }
}
