//! Receipts and records of wan2.7: the standard records, but with status `processing` until the task ends.

use serde_json::{Value, json};
use tollgate_core::TaskState;

use super::data::ReceiptData;
use super::format::ResponseFormat;
use super::schema::{adjustments_schema, with_adjustments};
use super::standard;

/// The status of a task that has not ended.
const UNFINISHED: &str = "processing";

/// The format of wan2.7; see docs/models/wan2.7.md.
pub static WAN: ResponseFormat = ResponseFormat {
    about: "The receipt is `{code: \"success\", message: \"\", data: [{task_id, status: \"processing\"}]}`; the record of `GET /v1/tasks/<task_id>` is `{code: 200, data: {…}}` with status `processing` until it ends.",
    receipt,
    receipt_schema,
    record: |data| standard::record(data, status(data.state)),
    record_schema: || standard::record_schema(&[UNFINISHED, "completed", "failed"]),
    wrapped: true,
    status,
};

fn receipt(data: &ReceiptData<'_>) -> Value {
    let task = json!({ "task_id": data.task_id, "status": UNFINISHED });
    json!({
        "code": "success",
        "message": "",
        "data": [with_adjustments(task, data.adjustments)],
    })
}

fn receipt_schema() -> Value {
    json!({
        "type": "object",
        "required": ["code", "message", "data"],
        "properties": {
            "code": { "const": "success" },
            "message": { "type": "string" },
            "data": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["task_id", "status"],
                    "properties": {
                        "task_id": { "type": "string" },
                        "status": { "const": UNFINISHED },
                        "adjustments": adjustments_schema(),
                    },
                },
            },
        },
    })
}

fn status(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted | TaskState::InProgress => UNFINISHED,
        TaskState::Completed => "completed",
        TaskState::Failed | TaskState::Cancelled => "failed",
    }
}
