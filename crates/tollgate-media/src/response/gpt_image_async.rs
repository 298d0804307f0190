//! Receipts and records of gpt-image-2.5-async: one flat object with text timestamps.

use jiff::Timestamp;
use serde_json::{Value, json};
use tollgate_core::{Millis, TaskState};

use super::data::{ReceiptData, RecordData};
use super::format::ResponseFormat;
use super::schema::{
    adjustments_schema, error_schema, refunded_schema, with_adjustments,
    with_charge_and_adjustments,
};

/// The format of gpt-image-2.5-async; see docs/models/gpt-image-2.5-async.md.
pub static GPT_IMAGE_ASYNC: ResponseFormat = ResponseFormat {
    about: "The receipt is `{id, status: \"queued\", mode: \"generate\", model, size, quality, created_at}` with `created_at` as `YYYY-MM-DD HH:MM:SS` in UTC; the record of `GET /v1/tasks/<task_id>` has no envelope: the link is in `result_url` and in `result.items[0].data[0].url`.",
    receipt,
    receipt_schema,
    record,
    record_schema,
    wrapped: false,
    status,
};

/// Formats a time as `YYYY-MM-DD HH:MM:SS` in UTC.
fn format_utc(at: Millis) -> String {
    let time = Timestamp::from_millisecond(at).unwrap_or_default();
    time.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn receipt(data: &ReceiptData<'_>) -> Value {
    let receipt = json!({
        "id": data.task_id,
        "status": "queued",
        "mode": "generate",
        "model": data.model,
        "size": data.size,
        "quality": data.quality,
        "created_at": format_utc(data.created_at),
    });
    with_adjustments(receipt, data.adjustments)
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

fn record(data: &RecordData<'_>) -> Value {
    let item = |(index, url): (usize, &str)| {
        json!({
            "id": format!("{}_{index}", data.task_id),
            "status": "success",
            "data": [{ "url": url }],
        })
    };
    let urls = data.files.iter().map(|file| file.url);
    let items: Vec<Value> = urls.enumerate().map(item).collect();
    let mut record = json!({
        "task_id": data.task_id,
        "status": status(data.state),
        "progress": format!("{}%", data.progress),
        "model": data.model,
        "created_at": format_utc(data.created_at),
        "actual_time": data.actual_time(),
        "cost": data.cost,
        "result_url": data.first_url(),
        "result": { "items": items },
    });
    if let Some(first) = data.files.first() {
        record["expires_at"] = first.expires_at.div_euclid(1000).into();
    }
    if let Some((code, message)) = data.failure() {
        record["error"] = json!({ "code": code, "message": message });
    }
    with_charge_and_adjustments(record, data)
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
            "refunded": refunded_schema(),
            "expires_at": { "type": "integer", "description": "Unix seconds; present if the task is completed." },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_written_in_utc() {
        for (at, text) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_400_000, "2000-02-29 00:00:00"),
            (1_798_761_599_000, "2026-12-31 23:59:59"),
            (-1, "1969-12-31 23:59:59"),
        ] {
            assert_eq!(format_utc(at), text);
        }
    }
}
