//! A stored task as its family's record shows it.

use serde_json::{Map, Value, json};
use tollgate_core::{Adjustment, ApiError};
use tollgate_media::{AnyFamily, ResultFile, TaskFacts};
use tollgate_store::Task;

use crate::app::App;
use crate::blobs;
use crate::delivery::{StoredFile, StoredResult};

/// Which of a task's shapes.
#[derive(Clone, Copy)]
pub enum View {
    /// `GET /v1/tasks/<id>`.
    Record,
    /// An entry of a list or batch: an image task's bare `data` object.
    Bare,
    /// `GET /v1/images/generations/<id>`.
    Generation,
    /// `GET /v1/videos/<id>`.
    Video,
}

/// The body of 404 for a task that does not exist or is another user's.
pub fn unknown() -> ApiError {
    ApiError::not_found("there is no such task")
}

/// The record of `task`.
///
/// # Errors
/// 500 where what is stored cannot be read.
pub fn view(app: &App, task: &Task, view: View) -> Result<Value, ApiError> {
    let unreadable = |what: &str| {
        tracing::error!(task = task.id, what, "a stored task cannot be read");
        ApiError::internal()
    };
    let family = AnyFamily::by_name(&task.family).ok_or_else(|| unreadable("family"))?;
    let mut adjustments: Vec<Adjustment> =
        serde_json::from_str(&task.adjustments).map_err(|_| unreadable("adjustments"))?;
    let shown: Map<String, Value> =
        serde_json::from_str(&task.shown).map_err(|_| unreadable("shown"))?;
    let stored = result(task)?;
    adjustments.extend(stored.adjustments);
    let stored = stored.files;
    let urls: Vec<String> = stored
        .iter()
        .map(|file| app.blobs.url(&app.public_url, &file.name))
        .collect();
    let files: Vec<ResultFile<'_>> = stored
        .iter()
        .zip(&urls)
        .map(|(file, url)| ResultFile {
            url,
            expires_at: file.expires_at * 1000,
            media_type: blobs::media_type_of(&file.name),
            bytes: Some(file.bytes),
        })
        .collect();
    let facts = TaskFacts {
        task_id: &task.id,
        model: &task.model,
        state: task.state,
        progress: u8::try_from(task.progress.clamp(0, 100)).unwrap_or(0),
        created_at: task.created_at,
        started_at: task.started_at,
        ended_at: task.ended_at,
        cost: task.cost,
        files: &files,
        shown: &shown,
        error: task
            .error
            .as_ref()
            .map(|(code, message)| (code.as_str(), message.as_str())),
        adjustments: &adjustments,
    };
    Ok(match view {
        View::Record => tollgate_media::record(family, &facts),
        View::Bare => tollgate_media::bare_record(family, &facts),
        View::Generation => tollgate_media::generation_record(family, &facts),
        View::Video => tollgate_media::video_resource(&facts),
    })
}

/// The files of a completed task, in their order.
///
/// # Errors
/// 500 where what is stored cannot be read.
pub fn files(task: &Task) -> Result<Vec<StoredFile>, ApiError> {
    Ok(result(task)?.files)
}

fn result(task: &Task) -> Result<StoredResult, ApiError> {
    let Some(text) = &task.result else {
        return Ok(StoredResult::default());
    };
    serde_json::from_str(text).map_err(|e| {
        tracing::error!(task = task.id, error = %e, "a stored result cannot be read");
        ApiError::internal()
    })
}

/// The entry of a batch for an id that is unknown or another user's.
pub fn not_found(id: &Value) -> Value {
    json!({ "id": id, "status": "not_found" })
}
