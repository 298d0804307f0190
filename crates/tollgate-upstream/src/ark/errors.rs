//! Classifies Ark's errors: of requests, of single images of a group, of failed tasks.
//! <https://www.volcengine.com/docs/82379/1299023>

use serde_json::Value;

use crate::adapter::{HttpResponse, ProviderClient, classify_error};
use crate::error::{ProviderError, UpstreamErrorKind};

/// Code and message of an `error` object; `None` if it has neither.
fn code_and_message(error: &Value) -> Option<(&str, &str)> {
    let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
    let (code, message) = (text("code"), text("message"));
    (!code.is_empty() || !message.is_empty()).then_some((code, message))
}

/// The error of a response that is not a success.
pub(super) fn response_error(client: &ProviderClient, response: &HttpResponse) -> ProviderError {
    let json = response.json();
    let (code, message) = code_and_message(&json["error"]).unwrap_or_default();
    let status = response.status.as_u16();
    let kind =
        classify_code(code, message).unwrap_or_else(|| classify_error(status, code, message));
    client.response_error(kind, response, &message_with_code(code, message))
}

/// The `error` inside a successful response: of an image of a group, or of a task. `None` if there is no error.
pub(super) fn embedded_error(client: &ProviderClient, error: &Value) -> Option<ProviderError> {
    let (code, message) = code_and_message(error)?;
    let kind = classify_code(code, message).unwrap_or(UpstreamErrorKind::Failed);
    Some(ProviderError::new(
        kind,
        client.redact(&message_with_code(code, message)),
    ))
}

/// The message with its code, which states more precisely what was moderated (`.PrivacyInformation`).
fn message_with_code(code: &str, message: &str) -> String {
    match (code, message) {
        ("", message) => message.to_owned(),
        (code, "") => code.to_owned(),
        (code, message) => format!("{message} ({code})"),
    }
}

/// The kind of a code; `None` if the status decides: <https://www.volcengine.com/docs/82379/1299023>.
fn classify_code(code: &str, message: &str) -> Option<UpstreamErrorKind> {
    use UpstreamErrorKind::{
        KeyRejected, ModelNotFound, QuotaExhausted, RateLimited, Rejected, Unavailable,
        UnsupportedByChannel,
    };
    if code.contains("SensitiveContentDetected") || code.ends_with("RiskDetection") {
        return Some(UpstreamErrorKind::Moderated);
    }
    let (head, rest) = code.split_once('.').unwrap_or((code, ""));
    Some(match head {
        "AuthenticationError" | "InvalidAccountStatus" | "AccessDenied" => KeyRejected,
        "AccountOverdueError" | "SetLimitExceeded" => QuotaExhausted,
        "OperationDenied" => match rest {
            "ServiceOverdue" => QuotaExhausted,
            "ServiceNotOpen" => ModelNotFound,
            _ => UnsupportedByChannel,
        },
        "InvalidEndpoint" | "InvalidEndpointOrModel" | "ModelNotOpen" | "UnsupportedModel" => {
            ModelNotFound
        }
        // Either too many tasks are in the queue or the free tokens are used up: only the message distinguishes the two.
        "QuotaExceeded" if is_about_free_tokens(message) => QuotaExhausted,
        "QuotaExceeded" | "RateLimitExceeded" | "InflightBatchsizeExceeded" => RateLimited,
        "RequestBurstTooFast" => RateLimited,
        // The fault is the site's, not the key's, whatever the status.
        "ServerOverloaded" | "InternalServiceError" | "ContentSecurityDetectionError" => {
            Unavailable
        }
        _ if head.ends_with("RateLimitExceeded") => RateLimited,
        "MissingParameter" | "InvalidParameter" | "InvalidImageURL" | "OutofContextError" => {
            Rejected
        }
        _ => return None,
    })
}

fn is_about_free_tokens(message: &str) -> bool {
    let message = message.to_lowercase();
    ["free", "trial", "免费", "试用"]
        .iter()
        .any(|word| message.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_follows_the_message() {
        assert_eq!(message_with_code("A.B", "No."), "No. (A.B)");
        assert_eq!(message_with_code("", "No."), "No.");
        assert_eq!(message_with_code("A.B", ""), "A.B");
    }
}
