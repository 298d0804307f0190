//! Parses fal's responses: submissions, statuses, outputs and errors.

use serde_json::Value;

use super::request_urls::RequestUrls;
use crate::adapter::{HttpResponse, ProviderClient, classify_error, missing_job_id_error};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::mapped::JobState;

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
/// A header that is missing in responses of fal's front proxy itself.
const REQUEST_ID: &str = "x-fal-request-id";

/// The URLs of an accepted request.
pub(super) fn parse_submission(
    client: &ProviderClient,
    response: &HttpResponse,
) -> Result<RequestUrls, ProviderError> {
    let json = response.json();
    let text = |name: &str| json[name].as_str().map(str::to_owned);
    let urls = (text("status_url"), text("response_url"), text("cancel_url"));
    match urls {
        (Some(status), Some(output), Some(cancel)) if response.status.is_success() => {
            Ok(RequestUrls {
                status,
                response: output,
                cancel,
            })
        }
        _ => Err(missing_job_id_error(
            response,
            response_error(client, response),
        )),
    }
}

/// The state in a status response. `None` if the request has finished and its output, or error, must be fetched.
pub(super) fn parse_status(
    client: &ProviderClient,
    response: &HttpResponse,
) -> Result<Option<JobState>, ProviderError> {
    let json = response.json();
    let Some(status) = json["status"]
        .as_str()
        .filter(|_| response.status.is_success())
    else {
        return Err(response_error(client, response));
    };
    let error = json["error"].as_str().filter(|error| !error.is_empty());
    Ok(match (status, error) {
        ("COMPLETED", Some(error)) => {
            let kind = json["error_type"].as_str().and_then(kind_of_type);
            let kind = kind.unwrap_or(UpstreamErrorKind::Failed);
            Some(JobState::Failed(ProviderError::new(
                kind,
                client.redact(error),
            )))
        }
        ("COMPLETED", None) => None,
        ("IN_QUEUE" | "IN_PROGRESS", _) => Some(JobState::Pending),
        (other, _) => {
            tracing::warn!(status = other, "an undocumented request status");
            Some(JobState::Pending)
        }
    })
}

/// The state in an output response. If the response states that the request is still in progress, the state is pending, whatever the status response
/// was.
pub(super) fn parse_output(
    client: &ProviderClient,
    response: &HttpResponse,
) -> Result<JobState, ProviderError> {
    let json = response.json();
    if response.status.is_success() && !json.is_null() {
        return Ok(JobState::Completed(json));
    }
    if response.status.as_u16() == 400 && error_message(&json).contains("still in progress") {
        return Ok(JobState::Pending);
    }
    let error = response_error(client, response);
    let is_proxy = !response.headers.contains_key(REQUEST_ID);
    match (response.status.as_u16(), error.kind) {
        // Fetching the output failed; the request itself did not.
        (502..=504, _) if is_proxy => Err(error),
        (200..=299, _) => Err(error),
        (
            _,
            UpstreamErrorKind::RateLimited
            | UpstreamErrorKind::KeyRejected
            | UpstreamErrorKind::QuotaExhausted,
        ) => Err(error),
        (404, _) => Ok(JobState::Failed(ProviderError {
            kind: UpstreamErrorKind::Failed,
            ..error
        })),
        _ => Ok(JobState::Failed(error)),
    }
}

/// Whether the safety checker replaced result number `index` by a black image.
pub(super) fn is_blacked_out(output: &Value, index: usize) -> bool {
    output["has_nsfw_concepts"][index] == true
}

/// The error of a response that is not the expected one.
pub(super) fn response_error(client: &ProviderClient, response: &HttpResponse) -> ProviderError {
    let json = response.json();
    let status = response.status.as_u16();
    let message = error_message(&json);
    let types = json["detail"].as_array().into_iter().flatten();
    let types = types.map(|item| &item["type"]);
    let mut types = types.chain([&json["error_type"]]).filter_map(Value::as_str);
    let lower = message.to_lowercase();
    let kind = if let Some(kind) = types.find_map(kind_of_type) {
        kind
    } else if status == 403 && QUOTA_PHRASES.iter().any(|phrase| lower.contains(phrase)) {
        UpstreamErrorKind::QuotaExhausted
    } else {
        classify_error(status, "", &message)
    };
    client.response_error(kind, response, &message)
}

/// The kind of an error type. `None` if the HTTP status decides.
fn kind_of_type(name: &str) -> Option<UpstreamErrorKind> {
    if MODERATION_TYPES.contains(&name) {
        return Some(UpstreamErrorKind::Moderated);
    }
    let is_server_error = name.starts_with("runner_") || SERVER_ERROR_TYPES.contains(&name);
    is_server_error.then_some(UpstreamErrorKind::Unavailable)
}

/// The messages of an error's `detail`, each with the input field that it is about.
fn error_message(json: &Value) -> String {
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
