//! [`ResponseFormat`]: the functions that write receipts and records in one JSON format, with their schemas.

use serde_json::{Value, json};
use tollgate_core::TaskState;

use super::data::{ReceiptData, RecordData};

/// A JSON format of receipts and records.
pub struct ResponseFormat {
    /// A description for the docs pages.
    pub about: &'static str,
    /// Writes the response to a submission.
    pub(crate) receipt: fn(&ReceiptData<'_>) -> Value,
    /// The JSON Schema of that response.
    pub receipt_schema: fn() -> Value,
    /// Writes a task's record without envelope, as batches and lists contain it.
    pub(crate) record: fn(&RecordData<'_>) -> Value,
    /// The JSON Schema of the record without envelope.
    pub record_schema: fn() -> Value,
    /// Whether `GET /v1/tasks/<id>` wraps the record as `{code: 200, data}`.
    pub wrapped: bool,
    /// Returns the format's name for a task state.
    pub status: fn(TaskState) -> &'static str,
}

impl ResponseFormat {
    /// The response to a submission.
    pub(crate) fn receipt(&self, data: &ReceiptData<'_>) -> Value {
        (self.receipt)(data)
    }

    /// The response to `GET /v1/tasks/<id>`.
    pub(crate) fn record(&self, data: &RecordData<'_>) -> Value {
        let record = self.bare_record(data);
        if self.wrapped {
            json!({ "code": 200, "data": record })
        } else {
            record
        }
    }

    /// The record without envelope, as in batches and lists.
    pub(crate) fn bare_record(&self, data: &RecordData<'_>) -> Value {
        (self.record)(data)
    }

    /// The response to `GET /v1/images/generations/<id>`: the same flat object for every kind of task.
    pub(crate) fn generation_record(&self, data: &RecordData<'_>) -> Value {
        json!({
            "task_id": data.task_id,
            "status": (self.status)(data.state),
            "progress": data.progress,
            "url": data.first_url(),
            "fail_reason": data.failure().map_or("", |(_, message)| message),
        })
    }
}
