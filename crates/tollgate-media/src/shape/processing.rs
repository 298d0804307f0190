//! The shape of wan2.7: a receipt of its own; records as usual with one name for everything unfinished.

use serde_json::{Value, json};
use tollgate_core::TaskState;

use super::{ReceiptFacts, Shape, adjustments_schema, standard, with_adjustments};

/// What an unfinished task is called.
const UNFINISHED: &str = "processing";

/// SPEC.md › Task submission receipts, second row.
pub static PROCESSING: Shape = Shape {
    about: "The receipt is `{code: \"success\", message: \"\", data: [{task_id, status: \"processing\"}]}`; the record of `GET /v1/tasks/<task_id>` is `{code: 200, data: {…}}` with status `processing` until it ends.",
    receipt,
    receipt_schema,
    record: |facts| standard::record(facts, status(facts.state)),
    record_schema: || standard::record_schema(&[UNFINISHED, "completed", "failed"]),
    wrapped: true,
    status,
};

fn receipt(facts: &ReceiptFacts<'_>) -> Value {
    let task = json!({ "task_id": facts.task_id, "status": UNFINISHED });
    json!({
        "code": "success",
        "message": "",
        "data": [with_adjustments(task, facts.adjustments)],
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
