//! Parses DashScope's responses: submissions and tasks.

use serde_json::Value;

use super::errors::{response_error, task_error};
use crate::adapter::{HttpResponse, ProviderClient, missing_job_id_error};
use crate::error::{ProviderError, UpstreamErrorKind};

/// A task.
pub(super) enum Task {
    /// The task is queued or running.
    Open,
    /// The task is complete, with the links to its images.
    Completed(Vec<String>),
    /// The task ended without images.
    Failed(ProviderError),
}

/// The id of the task that a submission created.
pub(super) fn parse_submission(
    client: &ProviderClient,
    response: &HttpResponse,
) -> Result<String, ProviderError> {
    let json = response.json();
    let id = json["output"]["task_id"]
        .as_str()
        .filter(|id| !id.is_empty());
    match id {
        Some(id) if response.status.is_success() => Ok(id.to_owned()),
        _ => Err(missing_job_id_error(
            response,
            response_error(client, response),
        )),
    }
}

/// The task in the response to a poll.
pub(super) fn parse_task(
    client: &ProviderClient,
    response: &HttpResponse,
) -> Result<Task, ProviderError> {
    let json = response.json();
    let output = &json["output"];
    let Some(status) = output["task_status"].as_str() else {
        return Err(response_error(client, response));
    };
    if !response.status.is_success() {
        return Err(response_error(client, response));
    }
    Ok(match status {
        "PENDING" | "RUNNING" | "SUSPENDED" => Task::Open,
        "SUCCEEDED" => Task::Completed(links(output)),
        "FAILED" => Task::Failed(task_error(client, output)),
        "CANCELED" => Task::Failed(failed("the upstream's task was cancelled")),
        "UNKNOWN" => Task::Failed(failed("the upstream no longer has the task")),
        other => {
            tracing::warn!(status = other, "an undocumented task status");
            Task::Open
        }
    })
}

/// The links to every image of every choice: several images are several choices, those of a group are in one.
fn links(output: &Value) -> Vec<String> {
    let choices = output["choices"].as_array().into_iter().flatten();
    let items = choices.flat_map(|choice| choice["message"]["content"].as_array());
    let links = items.flatten().filter_map(|item| item["image"].as_str());
    links.map(str::to_owned).collect()
}

fn failed(message: &str) -> ProviderError {
    ProviderError::new(UpstreamErrorKind::Failed, message)
}
