//! JSON Schemas and values that several response formats share.

use serde_json::{Value, json};
use tollgate_core::{Adjustment, Amount, TaskState};

use super::data::RecordData;

/// The name of a task state in video and speech records. A cancelled task is `failed` there, as in OpenAI's API.
pub(super) fn queued_status(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "queued",
        TaskState::Cancelled => TaskState::Failed.name(),
        other => other.name(),
    }
}

/// The names that [`queued_status`] returns.
pub(super) const QUEUED_STATES: [&str; 4] = ["queued", "in_progress", "completed", "failed"];

/// Adds `adjustments` to `record` if there are any.
pub(super) fn with_adjustments(mut record: Value, adjustments: &[Adjustment]) -> Value {
    if !adjustments.is_empty() {
        record["adjustments"] = json!(adjustments);
    }
    record
}

/// Adds the parts that only some records have: refunds and adjustments.
pub(super) fn with_charge_and_adjustments(mut record: Value, data: &RecordData<'_>) -> Value {
    if data.refunded != Amount::ZERO {
        record["refunded"] = json!(data.refunded);
    }
    with_adjustments(record, data.adjustments)
}

/// The JSON Schema of the amount refunded.
pub(super) fn refunded_schema() -> Value {
    json!({ "type": "number", "description": "The part of `cost` that was refunded; absent if nothing was." })
}

/// The JSON Schema of a list of adjustments.
pub(super) fn adjustments_schema() -> Value {
    json!({
        "type": "array",
        "description": "Request values that were changed or ignored; absent if there are none.",
        "items": {
            "type": "object",
            "required": ["field", "asked", "used", "why"],
            "properties": {
                "field": { "type": "string" },
                "asked": { "description": "The value sent, truncated if long." },
                "used": { "description": "The value used instead; null if the field is ignored." },
                "why": { "type": "string" },
            },
        },
    })
}

/// The JSON Schema of a failed task's error.
pub(super) fn error_schema() -> Value {
    json!({
        "type": "object",
        "description": "Present if the task ended without a result.",
        "required": ["code", "message"],
        "properties": { "code": { "type": "string" }, "message": { "type": "string" } },
    })
}

/// `schema`, or null.
pub(super) fn nullable(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "type": "null" }] })
}
