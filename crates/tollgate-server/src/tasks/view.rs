//! Converts a stored task to the JSON record of its family.

use serde_json::{Map, Value, json};
use tollgate_core::{Adjustment, ApiError};
use tollgate_media::{AnyFamily, RecordData, ResultFile, TaskModel};
use tollgate_storage::file_name::media_type_of;
use tollgate_storage::files::FileStorage;
use tollgate_store::Task;

use crate::tasks::results::{StoredFile, StoredResult};

/// The forms in which a task is shown.
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

/// 404 for a task that does not exist or belongs to another user.
pub fn task_not_found() -> ApiError {
    ApiError::not_found("there is no such task")
}

/// The stored field with the client's name of the model, if channels use another name.
const REQUESTED_MODEL: &str = "model";

/// The fields of a job that records repeat, as they are stored for a task whose model channels call `name`.
pub fn echoed_with_model(
    mut echoed_fields: Map<String, Value>,
    model: &TaskModel,
    name: &str,
) -> Map<String, Value> {
    if model.name != name {
        echoed_fields.insert(REQUESTED_MODEL.to_owned(), model.name.as_str().into());
    }
    echoed_fields
}

/// The record of `task`.
///
/// # Errors
/// 500 if the stored fields cannot be read.
pub fn render(files: &FileStorage, task: &Task, view: View) -> Result<Value, ApiError> {
    let unreadable = |what: &str| {
        tracing::error!(task = task.id, what, "a stored task cannot be read");
        ApiError::internal()
    };
    let family = AnyFamily::by_name(&task.family).ok_or_else(|| unreadable("family"))?;
    let mut adjustments: Vec<Adjustment> =
        serde_json::from_str(&task.adjustments).map_err(|_| unreadable("adjustments"))?;
    let mut echoed_fields: Map<String, Value> =
        serde_json::from_str(&task.echoed_fields).map_err(|_| unreadable("echoed_fields"))?;
    let requested_model = echoed_fields.remove(REQUESTED_MODEL);
    let requested_model = requested_model.as_ref().and_then(Value::as_str);
    let stored = read_result(task)?;
    adjustments.extend(stored.adjustments);
    let stored = stored.files;
    let urls: Vec<String> = stored.iter().map(|file| files.url(&file.name)).collect();
    let files: Vec<ResultFile<'_>> = stored
        .iter()
        .zip(&urls)
        .map(|(file, url)| ResultFile {
            url,
            expires_at: file.expires_at * 1000,
            media_type: media_type_of(&file.name),
            bytes: Some(file.bytes),
        })
        .collect();
    let error = task.error.as_ref();
    let data = RecordData {
        task_id: &task.id,
        model: requested_model.unwrap_or(&task.model),
        state: task.state,
        progress: u8::try_from(task.progress.clamp(0, 100)).unwrap_or(0),
        created_at: task.created_at,
        started_at: task.started_at,
        ended_at: task.ended_at,
        cost: task.cost,
        refunded: task.refunded,
        files: &files,
        echoed_fields: &echoed_fields,
        error: error.map(|(code, message)| (code.as_str(), message.as_str())),
        adjustments: &adjustments,
    };
    Ok(match view {
        View::Record => family.record(&data),
        View::Bare => family.bare_record(&data),
        View::Generation => family.generation_record(&data),
        View::Video => tollgate_media::video_resource(&data),
    })
}

/// The result files of a completed task, in the order of delivery.
///
/// # Errors
/// 500 if the stored result cannot be read.
pub fn result_files(task: &Task) -> Result<Vec<StoredFile>, ApiError> {
    Ok(read_result(task)?.files)
}

fn read_result(task: &Task) -> Result<StoredResult, ApiError> {
    let Some(text) = &task.result else {
        return Ok(StoredResult::default());
    };
    serde_json::from_str(text).map_err(|e| {
        tracing::error!(task = task.id, error = %e, "a stored result cannot be read");
        ApiError::internal()
    })
}

/// The entry of a batch for an id that does not exist or belongs to another user.
pub fn not_found_entry(id: &Value) -> Value {
    json!({ "id": id, "status": "not_found" })
}
