//! Receipts and records of speech tasks: one flat object.

use serde_json::{Value, json};

use super::data::{ReceiptData, RecordData};
use super::format::ResponseFormat;
use super::schema::{
    QUEUED_STATES, adjustments_schema, error_schema, nullable, queued_status, refunded_schema,
    with_adjustments, with_charge_and_adjustments,
};

/// The value of `object`.
const OBJECT: &str = "audio";
/// The field with the client's own id of the task; optional.
const EXTERNAL_ID: &str = "external_task_id";

/// The format of every speech family; see docs/speech.md.
pub static SPEECH: ResponseFormat = ResponseFormat {
    about: "The receipt is `{id, task_id, object: \"audio\", model, status: \"queued\", progress: 0, created_at}`; the record of `GET /v1/tasks/<task_id>` and `GET /native/v1/audio/tts/<task_id>` has no envelope: the link is in `metadata.url` once `status` is `completed`. The audio format depends on the channel.",
    receipt,
    receipt_schema,
    record,
    record_schema,
    wrapped: false,
    status: queued_status,
};

fn receipt(data: &ReceiptData<'_>) -> Value {
    let mut receipt = json!({
        "id": data.task_id,
        "task_id": data.task_id,
        "object": OBJECT,
        "model": data.model,
        "status": "queued",
        "progress": 0,
        "created_at": data.created_at.div_euclid(1000),
    });
    if let Some(id) = data.echoed_fields.get(EXTERNAL_ID) {
        receipt[EXTERNAL_ID] = id.clone();
    }
    with_adjustments(receipt, data.adjustments)
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
            EXTERNAL_ID: external_schema(),
            "adjustments": adjustments_schema(),
        },
    })
}

fn record(data: &RecordData<'_>) -> Value {
    let mut record = json!({
        "id": data.task_id,
        "task_id": data.task_id,
        "object": OBJECT,
        "model": data.model,
        "status": queued_status(data.state),
        "progress": data.progress,
        "created_at": data.created_at.div_euclid(1000),
        "completed_at": data.completed_at(),
        "expires_at": data.expires_at(),
        "cost": data.cost,
        "error": data.error_value(),
    });
    if let Some(file) = data.files.first() {
        record["metadata"] = json!({ "url": file.url });
    }
    if let Some(id) = data.echoed_fields.get(EXTERNAL_ID) {
        record[EXTERNAL_ID] = id.clone();
    }
    with_charge_and_adjustments(record, data)
}

fn record_schema() -> Value {
    let timestamp = json!({ "type": ["integer", "null"], "description": "Unix seconds; null until the task is completed." });
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
            "completed_at": timestamp,
            "expires_at": timestamp,
            "cost": { "type": "number", "description": "What was charged." },
            "refunded": refunded_schema(),
            "error": nullable(error_schema()),
            "metadata": {
                "type": "object",
                "description": "Present if the task is completed.",
                "required": ["url"],
                "properties": { "url": { "type": "string", "format": "uri" } },
            },
            EXTERNAL_ID: external_schema(),
            "adjustments": adjustments_schema(),
        },
    })
}

fn external_schema() -> Value {
    json!({ "type": "string", "description": "The value in the request; absent if it had none." })
}
