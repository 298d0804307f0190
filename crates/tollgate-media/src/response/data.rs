//! The data of receipts and records, independent of their JSON format.

use serde_json::{Map, Value, json};
use tollgate_core::{Adjustment, Amount, Millis, TaskState};

/// The contents of a receipt.
#[derive(Debug, Clone, Copy)]
pub struct ReceiptData<'a> {
    /// The id of the new task.
    pub task_id: &'a str,
    /// The model id as the client wrote it.
    pub model: &'a str,
    /// The time of submission, in milliseconds since 1970.
    pub created_at: Millis,
    /// `size` as in [`PriceFactors`](crate::PriceFactors).
    pub size: &'a str,
    /// The quality. `None` if the family has no `quality` field.
    pub quality: Option<&'a str>,
    /// [`MediaJob::echoed_fields`](crate::MediaJob::echoed_fields) of the final job.
    pub echoed_fields: &'a Map<String, Value>,
    /// Request values that were changed or ignored.
    pub adjustments: &'a [Adjustment],
}

/// The contents of a task record.
#[derive(Debug, Clone, Copy)]
pub struct RecordData<'a> {
    /// The id of the task.
    pub task_id: &'a str,
    /// The model id as the client wrote it.
    pub model: &'a str,
    /// The task's state.
    pub state: TaskState,
    /// Progress in percent, 0 to 100.
    pub progress: u8,
    /// The time of submission, in milliseconds since 1970.
    pub created_at: Millis,
    /// The time when processing started. `None` if it has not started.
    pub started_at: Option<Millis>,
    /// The time when the task ended. `None` if it has not ended.
    pub ended_at: Option<Millis>,
    /// The amount charged.
    pub cost: Amount,
    /// The refunded part of the amount charged.
    pub refunded: Amount,
    /// The task's result files.
    pub files: &'a [ResultFile<'a>],
    /// Error code and message of a failed task. `None` for other tasks.
    pub error: Option<(&'a str, &'a str)>,
    /// Request values that were changed or ignored.
    pub adjustments: &'a [Adjustment],
    /// [`MediaJob::echoed_fields`](crate::MediaJob::echoed_fields), as stored with the task.
    pub echoed_fields: &'a Map<String, Value>,
}

/// One result file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultFile<'a> {
    /// The file's download link.
    pub url: &'a str,
    /// The time when the link expires, in milliseconds since 1970.
    pub expires_at: Millis,
    /// The file's media type, such as `video/mp4`; distinguishes a video from the image of its last frame.
    pub media_type: &'a str,
    /// The file's size in bytes. `None` if it was not recorded.
    pub bytes: Option<u64>,
}

impl ResultFile<'_> {
    pub(super) fn is_image(&self) -> bool {
        self.media_type.starts_with("image/")
    }
}

impl<'a> RecordData<'a> {
    /// The main result: the first file that is not an image (a video rather than its last frame), else the first file.
    pub(super) fn main_file(&self) -> Option<&'a ResultFile<'a>> {
        let video = self.files.iter().find(|file| !file.is_image());
        video.or_else(|| self.files.first())
    }

    /// The link of the main result; empty if there is no result.
    pub(super) fn first_url(&self) -> &'a str {
        self.main_file().map_or("", |file| file.url)
    }

    /// Error code and message of a task that ended without a result. `None` for other tasks.
    pub(super) fn failure(&self) -> Option<(&'a str, &'a str)> {
        match self.state {
            TaskState::Failed => Some(self.error.unwrap_or(("failed", "the task failed"))),
            TaskState::Cancelled => Some(("cancelled", "the task was cancelled")),
            TaskState::Submitted | TaskState::InProgress | TaskState::Completed => None,
        }
    }

    /// The `error` of video and speech records: null, or code and message.
    pub(super) fn error_value(&self) -> Value {
        self.failure().map_or(
            Value::Null,
            |(code, message)| json!({ "code": code, "message": message }),
        )
    }

    /// The time when the task completed, in Unix seconds; null if it has not.
    pub(super) fn completed_at(&self) -> Value {
        let completed = self.state == TaskState::Completed;
        let at = self.ended_at.filter(|_| completed);
        at.map_or(Value::Null, |at| at.div_euclid(1000).into())
    }

    /// The time when the main result's link expires, in Unix seconds; null if there is no result.
    pub(super) fn expires_at(&self) -> Value {
        let file = self.main_file();
        file.map_or(Value::Null, |file| file.expires_at.div_euclid(1000).into())
    }

    /// The request value stored under that name; null if it is missing.
    pub(super) fn echoed_field(&self, name: &str) -> Value {
        self.echoed_fields.get(name).cloned().unwrap_or_default()
    }

    /// The processing time in whole seconds; 0 until the task ends.
    pub(super) fn actual_time(&self) -> i64 {
        match (self.started_at, self.ended_at) {
            (Some(start), Some(end)) => (end - start).max(0) / 1000,
            _ => 0,
        }
    }
}
