//! Parses fal's responses: submissions, statuses and outputs.

use serde_json::Value;

use super::errors::{classify_type, error_message, response_error};
use super::request_urls::RequestUrls;
use crate::adapter::{HttpResponse, ProviderClient, missing_job_id_error};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::mapped::JobState;

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
            let kind = json["error_type"].as_str().and_then(classify_type);
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
