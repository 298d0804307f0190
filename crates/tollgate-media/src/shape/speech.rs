//! The shape of speech: everything at the top level, numbers as numbers.

use serde_json::{Value, json};

use super::video::nullable;
use super::{
    QUEUED_STATES, ReceiptFacts, Shape, TaskFacts, adjustments_schema, error_schema, queued_status,
    with_adjustments,
};

/// What `object` says. SPEC.md allows `video` too; nobody is helped by it.
const OBJECT: &str = "audio";
/// The client's own id, where it gave one.
const EXTERNAL: &str = "external_task_id";

/// SPEC.md › Task submission receipts, fifth row, and › Task query records, third item.
pub static SPEECH: Shape = Shape {
    about: "The receipt is `{id, task_id, object: \"audio\", model, status: \"queued\", progress: 0, created_at}`; the record of `GET /v1/tasks/<task_id>` and `GET /native/v1/audio/tts/<task_id>` is bare: read `metadata.url` when `status` is `completed`. The file's type is what the channel gives.",
    receipt,
    receipt_schema,
    record,
    record_schema,
    wrapped: false,
    status: queued_status,
};

fn receipt(facts: &ReceiptFacts<'_>) -> Value {
    let mut receipt = json!({
        "id": facts.task_id,
        "task_id": facts.task_id,
        "object": OBJECT,
        "model": facts.model,
        "status": "queued",
        "progress": 0,
        "created_at": facts.created_at.div_euclid(1000),
    });
    if let Some(id) = facts.shown.get(EXTERNAL) {
        receipt[EXTERNAL] = id.clone();
    }
    with_adjustments(receipt, facts.adjustments)
}

fn receipt_schema() -> Value {
    json!({
        "type": "object",
        "required": ["id", "task_id", "object", "model", "status", "progress", "created_at"],
        "properties": {
            "id": { "type": "string" },
            "task_id": { "type": "string", "description": "The same value." },
            "object": { "const": OBJECT },
            "model": { "type": "string" },
            "status": { "const": "queued" },
            "progress": { "const": 0 },
            "created_at": { "type": "integer", "description": "Unix seconds." },
            EXTERNAL: external_schema(),
            "adjustments": adjustments_schema(),
        },
    })
}

fn record(facts: &TaskFacts<'_>) -> Value {
    let mut record = json!({
        "id": facts.task_id,
        "task_id": facts.task_id,
        "object": OBJECT,
        "model": facts.model,
        "status": queued_status(facts.state),
        "progress": facts.progress,
        "created_at": facts.created_at.div_euclid(1000),
        "completed_at": facts.completed_at(),
        "expires_at": facts.expires_at(),
        "cost": facts.cost,
        "error": facts.error_value(),
    });
    if let Some(file) = facts.files.first() {
        record["metadata"] = json!({ "url": file.url });
    }
    if let Some(id) = facts.shown.get(EXTERNAL) {
        record[EXTERNAL] = id.clone();
    }
    with_adjustments(record, facts.adjustments)
}

fn record_schema() -> Value {
    let moment = json!({ "type": ["integer", "null"], "description": "Unix seconds; null until the task is completed." });
    json!({
        "type": "object",
        "required": [
            "id", "task_id", "object", "model", "status", "progress", "created_at", "completed_at", "expires_at",
            "cost", "error",
        ],
        "properties": {
            "id": { "type": "string" },
            "task_id": { "type": "string", "description": "The same value." },
            "object": { "const": OBJECT },
            "model": { "type": "string" },
            "status": { "enum": QUEUED_STATES },
            "progress": { "type": "integer", "minimum": 0, "maximum": 100 },
            "created_at": { "type": "integer", "description": "Unix seconds." },
            "completed_at": moment,
            "expires_at": moment,
            "cost": { "type": "number", "description": "What was charged." },
            "error": nullable(error_schema()),
            "metadata": {
                "type": "object",
                "description": "Of a completed task.",
                "required": ["url"],
                "properties": { "url": { "type": "string", "format": "uri" } },
            },
            EXTERNAL: external_schema(),
            "adjustments": adjustments_schema(),
        },
    })
}

fn external_schema() -> Value {
    json!({ "type": "string", "description": "As the request gave it; absent when it gave none." })
}
