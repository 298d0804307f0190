//! Receipts and records of most image families: `{code: 200, data: …}`.

use serde_json::{Value, json};
use tollgate_core::TaskState;

use super::data::{ReceiptData, RecordData};
use super::format::ResponseFormat;
use super::schema::{
    adjustments_schema, error_schema, refunded_schema, with_adjustments,
    with_charge_and_adjustments,
};

/// The format of the image families that have no format of their own.
pub static STANDARD: ResponseFormat = ResponseFormat {
    about: "The receipt is `{code: 200, data: [{status: \"submitted\", task_id}]}`; the record of `GET /v1/tasks/<task_id>` is `{code: 200, data: {…}}`, with the link of the first image at `data.result.images[0].url[0]`.",
    receipt,
    receipt_schema,
    record: |data| record(data, status(data.state)),
    record_schema: || record_schema(&["submitted", "in_progress", "completed", "failed"]),
    wrapped: true,
    status,
};

fn receipt(data: &ReceiptData<'_>) -> Value {
    let task = json!({ "status": "submitted", "task_id": data.task_id });
    json!({ "code": 200, "data": [with_adjustments(task, data.adjustments)] })
}

fn receipt_schema() -> Value {
    json!({
        "type": "object",
        "required": ["code", "data"],
        "properties": {
            "code": { "const": 200 },
            "data": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["status", "task_id"],
                    "properties": {
                        "status": { "const": "submitted" },
                        "task_id": { "type": "string" },
                        "adjustments": adjustments_schema(),
                    },
                },
            },
        },
    })
}

/// A cancelled task has status `failed` in this format.
fn status(state: TaskState) -> &'static str {
    match state {
        TaskState::Cancelled => TaskState::Failed.name(),
        other => other.name(),
    }
}

/// The record with that status.
pub(super) fn record(data: &RecordData<'_>, status: &str) -> Value {
    let mut record = json!({
        "id": data.task_id,
        "status": status,
        "progress": data.progress,
        "created_at": data.created_at.div_euclid(1000),
        "actual_time": data.actual_time(),
        "cost": data.cost,
    });
    if !data.files.is_empty() {
        let images: Vec<Value> = data
            .files
            .iter()
            .map(
                |file| json!({ "url": [file.url], "expires_at": file.expires_at.div_euclid(1000) }),
            )
            .collect();
        record["result"] = json!({ "images": images });
    }
    if let Some((code, message)) = data.failure() {
        record["error"] = json!({ "code": code, "message": message });
    }
    with_charge_and_adjustments(record, data)
}

/// The JSON Schema of [`record`] with those status values.
pub(super) fn record_schema(states: &[&str]) -> Value {
    json!({
        "type": "object",
        "required": ["id", "status", "progress", "created_at", "actual_time", "cost"],
        "properties": {
            "id": { "type": "string" },
            "status": { "enum": states },
            "progress": { "type": "integer", "minimum": 0, "maximum": 100 },
            "created_at": { "type": "integer", "description": "Unix seconds." },
            "actual_time": { "type": "integer", "description": "Whole seconds of processing; 0 until it ends." },
            "cost": { "type": "number", "description": "What was charged." },
            "refunded": refunded_schema(),
            "result": {
                "type": "object",
                "description": "Present if the task is completed.",
                "required": ["images"],
                "properties": {
                    "images": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["url", "expires_at"],
                            "properties": {
                                "url": { "type": "array", "items": { "type": "string", "format": "uri" } },
                                "expires_at": { "type": "integer", "description": "Unix seconds." },
                            },
                        },
                    },
                },
            },
            "error": error_schema(),
            "adjustments": adjustments_schema(),
        },
    })
}
