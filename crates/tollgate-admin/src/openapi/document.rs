//! Builds the OpenAPI document.

use serde_json::{Map, Value, json};
use tollgate_core::TaskKind;
use tollgate_media::{AnyFamily, Endpoint, response};

use super::chat;
use super::parts::{get, object, reference, response, responses};
use crate::{admin, portal};

/// The complete document; `public_url` is the URL of its server.
pub(super) fn document(public_url: &str) -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tollgate",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A gateway in front of generation models: chat in four formats; submit an image, a video or speech, get a task id, poll the task.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": public_url }],
        "security": [{ "bearer": [] }, { "apiKey": [] }, { "googleKey": [] }],
        "tags": [
            { "name": "Chat", "description": "Any chat model in any of four formats." },
            { "name": "Images", "description": "Generate and edit images." },
            { "name": "Videos", "description": "Generate videos." },
            { "name": "Speech", "description": "Generate speech from text." },
            { "name": "Tasks", "description": "Poll, list and cancel tasks." },
            { "name": "Account", "description": "Balances." },
            { "name": "Files", "description": "Uploads and results." },
            { "name": "Service", "description": "Health, metrics and documentation." },
        ],
        "paths": paths(),
        "components": {
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer", "description": "`Authorization: Bearer sk-…`" },
                "apiKey": { "type": "apiKey", "in": "header", "name": "x-api-key" },
                "googleKey": { "type": "apiKey", "in": "header", "name": "x-goog-api-key" },
            },
            "schemas": schemas(),
        },
    })
}

fn paths() -> Value {
    let mut paths = other_paths();
    if let Value::Object(paths) = &mut paths {
        chat::paths(paths);
        for endpoint in portal::all() {
            let path = format!("{}{}", portal::PREFIX, endpoint.path);
            let mut operation = admin::openapi::operation(endpoint, "Error");
            operation["tags"] = json!(["Account"]);
            let id = operation["operationId"].as_str().unwrap_or_default();
            operation["operationId"] = json!(format!("me_{id}"));
            let method = endpoint.method.as_str().to_ascii_lowercase();
            let methods = paths.entry(path).or_insert_with(|| json!({}));
            methods[method] = operation;
        }
    }
    paths
}

fn other_paths() -> Value {
    json!({
        "/v1/images/generations": { "post": submission(Endpoint::ImageGenerations, "Generate images", "generateImages") },
        "/v1/images/edits": { "post": submission(Endpoint::ImageEdits, "Edit an image", "editImages") },
        "/v1/video/generations": { "post": submission(Endpoint::VideoGenerations, "Generate a video", "generateVideo") },
        "/v1/videos": { "post": submission(Endpoint::Videos, "Generate a video; the body may also be a form", "createVideo") },
        "/v1/videos/{task_id}": { "get": get("Videos", "A video task in the format of OpenAI's video resource", "getVideo", &[task_id()], reference("Video")) },
        "/v1/videos/{task_id}/content": { "get": content() },
        "/v1/audio/speech": { "post": submission(Endpoint::AudioSpeech, "Generate speech; the response is a receipt, not the audio", "createSpeech") },
        "/native/v1/audio/tts": { "post": submission(Endpoint::NativeSpeech, "Generate speech, with the provider's field names", "createNativeSpeech") },
        "/native/v1/audio/tts/{task_id}": { "get": get("Speech", "A speech task", "getNativeSpeech", &[task_id()], reference("TaskRecord")) },
        "/kling/v1/audio/tts": { "post": submission(Endpoint::NativeSpeech, "Generate speech; alias of `/native/v1/audio/tts`", "createKlingSpeech") },
        "/kling/v1/audio/tts/{task_id}": { "get": get("Speech", "A speech task; alias of `/native/v1/audio/tts/{task_id}`", "getKlingSpeech", &[task_id()], reference("TaskRecord")) },
        "/v1/multimodal/audio/generations": { "post": submission(Endpoint::MultimodalAudio, "Generate speech, with its fields in `metadata`", "generateAudio") },
        "/v1/images/generations/{task_id}": { "get": get("Tasks", "An image task, without the envelope and with flat fields", "getGeneration", &[task_id()], reference("Generation")) },
        "/v1/uploads/images": { "post": upload() },
        "/v1/tasks": { "get": get("Tasks", "Your tasks, newest first", "listTasks", &page_parameters(), reference("TaskPage")) },
        "/v1/tasks/{task_id}": { "get": get("Tasks", "A task", "getTask", &[task_id()], reference("TaskRecord")) },
        "/v1/tasks/{task_id}/cancel": { "post": cancel() },
        "/v1/tasks/{task_id}/callbacks": { "get": get("Tasks", "The task's webhook, and every delivery attempt", "getTaskCallbacks", &[task_id()], reference("CallbackLog")) },
        "/v1/callbacks/secret": { "get": get("Account", "The secret that signs the webhooks of this key's tasks", "getCallbackSecret", &[], reference("CallbackSecret")) },
        "/v1/tasks/batch": { "post": batch() },
        "/v1/models": { "get": get("Images", "Models that this key may use", "listModels", &[], reference("ModelList")) },
        "/v1/models/{named}": { "get": get("Images", "A model", "getModel", &[model()], json!({ "type": "object" })) },
        "/v1/balance": { "get": get("Account", "The calling key's balance", "getBalance", &[], reference("Balance")) },
        "/balance": { "get": get("Account", "The calling key's balance", "getBalanceShort", &[], reference("Balance")) },
        "/v1/user/balance": { "get": get("Account", "The user's balance", "getUserBalance", &[], reference("Balance")) },
        "/user/balance": { "get": get("Account", "The user's balance", "getUserBalanceShort", &[], reference("Balance")) },
        "/v1/quote": { "post": quote() },
        "/files/{name}": { "get": file() },
        "/healthz": { "get": open("Whether the process responds", "healthz", "application/json") },
        "/readyz": { "get": open("Whether the database and the storage respond, and this node's configuration matches the other nodes", "readyz", "application/json") },
        "/metrics": { "get": open("Metrics for Prometheus; public on loopback, otherwise with the admin key", "metrics", "text/plain") },
        "/openapi.json": { "get": open("This document", "openapi", "application/json") },
        "/docs": { "get": open("The documentation", "docs", "text/html") },
        "/docs/api": { "get": open("An interactive reference of this API", "docsApi", "text/html") },
    })
}

/// The operation that submits a task: its body is a request of any of the endpoint's families.
fn submission(endpoint: Endpoint, summary: &str, id: &str) -> Value {
    let families = AnyFamily::all().filter(|f| f.endpoint() == endpoint.canonical());
    let families: Vec<AnyFamily> = families.collect();
    let mut receipts: Vec<Value> = Vec::new();
    for family in &families {
        let receipt = (family.response_format().receipt_schema)();
        if !receipts.contains(&receipt) {
            receipts.push(receipt);
        }
    }
    let bodies: Vec<Value> = families
        .iter()
        .map(|f| reference(&request_name(*f, endpoint)))
        .collect();
    let tag = match families.first().map(|f| f.kind()) {
        Some(TaskKind::Video) => "Videos",
        Some(TaskKind::Speech) => "Speech",
        _ => "Images",
    };
    json!({
        "tags": [tag],
        "operationId": id,
        "summary": summary,
        "description": "Returns a task id immediately. Read the result with `GET /v1/tasks/{task_id}`. The available fields depend on the `model`.",
        "parameters": [
            {
                "name": "Idempotency-Key", "in": "header", "required": false,
                "description": "A repeated request with the same key and body returns the first receipt and is charged once. Keys are kept for 24 hours.",
                "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
            },
            {
                "name": "x-tollgate-strict", "in": "header", "required": false,
                "description": "`true`: a field without effect is an error instead of an adjustment.",
                "schema": { "type": "string", "enum": ["true", "false"] },
            },
        ],
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": { "anyOf": bodies } } },
        },
        "responses": responses(json!({ "anyOf": receipts }), &[400, 401, 402, 403, 404, 409, 413, 429, 502, 503]),
    })
}

/// The operation that downloads a video.
fn content() -> Value {
    let mut responses = responses(json!({}), &[401, 404, 409, 410, 416]);
    for (status, what) in [("200", "The video"), ("206", "The requested range")] {
        responses[status] = json!({ "description": what, "content": { "video/mp4": {} } });
    }
    json!({
        "tags": ["Videos"],
        "operationId": "getVideoContent",
        "summary": "The video file; supports range requests",
        "parameters": [task_id()],
        "responses": responses,
    })
}

fn upload() -> Value {
    let mut responses = responses(reference("Upload"), &[]);
    for status in [400, 401, 403, 413, 429, 500] {
        responses[status.to_string()] = response("An error", &reference("UploadError"));
    }
    json!({
        "tags": ["Images"],
        "operationId": "uploadImage",
        "summary": "Upload a reference image",
        "description": "JPEG, PNG, WebP or GIF of at most 20971520 bytes. The returned URL is valid for 72 hours and can be used as a reference.",
        "requestBody": {
            "required": true,
            "content": { "multipart/form-data": { "schema": {
                "type": "object",
                "required": ["file"],
                "properties": { "file": { "type": "string", "contentMediaType": "application/octet-stream", "description": "The image." } },
            } } },
        },
        "responses": responses,
    })
}

fn cancel() -> Value {
    json!({
        "tags": ["Tasks"],
        "operationId": "cancelTask",
        "summary": "Cancel an unfinished task; a cancelled task is not charged",
        "parameters": [task_id()],
        "responses": responses(reference("TaskRecord"), &[401, 403, 404, 409, 429]),
    })
}

/// The operation that returns a quote. The schema of `request` is that of the quoted endpoint.
fn quote() -> Value {
    json!({
        "tags": ["Account"],
        "operationId": "createQuote",
        "summary": "The amount that would be held for a request; nothing is held or charged",
        "description": "Errors in `request` are returned as by its endpoint, in the error format of that endpoint.",
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": object(&["endpoint", "request"], json!({
                "endpoint": { "type": "string", "description": "The path to which the request would be sent.", "examples": ["/v1/images/generations"] },
                "request": { "type": "object", "description": "The body for that path." },
            })) } },
        },
        "responses": responses(reference("Quote"), &[400, 401, 403, 404, 413, 429, 500, 502, 503]),
    })
}

fn batch() -> Value {
    json!({
        "tags": ["Tasks"],
        "operationId": "batchTasks",
        "summary": "Several tasks, in the order of the requested ids",
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": {
                "type": "object",
                "required": ["task_ids"],
                "properties": { "task_ids": {
                    "type": "array", "minItems": 1, "maxItems": 100, "items": { "type": "string" },
                    "description": "For an unknown id, or an id of another user's task, the response has `{id, status: \"not_found\"}`.",
                } },
            } } },
        },
        "responses": responses(reference("TaskBatch"), &[400, 401, 403, 429]),
    })
}

fn file() -> Value {
    json!({
        "tags": ["Files"],
        "operationId": "getFile",
        "summary": "A result or upload, until it expires; supports range requests",
        "security": [],
        "parameters": [{ "name": "name", "in": "path", "required": true, "schema": { "type": "string" } }],
        "responses": {
            "200": { "description": "The file", "content": { "image/*": {} } },
            "206": { "description": "The requested range", "content": { "image/*": {} } },
            "404": response("Not found", &reference("Error")),
            "410": response("Expired", &reference("Error")),
            "416": response("Range not satisfiable", &reference("Error")),
        },
    })
}

/// An operation that needs no API key.
fn open(summary: &str, id: &str, media_type: &str) -> Value {
    let mut content = Map::new();
    content.insert(media_type.to_owned(), json!({}));
    json!({
        "tags": ["Service"],
        "operationId": id,
        "summary": summary,
        "security": [],
        "responses": { "200": { "description": "OK", "content": content } },
    })
}

fn task_id() -> Value {
    json!({ "name": "task_id", "in": "path", "required": true, "schema": { "type": "string", "pattern": "^task_" } })
}

fn model() -> Value {
    json!({ "name": "named", "in": "path", "required": true, "schema": { "type": "string" }, "description": "The model." })
}

/// The query parameters of a list.
fn page_parameters() -> [Value; 2] {
    [
        json!({ "name": "limit", "in": "query", "required": false, "schema": { "type": "integer", "minimum": 1, "maximum": 100, "default": 20 } }),
        json!({ "name": "cursor", "in": "query", "required": false, "schema": { "type": "string" }, "description": "`next_cursor` of the previous page." }),
    ]
}

/// The name of a family's request schema, such as `ImageRequest.seedream-5-lite`.
fn request_name(family: AnyFamily, endpoint: Endpoint) -> String {
    let kind = match (family.kind(), endpoint) {
        (TaskKind::Image, _) => "ImageRequest",
        (TaskKind::Video, _) => "VideoRequest",
        (TaskKind::Speech, Endpoint::NativeSpeech) => "NativeSpeechRequest",
        (TaskKind::Speech, Endpoint::MultimodalAudio) => "MultimodalSpeechRequest",
        (TaskKind::Speech, _) => "SpeechRequest",
    };
    format!("{kind}.{}", family.name())
}

fn schemas() -> Value {
    let mut schemas = Map::new();
    let mut records: Vec<Value> = Vec::new();
    for family in AnyFamily::all() {
        let home = family.endpoint();
        for endpoint in [home].iter().chain(home.aliases()) {
            let schema = family.schema(endpoint.request_layout());
            schemas.insert(request_name(family, *endpoint), schema);
        }
        let shape = family.response_format();
        let bare = (shape.record_schema)();
        let record = if shape.wrapped {
            json!({ "type": "object", "required": ["code", "data"], "properties": { "code": { "const": 200 }, "data": bare } })
        } else {
            bare
        };
        if !records.contains(&record) {
            records.push(record);
        }
    }
    schemas.insert("Video".to_owned(), response::video_resource_schema());
    schemas.insert("TaskRecord".to_owned(), json!({ "anyOf": records }));
    schemas.extend(admin::openapi::schemas_of(portal::all()));
    for more in [fixed_schemas(), chat::schemas()] {
        if let Value::Object(more) = more {
            schemas.extend(more);
        }
    }
    Value::Object(schemas)
}

fn fixed_schemas() -> Value {
    let text = || json!({ "type": "string" });
    json!({
        "Error": object(&["error"], json!({ "error": object(&["code", "message", "type"], json!({
            "code": { "type": "integer", "description": "The HTTP status." }, "message": text(), "type": text(),
        })) })),
        "UploadError": object(&["error"], json!({ "error": object(&["message", "type"], json!({
            "code": { "type": "integer", "description": "Only with 429." }, "message": text(), "type": text(),
        })) })),
        "Quote": object(&["endpoint", "model", "job", "adjustments", "unit", "units", "price", "total", "exact", "currency", "available"], json!({
            "endpoint": text(),
            "model": text(),
            "job": { "type": "object", "description": "The validated request, with all defaults." },
            "adjustments": { "type": "array", "items": { "type": "object" }, "description": "Values that would be changed or ignored." },
            "unit": { "type": "string", "enum": ["image", "second", "video", "character", "token"] },
            "units": { "type": "integer", "minimum": 0 },
            "price": { "type": ["string", "null"], "description": "The price of one unit; null for tokens." },
            "total": { "type": "string", "description": "The amount that would be held." },
            "exact": { "type": "boolean", "description": "False for chats: their cost is at most `total`." },
            "currency": text(),
            "available": { "type": "boolean", "description": "Whether a channel currently accepts such requests." },
        })),
        "Balance": object(&["success"], json!({
            "success": { "type": "boolean" },
            "message": { "type": "string", "description": "Only on failure." },
            "remain_balance": { "type": "number", "description": "-1 if there is no limit." },
            "used_balance": { "type": "number" },
            "unlimited_quota": { "type": "boolean" },
        })),
        "Upload": object(&["url", "filename", "content_type", "bytes", "created_at"], json!({
            "url": { "type": "string", "format": "uri" },
            "filename": text(),
            "content_type": text(),
            "bytes": { "type": "integer" },
            "created_at": { "type": "integer", "description": "Unix seconds." },
        })),
        "CallbackLog": object(&["task_id", "url", "state", "next_at", "tries"], json!({
            "task_id": text(), "url": text(),
            "state": { "enum": ["task_unfinished", "waiting", "delivered", "given_up"] },
            "next_at": { "type": ["integer", "null"], "description": "Unix seconds of the next delivery attempt." },
            "tries": { "type": "array", "items": object(&["number", "at", "took_ms", "status", "error"], json!({
                "number": { "type": "integer" },
                "at": { "type": "integer", "description": "Unix seconds." },
                "took_ms": { "type": "integer" },
                "status": { "type": ["integer", "null"], "description": "The receiver's HTTP status." },
                "error": { "type": ["string", "null"] },
            })) },
        })),
        "CallbackSecret": object(&["secret"], json!({
            "secret": { "type": "string", "description": "`whsec_` and base64: the key of the Standard Webhooks signature." },
        })),
        "Generation": object(&["task_id", "status", "progress", "url", "fail_reason"], json!({
            "task_id": text(), "status": text(), "progress": { "type": "integer" }, "url": text(), "fail_reason": text(),
        })),
        "TaskPage": object(&["data", "next_cursor"], json!({
            "data": { "type": "array", "items": { "type": "object" } },
            "next_cursor": { "type": ["string", "null"] },
        })),
        "TaskBatch": object(&["code", "data"], json!({
            "code": { "const": 200 },
            "data": { "type": "array", "items": { "type": "object" } },
        })),
        "ModelList": object(&["object", "data"], json!({
            "object": { "const": "list" },
            "data": { "type": "array", "items": object(&["id", "object"], json!({ "id": text(), "object": { "const": "model" } })) },
        })),
    })
}
