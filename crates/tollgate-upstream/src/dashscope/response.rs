//! Reads DashScope's responses: submissions, tasks and errors.

use serde_json::Value;

use crate::adapter::{HttpResponse, ProviderClient, classify_error, missing_job_id_error};
use crate::error::{ProviderError, UpstreamErrorKind};

/// What a task's state means.
pub(super) enum Task {
    /// Queued or being worked on.
    Open,
    /// Its images' links.
    Completed(Vec<String>),
    /// It ended without images.
    Failed(ProviderError),
}

/// The id of the task that a submission made.
pub(super) fn accepted(
    client: &ProviderClient,
    answer: &HttpResponse,
) -> Result<String, ProviderError> {
    let json = answer.json();
    let id = json["output"]["task_id"]
        .as_str()
        .filter(|id| !id.is_empty());
    match id {
        Some(id) if answer.status.is_success() => Ok(id.to_owned()),
        _ => Err(missing_job_id_error(answer, response_error(client, answer))),
    }
}

/// A task as the answer to a poll tells it.
pub(super) fn task(client: &ProviderClient, answer: &HttpResponse) -> Result<Task, ProviderError> {
    let json = answer.json();
    let output = &json["output"];
    let Some(status) = output["task_status"].as_str() else {
        return Err(response_error(client, answer));
    };
    if !answer.status.is_success() {
        return Err(response_error(client, answer));
    }
    Ok(match status {
        "PENDING" | "RUNNING" | "SUSPENDED" => Task::Open,
        "SUCCEEDED" => Task::Completed(links(output)),
        "FAILED" => Task::Failed(failure(client, output)),
        "CANCELED" => Task::Failed(failed("the upstream's task was cancelled")),
        "UNKNOWN" => Task::Failed(failed("the upstream does not know the task any more")),
        other => {
            tracing::warn!(status = other, "a task's state that is not documented");
            Task::Open
        }
    })
}

/// Every image of every choice: several images are several choices, a group's stand in one.
fn links(output: &Value) -> Vec<String> {
    let choices = output["choices"].as_array().into_iter().flatten();
    let items = choices.flat_map(|choice| choice["message"]["content"].as_array());
    let links = items.flatten().filter_map(|item| item["image"].as_str());
    links.map(str::to_owned).collect()
}

/// Why a task failed.
fn failure(client: &ProviderClient, output: &Value) -> ProviderError {
    let code = output["code"].as_str().unwrap_or_default();
    let message = client.redact(output["message"].as_str().unwrap_or_default());
    let kind = known(code).unwrap_or(UpstreamErrorKind::Failed);
    match message.as_str() {
        "" => ProviderError::new(kind, "the upstream's task failed without a reason"),
        _ => ProviderError::new(kind, message),
    }
}

fn failed(message: &str) -> ProviderError {
    ProviderError::new(UpstreamErrorKind::Failed, message)
}

/// What an answer means that is not the one asked for.
pub(super) fn response_error(client: &ProviderClient, answer: &HttpResponse) -> ProviderError {
    let json = answer.json();
    let (code, message) = (code(&json), json["message"].as_str().unwrap_or_default());
    let kind = known(code).unwrap_or_else(|| classify_error(answer.status.as_u16(), code, message));
    client.response_error(kind, answer, message)
}

/// The code of a refusal; empty where there is none.
pub(super) fn code(json: &Value) -> &str {
    json["code"].as_str().unwrap_or_default()
}

/// What a code means, of an answer as of a task that failed; none for codes that are not documented
/// (help.aliyun.com › Model Studio › error codes, October 2026).
fn known(code: &str) -> Option<UpstreamErrorKind> {
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
