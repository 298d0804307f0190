//! The shape of most image families: `{code: 200, data: …}`.

use serde_json::{Value, json};
use tollgate_core::TaskState;

use super::{ReceiptFacts, Shape, TaskFacts, adjustments_schema, error_schema, with_adjustments};

/// SPEC.md › Task submission receipts, first row, and › Task query records, first item.
pub static STANDARD: Shape = Shape {
    about: "The receipt is `{code: 200, data: [{status: \"submitted\", task_id}]}`; the record of `GET /v1/tasks/<task_id>` is `{code: 200, data: {…}}`, its first image at `data.result.images[0].url[0]`.",
    receipt,
    receipt_schema,
    record: |facts| record(facts, status(facts.state)),
    record_schema: || record_schema(&["submitted", "in_progress", "completed", "failed"]),
    wrapped: true,
    status,
};

fn receipt(facts: &ReceiptFacts<'_>) -> Value {
    let task = json!({ "status": "submitted", "task_id": facts.task_id });
    json!({ "code": 200, "data": [with_adjustments(task, facts.adjustments)] })
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

/// A cancelled task reads `failed` here (DECISIONS.md › Paths and shapes).
fn status(state: TaskState) -> &'static str {
    match state {
        TaskState::Cancelled => TaskState::Failed.name(),
        other => other.name(),
    }
}

/// The record under a status name of the shape's own.
pub(super) fn record(facts: &TaskFacts<'_>, status: &str) -> Value {
    let mut record = json!({
        "id": facts.task_id,
        "status": status,
        "progress": facts.progress,
        "created_at": facts.created_at.div_euclid(1000),
        "actual_time": facts.actual_time(),
        "cost": facts.cost,
    });
    if !facts.files.is_empty() {
        let images: Vec<Value> = facts
            .files
            .iter()
            .map(
                |file| json!({ "url": [file.url], "expires_at": file.expires_at.div_euclid(1000) }),
            )
            .collect();
        record["result"] = json!({ "images": images });
    }
    if let Some((code, message)) = facts.failure() {
        record["error"] = json!({ "code": code, "message": message });
    }
    with_adjustments(record, facts.adjustments)
}

/// The schema of [`record`] with those status names.
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
            "result": {
                "type": "object",
                "description": "Of a completed task.",
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
