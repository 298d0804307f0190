//! Receipts and records of video tasks: one flat object with the link under several names, and OpenAI's video resource.

use serde_json::{Map, Value, json};

use super::data::{ReceiptData, RecordData};
use super::format::ResponseFormat;
use super::schema::{
    QUEUED_STATES, adjustments_schema, error_schema, nullable, queued_status, refunded_schema,
    with_adjustments, with_charge_and_adjustments,
};

/// The format of every video family; see docs/video.md.
pub static VIDEO: ResponseFormat = ResponseFormat {
    about: "The receipt is `{id, task_id, object: \"video\", model, status: \"queued\", progress: \"0%\", code: \"success\", created_at, seconds, size}`; the record of `GET /v1/tasks/<task_id>` has no envelope: the link is in `result_url` (also `url`, `video_url` and `metadata.url`) once `status` is `completed`. `GET /v1/videos/<task_id>` returns OpenAI's video resource, with `progress` as a number.",
    receipt,
    receipt_schema,
    record,
    record_schema,
    wrapped: false,
    status: queued_status,
};

fn receipt(data: &ReceiptData<'_>) -> Value {
    let receipt = json!({
        "id": data.task_id,
        "task_id": data.task_id,
        "object": "video",
        "model": data.model,
        "status": "queued",
        "progress": "0%",
        "code": "success",
        "created_at": data.created_at.div_euclid(1000),
        "seconds": data.echoed_fields.get("seconds"),
        "size": data.echoed_fields.get("size"),
    });
    with_adjustments(receipt, data.adjustments)
}

fn receipt_schema() -> Value {
    json!({
        "type": "object",
        "required": ["id", "task_id", "object", "model", "status", "progress", "code", "created_at", "seconds", "size"],
        "properties": {
            "id": { "type": "string" },
            "task_id": { "type": "string", "description": "The same value." },
            "object": { "const": "video" },
            "model": { "type": "string" },
            "status": { "const": "queued" },
            "progress": { "const": "0%" },
            "code": { "const": "success" },
            "created_at": { "type": "integer", "description": "Unix seconds." },
            "seconds": seconds_schema(),
            "size": size_schema(),
            "adjustments": adjustments_schema(),
        },
    })
}

fn record(data: &RecordData<'_>) -> Value {
    let url = data.first_url();
    let record = json!({
        "id": data.task_id,
        "task_id": data.task_id,
        "object": "video",
        "model": data.model,
        "status": queued_status(data.state),
        "progress": format!("{}%", data.progress),
        "created_at": data.created_at.div_euclid(1000),
        "completed_at": data.completed_at(),
        "seconds": data.echoed_field("seconds"),
        "size": data.echoed_field("size"),
        "result_url": url,
        "url": url,
        "video_url": url,
        "metadata": metadata(data),
        "expires_at": data.expires_at(),
        "cost": data.cost,
        "error": data.error_value(),
    });
    with_charge_and_adjustments(record, data)
}

fn record_schema() -> Value {
    let link = |what: &str| json!({ "type": "string", "description": what });
    json!({
        "type": "object",
        "required": [
            "id", "task_id", "object", "model", "status", "progress", "created_at", "completed_at", "seconds",
            "size", "result_url", "url", "video_url", "metadata", "expires_at", "cost", "error",
        ],
        "properties": {
            "id": { "type": "string" },
            "task_id": { "type": "string", "description": "The same value." },
            "object": { "const": "video" },
            "model": { "type": "string" },
            "status": { "enum": QUEUED_STATES },
            "progress": { "type": "string", "examples": ["40%"] },
            "created_at": { "type": "integer", "description": "Unix seconds." },
            "completed_at": timestamp_schema(),
            "seconds": seconds_schema(),
            "size": size_schema(),
            "result_url": link("The video's link; empty until there is one."),
            "url": link("The same link."),
            "video_url": link("The same link."),
            "metadata": metadata_schema(),
            "expires_at": timestamp_schema(),
            "cost": { "type": "number", "description": "What was charged." },
            "refunded": refunded_schema(),
            "error": nullable(error_schema()),
            "adjustments": adjustments_schema(),
        },
    })
}

/// The response to `GET /v1/videos/<id>`: OpenAI's video resource with `metadata.url`.
pub fn video_resource(data: &RecordData<'_>) -> Value {
    let resource = json!({
        "id": data.task_id,
        "object": "video",
        "model": data.model,
        "status": queued_status(data.state),
        "progress": data.progress,
        "created_at": data.created_at.div_euclid(1000),
        "completed_at": data.completed_at(),
        "expires_at": data.expires_at(),
        "seconds": data.echoed_field("seconds"),
        "size": data.echoed_field("size"),
        "error": data.error_value(),
        "metadata": metadata(data),
    });
    with_adjustments(resource, data.adjustments)
}

/// The JSON Schema of [`video_resource`].
pub fn video_resource_schema() -> Value {
    json!({
        "type": "object",
        "required": [
            "id", "object", "model", "status", "progress", "created_at", "completed_at", "expires_at", "seconds",
            "size", "error", "metadata",
        ],
        "properties": {
            "id": { "type": "string" },
            "object": { "const": "video" },
            "model": { "type": "string" },
            "status": { "enum": QUEUED_STATES },
            "progress": { "type": "integer", "minimum": 0, "maximum": 100 },
            "created_at": { "type": "integer", "description": "Unix seconds." },
            "completed_at": timestamp_schema(),
            "expires_at": timestamp_schema(),
            "seconds": seconds_schema(),
            "size": size_schema(),
            "error": nullable(error_schema()),
            "metadata": metadata_schema(),
            "adjustments": adjustments_schema(),
        },
    })
}

fn metadata(data: &RecordData<'_>) -> Value {
    let mut metadata = Map::new();
    if let Some(video) = data.main_file() {
        metadata.insert("url".to_owned(), video.url.into());
    }
    // If requested, the last frame is an image file among the results.
    if let Some(frame) = data.files.iter().find(|file| file.is_image()) {
        metadata.insert("last_frame_url".to_owned(), frame.url.into());
    }
    Value::Object(metadata)
}

fn metadata_schema() -> Value {
    json!({
        "type": "object",
        "description": "Empty until there is a result.",
        "properties": {
            "url": { "type": "string", "format": "uri" },
            "last_frame_url": { "type": "string", "format": "uri", "description": "The last frame as an image, if `return_last_frame` was requested." },
        },
    })
}

fn seconds_schema() -> Value {
    json!({ "type": "string", "description": "Duration in seconds.", "examples": ["8"] })
}

fn size_schema() -> Value {
    json!({ "type": "string", "description": "Width and height in pixels, or the tier such as `720p` if they follow a reference image that is given as a URL.", "examples": ["1280x720"] })
}

fn timestamp_schema() -> Value {
    json!({ "type": ["integer", "null"], "description": "Unix seconds; null until the task is completed." })
}
