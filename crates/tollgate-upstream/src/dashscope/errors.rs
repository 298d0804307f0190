//! Classifies DashScope's errors, of responses and of failed tasks.

use serde_json::Value;

use crate::adapter::{HttpResponse, ProviderClient, classify_error};
use crate::error::{ProviderError, UpstreamErrorKind};

/// The error of a failed task.
pub(super) fn task_error(client: &ProviderClient, output: &Value) -> ProviderError {
    let code = output["code"].as_str().unwrap_or_default();
    let message = client.redact(output["message"].as_str().unwrap_or_default());
    let kind = classify_code(code).unwrap_or(UpstreamErrorKind::Failed);
    match message.as_str() {
        "" => ProviderError::new(kind, "the upstream's task failed without an error message"),
        _ => ProviderError::new(kind, message),
    }
}

/// The error of a response that is not the expected one.
pub(super) fn response_error(client: &ProviderClient, response: &HttpResponse) -> ProviderError {
    let json = response.json();
    let (code, message) = (code(&json), json["message"].as_str().unwrap_or_default());
    let kind = classify_code(code)
        .unwrap_or_else(|| classify_error(response.status.as_u16(), code, message));
    client.response_error(kind, response, message)
}

/// The code of an error; empty if there is none.
pub(super) fn code(json: &Value) -> &str {
    json["code"].as_str().unwrap_or_default()
}

/// The kind of a code, of a response or of a failed task. `None` for codes that are not documented
/// (<https://help.aliyun.com/zh/model-studio/error-code>, October 2026).
fn classify_code(code: &str) -> Option<UpstreamErrorKind> {
    use UpstreamErrorKind::{
        KeyRejected, ModelNotFound, Moderated, QuotaExhausted, RateLimited, Rejected, Unavailable,
    };
    Some(match code {
        "DataInspectionFailed" | "data_inspection_failed" => Moderated,
        "InvalidApiKey" | "invalid_api_key" => KeyRejected,
        "Arrearage" | "insufficient_quota" => QuotaExhausted,
        "AccessDenied" | "AccessDenied.Unpurchased" | "Model.AccessDenied" | "ModelNotFound" => {
            ModelNotFound
        }
        "InvalidParameter" | "InvalidURL" | "UnsupportedOperation" => Rejected,
        "RequestTimeOut" | "ModelUnavailable" | "ServiceUnavailable" => Unavailable,
        _ if code.starts_with("BadRequest.") => Rejected,
        _ if code.starts_with("Throttling") => RateLimited,
        _ if code.starts_with("InternalError") => Unavailable,
        _ => return None,
    })
}
