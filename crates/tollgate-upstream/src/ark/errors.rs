//! Classifies Ark's errors: of requests, of single images of a group, of failed tasks.
//! <https://www.volcengine.com/docs/82379/1299023>

use serde_json::Value;

use crate::adapter::{HttpResponse, ProviderClient, classify_error};
use crate::error::{ProviderError, UpstreamErrorKind};

/// Code and sentence of an `error` object; `None` if it is null or says nothing.
fn read(error: &Value) -> Option<(&str, &str)> {
    let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
    let (code, message) = (text("code"), text("message"));
    (!code.is_empty() || !message.is_empty()).then_some((code, message))
}

/// What an answer says that is no success.
pub(super) fn response_error(client: &ProviderClient, answer: &HttpResponse) -> ProviderError {
    let json = answer.json();
    let (code, message) = read(&json["error"]).unwrap_or_default();
    let status = answer.status.as_u16();
    let kind = kind(code, message).unwrap_or_else(|| classify_error(status, code, message));
    client.response_error(kind, answer, &sentence(code, message))
}

/// What `error` says inside an answer that is a success: of an image of a group, of a task. `None` if there is no error.
pub(super) fn embedded_error(client: &ProviderClient, error: &Value) -> Option<ProviderError> {
    let (code, message) = read(error)?;
    let kind = kind(code, message).unwrap_or(UpstreamErrorKind::Failed);
    Some(ProviderError::new(
        kind,
        client.redact(&sentence(code, message)),
    ))
}

/// The sentence with its code, which says more of a refusal (`.PrivacyInformation`) than the sentence.
fn sentence(code: &str, message: &str) -> String {
    match (code, message) {
        ("", message) => message.to_owned(),
        (code, "") => code.to_owned(),
        (code, message) => format!("{message} ({code})"),
    }
}

/// The meaning of a code, where the code has one of its own: <https://www.volcengine.com/docs/82379/1299023>.
fn kind(code: &str, message: &str) -> Option<UpstreamErrorKind> {
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
        // Too many tasks in the queue, or the free tokens used up: only the sentence tells.
        "QuotaExceeded" if speaks_of_free_tokens(message) => QuotaExhausted,
        "QuotaExceeded" | "RateLimitExceeded" | "InflightBatchsizeExceeded" => RateLimited,
        "RequestBurstTooFast" => RateLimited,
        // Of the site, not of the key, whatever its status.
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

fn speaks_of_free_tokens(message: &str) -> bool {
    let message = message.to_lowercase();
    ["free", "trial", "免费", "试用"]
        .iter()
        .any(|word| message.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use UpstreamErrorKind::{
        KeyRejected, ModelNotFound, Moderated, QuotaExhausted, RateLimited, Rejected, Unavailable,
        UnsupportedByChannel,
    };

    #[test]
    fn codes_decide() {
        for (code, message, expected) in [
            ("SensitiveContentDetected.Violence", "", Some(Moderated)),
            (
                "InputImageSensitiveContentDetected.PrivacyInformation",
                "",
                Some(Moderated),
            ),
            ("OutputAudioSensitiveContentDetected", "", Some(Moderated)),
            ("OutputImageRiskDetection", "", Some(Moderated)),
            ("ContentSecurityDetectionError", "", Some(Unavailable)),
            ("InvalidParameter.TaskTypeConstraint", "", Some(Rejected)),
            ("InvalidImageURL.EmptyURL", "", Some(Rejected)),
            ("MissingParameter", "", Some(Rejected)),
            ("InvalidEndpoint.ClosedEndpoint", "", Some(ModelNotFound)),
            ("InvalidEndpointOrModel.NotFound", "", Some(ModelNotFound)),
            ("ModelNotOpen", "", Some(ModelNotFound)),
            ("UnsupportedModel", "", Some(ModelNotFound)),
            ("OperationDenied.ServiceNotOpen", "", Some(ModelNotFound)),
            ("OperationDenied.ServiceOverdue", "", Some(QuotaExhausted)),
            ("OperationDenied.Whatever", "", Some(UnsupportedByChannel)),
            ("AuthenticationError", "", Some(KeyRejected)),
            ("InvalidAccountStatus", "", Some(KeyRejected)),
            ("AccountOverdueError", "", Some(QuotaExhausted)),
            ("SetLimitExceeded", "", Some(QuotaExhausted)),
            (
                "RateLimitExceeded.EndpointRPMExceeded",
                "",
                Some(RateLimited),
            ),
            ("ModelAccountIpmRateLimitExceeded", "", Some(RateLimited)),
            ("AccountRateLimitExceeded", "", Some(RateLimited)),
            ("RequestBurstTooFast", "", Some(RateLimited)),
            ("InflightBatchsizeExceeded", "", Some(RateLimited)),
            (
                "QuotaExceeded",
                "too many queued tasks, wait until some have ended",
                Some(RateLimited),
            ),
            (
                "QuotaExceeded",
                "The free trial quota is used up",
                Some(QuotaExhausted),
            ),
            ("ServerOverloaded", "", Some(Unavailable)),
            ("InternalServiceError", "", Some(Unavailable)),
            ("SomethingNew", "", None),
            ("", "", None),
        ] {
            assert_eq!(kind(code, message), expected, "{code} {message}");
        }
    }

    #[test]
    fn the_code_stands_behind_the_sentence() {
        assert_eq!(sentence("A.B", "No."), "No. (A.B)");
        assert_eq!(sentence("", "No."), "No.");
        assert_eq!(sentence("A.B", ""), "A.B");
    }
}
