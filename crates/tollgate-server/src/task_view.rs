//! A stored task as its family's record shows it.

use serde_json::{Map, Value, json};
use tollgate_core::{Adjustment, ApiError};
use tollgate_media::{AnyFamily, ResultFile, TaskFacts};
use tollgate_store::Task;

use crate::app::App;
use crate::blobs::media_type;
use crate::delivery::StoredResult;

/// Which of a task's shapes.
#[derive(Clone, Copy)]
pub enum View {
    /// `GET /v1/tasks/<id>`.
    Record,
    /// An entry of a list or batch: an image task's bare `data` object.
    Bare,
    /// `GET /v1/images/generations/<id>`.
    Generation,
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
    let adjustments: Vec<Adjustment> =
        serde_json::from_str(&task.adjustments).map_err(|_| unreadable("adjustments"))?;
    let result: StoredResult = match &task.result {
        Some(text) => serde_json::from_str(text).map_err(|_| unreadable("result"))?,
        None => StoredResult::default(),
    };
    let urls: Vec<String> = result
        .images
        .iter()
        .map(|p| app.blobs.url(&app.public_url, &p.name))
        .collect();
    let files: Vec<ResultFile<'_>> = result
        .images
        .iter()
        .zip(&urls)
        .map(|(picture, url)| ResultFile {
            url,
            expires_at: picture.expires_at * 1000,
            media_type: (picture.name.rsplit('.').next().and_then(media_type)).unwrap_or_default(),
            bytes: None,
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
        error: task
            .error
            .as_ref()
            .map(|(code, message)| (code.as_str(), message.as_str())),
        adjustments: &adjustments,
        shown: &Map::new(),
    };
    Ok(match view {
        View::Record => tollgate_media::record(family, &facts),
        View::Bare => tollgate_media::bare_record(family, &facts),
        View::Generation => tollgate_media::generation_record(family, &facts),
    })
}

/// The entry of a batch for an id that is unknown or another user's.
pub fn not_found(id: &Value) -> Value {
    json!({ "id": id, "status": "not_found" })
}
