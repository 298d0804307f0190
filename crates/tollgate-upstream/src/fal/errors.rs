//! Classifies fal's errors, of responses and of failed requests.

use serde_json::Value;

use crate::adapter::{HttpResponse, ProviderClient, classify_error};
use crate::error::{ProviderError, UpstreamErrorKind};

/// Types of errors of the safety system.
const MODERATION_TYPES: &[&str] = &["content_policy_violation"];
/// Types of errors on fal's side, in addition to all that begin with `runner_`.
const SERVER_ERROR_TYPES: &[&str] = &[
    "internal_server_error",
    "internal_error",
    "generation_timeout",
    "request_timeout",
    "startup_timeout",
    "downstream_service_error",
    "downstream_service_unavailable",
];
/// Words in the message of a 403 that mean used-up credit.
const QUOTA_PHRASES: &[&str] = &["balance", "locked"];

/// The error of a response that is not the expected one.
pub(super) fn response_error(client: &ProviderClient, response: &HttpResponse) -> ProviderError {
    let json = response.json();
    let status = response.status.as_u16();
    let message = error_message(&json);
    let types = json["detail"].as_array().into_iter().flatten();
    let types = types.map(|item| &item["type"]);
    let mut types = types.chain([&json["error_type"]]).filter_map(Value::as_str);
    let lower = message.to_lowercase();
    let kind = if let Some(kind) = types.find_map(classify_type) {
        kind
    } else if status == 403 && QUOTA_PHRASES.iter().any(|phrase| lower.contains(phrase)) {
        UpstreamErrorKind::QuotaExhausted
    } else {
        classify_error(status, "", &message)
    };
    client.response_error(kind, response, &message)
}

/// The kind of an error type. `None` if the HTTP status decides.
pub(super) fn classify_type(name: &str) -> Option<UpstreamErrorKind> {
    if MODERATION_TYPES.contains(&name) {
        return Some(UpstreamErrorKind::Moderated);
    }
    let is_server_error = name.starts_with("runner_") || SERVER_ERROR_TYPES.contains(&name);
    is_server_error.then_some(UpstreamErrorKind::Unavailable)
}

/// The messages of an error's `detail`, each with the input field that it is about.
pub(super) fn error_message(json: &Value) -> String {
    let item = |item: &Value| {
        let text = item["msg"].as_str()?;
        let path = item["loc"].as_array().into_iter().flatten();
        let path: Vec<&str> = path
            .filter_map(Value::as_str)
            .filter(|p| *p != "body")
            .collect();
        Some(match path.as_slice() {
            [] => text.to_owned(),
            _ => format!("{}: {text}", path.join(".")),
        })
    };
    match &json["detail"] {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().filter_map(item).collect();
            texts.join("; ")
        }
        _ => String::new(),
    }
}
