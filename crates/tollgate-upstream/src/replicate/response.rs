//! Parses Replicate's responses: submissions and predictions.

use super::errors::{response_error, task_error};
use crate::adapter::{HttpResponse, ProviderClient, missing_job_id_error};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::mapped::JobState;

/// The id of an accepted prediction.
pub(super) fn parse_submission(
    client: &ProviderClient,
    response: &HttpResponse,
) -> Result<String, ProviderError> {
    let json = response.json();
    match json["id"].as_str() {
        Some(id) if response.status.is_success() && !id.is_empty() => Ok(id.to_owned()),
        _ => Err(missing_job_id_error(
            response,
            response_error(client, response),
        )),
    }
}

/// The state in the response to a poll.
pub(super) fn parse_prediction(
    client: &ProviderClient,
    response: &HttpResponse,
) -> Result<JobState, ProviderError> {
    let mut json = response.json();
    let Some(status) = json["status"]
        .as_str()
        .filter(|_| response.status.is_success())
    else {
        return Err(response_error(client, response));
    };
    let failed = |kind, message: &str| JobState::Failed(ProviderError::new(kind, message));
    Ok(match status {
        "starting" | "processing" => JobState::Pending,
        "succeeded" => JobState::Completed(json["output"].take()),
        "failed" => JobState::Failed(task_error(client, &json["error"])),
        "canceled" => failed(
            UpstreamErrorKind::Failed,
            "the upstream's task was cancelled",
        ),
        // A deadline passed while the prediction was queued: nothing was generated, nothing is charged.
        "aborted" => failed(
            UpstreamErrorKind::Unavailable,
            "the upstream ended the task before it started",
        ),
        other => {
            tracing::warn!(status = other, "an undocumented prediction status");
            JobState::Pending
        }
    })
}
