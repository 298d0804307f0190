//! The shape of films: everything at the top level, the link under every name that clients look for.

use serde_json::{Map, Value, json};

use super::{
    QUEUED_STATES, ReceiptFacts, Shape, TaskFacts, adjustments_schema, error_schema, queued_status,
    with_adjustments,
};

/// SPEC.md › Task submission receipts, fourth row; DECISIONS.md › Paths and shapes, the video record.
pub static VIDEO: Shape = Shape {
    about: "The receipt is `{id, task_id, object: \"video\", model, status: \"queued\", progress: \"0%\", code: \"success\", created_at, seconds, size}`; the record of `GET /v1/tasks/<task_id>` is bare: read `result_url` (also `url`, `video_url` and `metadata.url`) when `status` is `completed`. `GET /v1/videos/<task_id>` gives OpenAI's video resource, with `progress` as a number.",
    receipt,
    receipt_schema,
    record,
    record_schema,
    wrapped: false,
    status: queued_status,
};

fn receipt(facts: &ReceiptFacts<'_>) -> Value {
    let receipt = json!({
        "id": facts.task_id,
        "task_id": facts.task_id,
        "object": "video",
        "model": facts.model,
        "status": "queued",
        "progress": "0%",
        "code": "success",
        "created_at": facts.created_at.div_euclid(1000),
        "seconds": facts.shown.get("seconds"),
        "size": facts.shown.get("size"),
    });
    with_adjustments(receipt, facts.adjustments)
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

fn record(facts: &TaskFacts<'_>) -> Value {
    let url = facts.first_url();
    let record = json!({
        "id": facts.task_id,
        "task_id": facts.task_id,
        "object": "video",
        "model": facts.model,
        "status": queued_status(facts.state),
        "progress": format!("{}%", facts.progress),
        "created_at": facts.created_at.div_euclid(1000),
        "completed_at": facts.completed_at(),
        "seconds": facts.shown("seconds"),
        "size": facts.shown("size"),
        "result_url": url,
        "url": url,
        "video_url": url,
        "metadata": metadata(facts),
        "expires_at": facts.expires_at(),
        "cost": facts.cost,
        "error": facts.error_value(),
    });
    with_adjustments(record, facts.adjustments)
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
            "completed_at": moment_schema(),
            "seconds": seconds_schema(),
            "size": size_schema(),
            "result_url": link("The film's link; empty until there is one."),
            "url": link("The same link."),
            "video_url": link("The same link."),
            "metadata": metadata_schema(),
            "expires_at": moment_schema(),
            "cost": { "type": "number", "description": "What was charged." },
            "error": nullable(error_schema()),
            "adjustments": adjustments_schema(),
        },
    })
}

/// OpenAI's video resource.
pub(super) fn resource(facts: &TaskFacts<'_>) -> Value {
    let resource = json!({
        "id": facts.task_id,
        "object": "video",
        "model": facts.model,
        "status": queued_status(facts.state),
        "progress": facts.progress,
        "created_at": facts.created_at.div_euclid(1000),
        "completed_at": facts.completed_at(),
        "expires_at": facts.expires_at(),
        "seconds": facts.shown("seconds"),
        "size": facts.shown("size"),
        "error": facts.error_value(),
        "metadata": metadata(facts),
    });
    with_adjustments(resource, facts.adjustments)
}

/// The schema of [`resource`].
pub(super) fn resource_schema() -> Value {
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
            "completed_at": moment_schema(),
            "expires_at": moment_schema(),
            "seconds": seconds_schema(),
            "size": size_schema(),
            "error": nullable(error_schema()),
            "metadata": metadata_schema(),
            "adjustments": adjustments_schema(),
        },
    })
}

fn metadata(facts: &TaskFacts<'_>) -> Value {
    let mut metadata = Map::new();
    if let Some(film) = facts.main_file() {
        metadata.insert("url".to_owned(), film.url.into());
    }
    // A last frame that was asked for is a picture beside the film.
    if let Some(frame) = facts.files.iter().find(|file| file.is_picture()) {
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
            "last_frame_url": { "type": "string", "format": "uri", "description": "The last frame as a picture, where it was asked for." },
        },
    })
}

fn seconds_schema() -> Value {
    json!({ "type": "string", "description": "The film's length in seconds.", "examples": ["8"] })
}

fn size_schema() -> Value {
    json!({ "type": "string", "description": "The film's pixels; the tier such as `720p` where they follow a reference image that was not looked at yet.", "examples": ["1280x720"] })
}

fn moment_schema() -> Value {
    json!({ "type": ["integer", "null"], "description": "Unix seconds; null until the task is completed." })
}

/// `schema`, or null.
pub(super) fn nullable(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "type": "null" }] })
}
