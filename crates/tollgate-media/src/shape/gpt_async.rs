//! The shape of gpt-image-2.5-async: everything at the top level.

use serde_json::{Value, json};
use tollgate_core::TaskState;

use super::date::utc;
use super::{ReceiptFacts, Shape, TaskFacts, adjustments_schema, error_schema, with_adjustments};

/// SPEC.md › Task submission receipts, third row, and › Task query records, second item.
pub static GPT_ASYNC: Shape = Shape {
    about: "The receipt is `{id, status: \"queued\", mode: \"generate\", model, size, quality, created_at}` with `created_at` as `YYYY-MM-DD HH:MM:SS` in UTC; the record of `GET /v1/tasks/<task_id>` is bare: read `result_url`, or `result.items[0].data[0].url` when it is empty.",
    receipt,
    receipt_schema,
    record,
    record_schema,
    wrapped: false,
    status,
};

fn receipt(facts: &ReceiptFacts<'_>) -> Value {
    let receipt = json!({
        "id": facts.task_id,
        "status": "queued",
        "mode": "generate",
        "model": facts.model,
        "size": facts.size,
        "quality": facts.quality,
        "created_at": utc(facts.created_at),
    });
    with_adjustments(receipt, facts.adjustments)
}

fn receipt_schema() -> Value {
    json!({
        "type": "object",
        "required": ["id", "status", "mode", "model", "size", "quality", "created_at"],
        "properties": {
            "id": { "type": "string" },
            "status": { "const": "queued" },
            "mode": { "const": "generate" },
            "model": { "type": "string" },
            "size": { "type": "string" },
            "quality": { "type": "string" },
            "created_at": { "type": "string", "description": "YYYY-MM-DD HH:MM:SS, UTC." },
            "adjustments": adjustments_schema(),
        },
    })
}

fn status(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "queued",
        other => other.name(),
    }
}

fn record(facts: &TaskFacts<'_>) -> Value {
    let item = |(index, url): (usize, &str)| {
        json!({
            "id": format!("{}_{index}", facts.task_id),
            "status": "success",
            "data": [{ "url": url }],
        })
    };
    let urls = facts.files.iter().map(|file| file.url);
    let items: Vec<Value> = urls.enumerate().map(item).collect();
    let mut record = json!({
        "task_id": facts.task_id,
        "status": status(facts.state),
        "progress": format!("{}%", facts.progress),
        "model": facts.model,
        "created_at": utc(facts.created_at),
        "actual_time": facts.actual_time(),
        "cost": facts.cost,
        "result_url": facts.first_url(),
        "result": { "items": items },
    });
    if let Some(first) = facts.files.first() {
        record["expires_at"] = first.expires_at.div_euclid(1000).into();
    }
    if let Some((code, message)) = facts.failure() {
        record["error"] = json!({ "code": code, "message": message });
    }
    with_adjustments(record, facts.adjustments)
}

fn record_schema() -> Value {
    json!({
        "type": "object",
        "required": ["task_id", "status", "progress", "result_url", "result"],
        "properties": {
            "task_id": { "type": "string" },
            "status": { "enum": ["queued", "in_progress", "completed", "failed", "cancelled"] },
            "progress": { "type": "string", "examples": ["100%"] },
            "model": { "type": "string" },
            "created_at": { "type": "string", "description": "YYYY-MM-DD HH:MM:SS, UTC." },
            "actual_time": { "type": "integer", "description": "Whole seconds of processing; 0 until it ends." },
            "cost": { "type": "number", "description": "What was charged." },
            "expires_at": { "type": "integer", "description": "Unix seconds, of a completed task." },
            "result_url": { "type": "string", "description": "The image's link; empty until there is one." },
            "result": {
                "type": "object",
                "properties": {
                    "items": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "id": { "type": "string" },
                                "status": { "const": "success" },
                                "data": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "properties": { "url": { "type": "string", "format": "uri" } },
                                    },
                                },
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
