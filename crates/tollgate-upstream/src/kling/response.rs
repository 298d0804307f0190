//! Kling's response envelope and its error codes (kling.ai › document-api › error codes).

use serde_json::Value;

use crate::adapter::{HttpResponse, ProviderClient, classify_error};
use crate::error::{ProviderError, UpstreamErrorKind};

/// Words by which a failed task's message tells that the content was refused. A task has no code, and the only reason that
/// the documents name is "the content risk control of the platform".
const REFUSAL_WORDS: &[&str] = &[
    "risk control",
    "sensitive",
    "content security",
    "content policy",
    "safety",
    "violat",
    "moderation",
    "风控",
    "审核",
    "违规",
    "敏感",
];
/// How messages begin that find fault with the client's images, as users report them: the first in new-api's pull
/// request 2532 of 2025, the second in gateways of others.
const IMAGE_WORDS: &[&str] = &[
    "image pixel is invalid",
    "the resolution or aspect ratio of the input image is invalid",
];
/// Words by which the provider takes the fault on itself: those of its codes 5000 to 5002, 1302 and 1303 (the last of which
/// users report as the end of a task too), and what invites to another try.
const OWN_FAULT_WORDS: &[&str] = &[
    "internal error",
    "internal timeout",
    "timed out",
    "temporarily unavailable",
    "busy",
    "too fast",
    "resource pack limit",
    "try again",
];

/// The code of the envelope; `None` if the answer is no envelope.
pub(super) fn code(answer: &HttpResponse) -> Option<i64> {
    answer.json()["code"].as_i64()
}

/// The `data` of a good answer.
pub(super) fn data(client: &ProviderClient, answer: &HttpResponse) -> Result<Value, ProviderError> {
    let mut json = answer.json();
    let code = json["code"].as_i64();
    if answer.status.is_success() && code == Some(0) {
        return Ok(json["data"].take());
    }
    let message = json["message"].as_str().unwrap_or_default();
    let kind = code.and_then(known);
    let kind = kind.unwrap_or_else(|| classify_error(answer.status.as_u16(), "", message));
    Err(client.response_error(kind, answer, message))
}

fn known(code: i64) -> Option<UpstreamErrorKind> {
    use UpstreamErrorKind::{
        KeyRejected, ModelNotFound, Moderated, QuotaExhausted, RateLimited, Rejected, Unavailable,
        UnsupportedByChannel,
    };
    Some(match code {
        // 1304: this machine's address is not on the account's list.
        1000..=1004 | 1304 => KeyRejected,
        // With HTTP 429, but waiting does not help.
        1100..=1102 => QuotaExhausted,
        1103 | 1203 => ModelNotFound,
        1200 | 1201 => Rejected,
        1202 => UnsupportedByChannel,
        1300 | 1301 => Moderated,
        1302 | 1303 => RateLimited,
        5000..=5002 => Unavailable,
        _ => return None,
    })
}

/// Why a task failed. What its words leave open counts as final: made again, it would be paid for again.
pub(super) fn failure(client: &ProviderClient, message: &str) -> ProviderError {
    client.task_error(classify_message(message), message)
}

fn classify_message(message: &str) -> UpstreamErrorKind {
    let words = message.to_lowercase();
    let says = |list: &[&str]| list.iter().any(|phrase| words.contains(phrase));
    // A refusal may invite to try again with another prompt.
    if says(REFUSAL_WORDS) {
        UpstreamErrorKind::Moderated
    } else if says(IMAGE_WORDS) {
        UpstreamErrorKind::Rejected
    } else if says(OWN_FAULT_WORDS) {
        UpstreamErrorKind::Unavailable
    } else {
        UpstreamErrorKind::Failed
    }
}

/// Where a task stands. The older APIs say `succeed`, the newer ones `succeeded`.
pub(super) enum State {
    Open,
    Completed,
    Failed,
}

impl State {
    pub(super) fn of(status: &Value) -> Self {
        match status.as_str().unwrap_or_default() {
            "succeed" | "succeeded" => Self::Completed,
            "failed" => Self::Failed,
            "submitted" | "processing" => Self::Open,
            other => {
                tracing::warn!(status = other, "a task's state that is not documented");
                Self::Open
            }
        }
    }
}

/// A task of videos.
pub(super) struct Task<'t> {
    pub(super) state: State,
    /// Why it failed; empty where it did not.
    pub(super) reason: &'t str,
    pub(super) outputs: Vec<Output<'t>>,
}

/// Where a video is.
pub(super) struct Output<'t> {
    pub(super) plain: Option<&'t str>,
    /// The same with the provider's mark, where one was asked for.
    pub(super) marked: Option<&'t str>,
}

impl<'t> Output<'t> {
    pub(super) fn of(video: &'t Value) -> Self {
        let link = |name: &str| video[name].as_str().filter(|url| !url.is_empty());
        Self {
            plain: link("url"),
            marked: link("watermark_url"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_failed_task_decide() {
        use UpstreamErrorKind::{Failed, Moderated, Rejected, Unavailable};
        for (message, expected) in [
            ("Failure to pass the risk control system", Moderated),
            (
                "Triggered the content risk control of the platform",
                Moderated,
            ),
            ("触发平台的内容风控", Moderated),
            (
                "Sensitive content, change the prompt and try again",
                Moderated,
            ),
            ("Image pixel is invalid", Rejected),
            (
                "The resolution or aspect ratio of the input image is invalid. Please ensure it meets the required specifications.",
                Rejected,
            ),
            ("Server internal error", Unavailable),
            ("Server internal timeout", Unavailable),
            ("Server temporarily unavailable", Unavailable),
            ("parallel task over resource pack limit", Unavailable),
            ("Service busy", Unavailable),
            ("Generation failed, please try again", Unavailable),
            ("Generation failed", Failed),
            ("", Failed),
        ] {
            assert_eq!(classify_message(message), expected, "{message}");
        }
    }
}
