//! How a family's receipts and records look. Each shape has one file here.

mod date;
mod gpt_async;
mod processing;
mod speech;
mod standard;
mod video;

pub use gpt_async::GPT_ASYNC;
pub use processing::PROCESSING;
pub use speech::SPEECH;
pub use standard::STANDARD;
pub use video::VIDEO;

use serde_json::{Map, Value, json};
use tollgate_core::{Adjustment, Amount, Millis, TaskState};

use crate::AnyFamily;

/// One way to shape receipts and records.
pub struct Shape {
    /// A few words for the documents.
    pub about: &'static str,
    /// The answer to a submission.
    pub(crate) receipt: fn(&ReceiptFacts<'_>) -> Value,
    /// The JSON Schema of that answer.
    pub receipt_schema: fn() -> Value,
    /// A task's record, bare as batches and lists hold it.
    pub(crate) record: fn(&TaskFacts<'_>) -> Value,
    /// The JSON Schema of the bare record.
    pub record_schema: fn() -> Value,
    /// Whether the single query wraps the record as `{code: 200, data}`.
    pub wrapped: bool,
    /// What it calls a state.
    pub status: fn(TaskState) -> &'static str,
}

/// What a receipt tells.
#[derive(Debug, Clone, Copy)]
pub struct ReceiptFacts<'a> {
    /// The new task.
    pub task_id: &'a str,
    /// The model id as the client wrote it.
    pub model: &'a str,
    /// When it was taken, in milliseconds since 1970.
    pub created_at: Millis,
    /// `size` as asked or by default ([`PriceFacts`](crate::PriceFacts)).
    pub size: &'a str,
    /// The quality, where the family has qualities.
    pub quality: Option<&'a str>,
    /// [`MediaJob::shown`](crate::MediaJob::shown) of the settled job.
    pub shown: &'a Map<String, Value>,
    /// What the rules changed.
    pub adjustments: &'a [Adjustment],
}

/// What a record tells.
#[derive(Debug, Clone, Copy)]
pub struct TaskFacts<'a> {
    /// The task.
    pub task_id: &'a str,
    /// The model id as the client wrote it.
    pub model: &'a str,
    /// Where it stands.
    pub state: TaskState,
    /// Percent done, 0 to 100.
    pub progress: u8,
    /// When it was taken, in milliseconds since 1970.
    pub created_at: Millis,
    /// When its processing began.
    pub started_at: Option<Millis>,
    /// When it ended.
    pub ended_at: Option<Millis>,
    /// What was charged.
    pub cost: Amount,
    /// Its results.
    pub files: &'a [ResultFile<'a>],
    /// Why it failed, as code and message.
    pub error: Option<(&'a str, &'a str)>,
    /// What the rules changed.
    pub adjustments: &'a [Adjustment],
    /// [`MediaJob::shown`](crate::MediaJob::shown), as the store kept it.
    pub shown: &'a Map<String, Value>,
}

/// One result file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultFile<'a> {
    /// The link to its file.
    pub url: &'a str,
    /// When the link ends, in milliseconds since 1970.
    pub expires_at: Millis,
    /// Its media type, such as `video/mp4`. A film's last frame is told from the film by it.
    pub media_type: &'a str,
    /// Its length in bytes, where it was noted.
    pub bytes: Option<u64>,
}

/// The answer to a submission.
pub fn receipt(family: AnyFamily, facts: &ReceiptFacts<'_>) -> Value {
    (family.shape().receipt)(facts)
}

/// The answer to `GET /v1/tasks/<id>`.
pub fn record(family: AnyFamily, facts: &TaskFacts<'_>) -> Value {
    let record = bare_record(family, facts);
    if family.shape().wrapped {
        json!({ "code": 200, "data": record })
    } else {
        record
    }
}

/// The record as batches and lists hold it.
pub fn bare_record(family: AnyFamily, facts: &TaskFacts<'_>) -> Value {
    (family.shape().record)(facts)
}

/// The answer to `GET /v1/images/generations/<id>`, flat and the same for every kind.
pub fn generation_record(family: AnyFamily, facts: &TaskFacts<'_>) -> Value {
    json!({
        "task_id": facts.task_id,
        "status": (family.shape().status)(facts.state),
        "progress": facts.progress,
        "url": facts.first_url(),
        "fail_reason": facts.failure().map_or("", |(_, message)| message),
    })
}

/// The answer to `GET /v1/videos/<id>`: OpenAI's video resource with `metadata.url` (DECISIONS.md › Paths and shapes).
pub fn video_resource(facts: &TaskFacts<'_>) -> Value {
    video::resource(facts)
}

/// The JSON Schema of [`video_resource`].
pub fn video_resource_schema() -> Value {
    video::resource_schema()
}

impl ResultFile<'_> {
    fn is_picture(&self) -> bool {
        self.media_type.starts_with("image/")
    }
}

impl<'a> TaskFacts<'a> {
    /// The result itself: the first file, a film before the picture of its last frame.
    fn main_file(&self) -> Option<&'a ResultFile<'a>> {
        let film = self.files.iter().find(|file| !file.is_picture());
        film.or_else(|| self.files.first())
    }

    /// The result's link, empty while there is none.
    fn first_url(&self) -> &'a str {
        self.main_file().map_or("", |file| file.url)
    }

    /// Why there is no result, of a task that ended without one.
    fn failure(&self) -> Option<(&'a str, &'a str)> {
        match self.state {
            TaskState::Failed => Some(self.error.unwrap_or(("failed", "the task failed"))),
            TaskState::Cancelled => Some(("cancelled", "the task was cancelled")),
            TaskState::Submitted | TaskState::InProgress | TaskState::Completed => None,
        }
    }

    /// The error as records of films and speech have it: null, or code and message.
    fn error_value(&self) -> Value {
        self.failure().map_or(
            Value::Null,
            |(code, message)| json!({ "code": code, "message": message }),
        )
    }

    /// When it ended well, in Unix seconds; null else.
    fn completed_at(&self) -> Value {
        let completed = self.state == TaskState::Completed;
        let at = self.ended_at.filter(|_| completed);
        at.map_or(Value::Null, |at| at.div_euclid(1000).into())
    }

    /// When the result's link ends, in Unix seconds; null while there is none.
    fn expires_at(&self) -> Value {
        let file = self.main_file();
        file.map_or(Value::Null, |file| file.expires_at.div_euclid(1000).into())
    }

    /// What was kept of the request under that name; null when nothing was.
    fn shown(&self, name: &str) -> Value {
        self.shown.get(name).cloned().unwrap_or_default()
    }

    /// Whole seconds of processing, 0 until it ends.
    fn actual_time(&self) -> i64 {
        match (self.started_at, self.ended_at) {
            (Some(start), Some(end)) => (end - start).max(0) / 1000,
            _ => 0,
        }
    }
}

/// What records of films and speech call a state. A cancelled task reads `failed` (DECISIONS.md › Paths and shapes).
fn queued_status(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "queued",
        TaskState::Cancelled => TaskState::Failed.name(),
        other => other.name(),
    }
}

/// Every name of [`queued_status`].
const QUEUED_STATES: [&str; 4] = ["queued", "in_progress", "completed", "failed"];

/// Adds `adjustments` to `record` when there are any.
fn with_adjustments(mut record: Value, adjustments: &[Adjustment]) -> Value {
    if !adjustments.is_empty() {
        record["adjustments"] = json!(adjustments);
    }
    record
}

/// The JSON Schema of a list of adjustments.
fn adjustments_schema() -> Value {
    json!({
        "type": "array",
        "description": "Request values that the rules changed; absent when there are none.",
        "items": {
            "type": "object",
            "required": ["field", "asked", "used", "why"],
            "properties": {
                "field": { "type": "string" },
                "asked": { "description": "What was sent, shortened when long." },
                "used": { "description": "What is used instead; null when the field is ignored." },
                "why": { "type": "string" },
            },
        },
    })
}

/// The JSON Schema of a failed task's error.
fn error_schema() -> Value {
    json!({
        "type": "object",
        "description": "Of a task that ended without a result.",
        "required": ["code", "message"],
        "properties": { "code": { "type": "string" }, "message": { "type": "string" } },
    })
}
