//! The chat endpoints in the OpenAPI document: four formats, in the envelope and bare (docs/chat.md).

use serde_json::{Map, Value, json};
use tollgate_media::Endpoint;
use tollgate_server::chat::endpoint::{CHAT_PATHS, ChatOperation, ChatPath};

use super::parts::{get, object, reference, response};

/// Every list of models: path, operation id.
const LISTS: &[(&str, &str)] = &[
    ("/v1beta/models", "listChatModels"),
    ("/openai/v1/models", "listOpenaiModels"),
    ("/anthropic/v1/models", "listAnthropicModels"),
    ("/gemini/v1beta/models", "listGeminiModels"),
    ("/gemini/v1/models", "listGeminiModelsV1"),
];

/// The JSON Schema of the requests of a chat endpoint.
pub fn schema_of_requests(endpoint: Endpoint) -> Value {
    let name = match endpoint {
        Endpoint::Responses => "ResponsesRequest",
        _ => "ChatCompletionsRequest",
    };
    schemas()[name].take()
}

/// Adds the paths to `paths`.
pub(super) fn paths(paths: &mut Map<String, Value>) {
    for chat in CHAT_PATHS {
        let path = chat.path.replace("{*", "{");
        let item = paths.entry(path).or_insert_with(|| json!({}));
        item["post"] = post(chat);
    }
    for (path, id) in LISTS {
        let list = get(
            "Chat",
            "Chat models that this key may use",
            id,
            &[],
            reference("ModelList"),
        );
        paths.insert((*path).to_owned(), json!({ "get": list }));
        let one = get(
            "Chat",
            "A chat model",
            &format!("{id}One"),
            &[named("The model.")],
            json!({ "type": "object" }),
        );
        let item = paths
            .entry(format!("{path}/{{named}}"))
            .or_insert_with(|| json!({}));
        item["get"] = one;
    }
}

/// The name of the request's schema in [`schemas`]: `ChatCompletionsRequest` for `chat-completions`.
fn request_schema(format: &str) -> String {
    let mut name: String = format
        .split('-')
        .flat_map(|word| word.chars().enumerate())
        .map(|(at, c)| if at == 0 { c.to_ascii_uppercase() } else { c })
        .collect();
    name.push_str("Request");
    name
}

fn post(chat: &ChatPath) -> Value {
    let format = chat.endpoint.format.name();
    let is_count = chat.operation == ChatOperation::CountTokens;
    let summary = match (is_count, chat.endpoint.bare) {
        (true, _) => "Count the tokens of a prompt; not charged".to_owned(),
        (false, true) => {
            format!("Chat, {format} format, without the envelope, as in the provider's own API")
        }
        (false, false) => format!("Chat, {format} format"),
    };
    let mut parameters = vec![json!({
        "name": "x-tollgate-strict", "in": "header", "required": false,
        "description": "`true`: a field that the model's provider does not support is an error instead of being named in `x-tollgate-dropped`.",
        "schema": { "type": "string", "enum": ["true", "false"] },
    })];
    if chat.operation == ChatOperation::ModelInPath {
        parameters.push(named(
            "`MODEL:generateContent`, `MODEL:streamGenerateContent` or `MODEL:countTokens`.",
        ));
    }
    let reply = if !chat.endpoint.bare && !is_count {
        object(
            &["code", "data"],
            json!({ "code": { "const": 200 }, "data": { "type": "object" } }),
        )
    } else {
        json!({ "type": "object" })
    };
    let mut done = response(
        "The response; with `stream`, the events of the format",
        &reply,
    );
    done["content"]["text/event-stream"] = json!({});
    let mut responses = json!({ "200": done });
    for status in [400, 401, 402, 403, 404, 413, 429, 502, 503, 504] {
        responses[status.to_string()] = response(
            "An error in the error format of the chat format",
            &json!({ "type": "object" }),
        );
    }
    json!({
        "tags": ["Chat"],
        "operationId": chat.operation_id,
        "summary": summary,
        "parameters": parameters,
        "requestBody": { "required": true, "content": { "application/json": { "schema": reference(&request_schema(format)) } } },
        "responses": responses,
    })
}

fn named(description: &str) -> Value {
    json!({ "name": "named", "in": "path", "required": true, "description": description, "schema": { "type": "string" } })
}

/// The schemas of the requests, with the documented fields. Other fields of the vendors are accepted too.
pub(super) fn schemas() -> Value {
    let number = |min: f64, max: f64| json!({ "type": "number", "minimum": min, "maximum": max });
    let count = || json!({ "type": "integer", "minimum": 1 });
    let flag = || json!({ "type": "boolean", "default": false });
    let list = || json!({ "type": "array", "items": { "type": "object" } });
    let model = || json!({ "type": "string", "examples": ["gpt-5"] });
    let stops = || json!({ "type": "array", "items": { "type": "string" }, "maxItems": 4 });
    let text_or_list = || json!({ "type": ["string", "array"] });
    json!({
        "ChatCompletionsRequest": object(&["model", "messages"], json!({
            "model": model(),
            "messages": { "type": "array", "minItems": 1, "items": object(&["role"], json!({
                "role": { "enum": ["system", "developer", "user", "assistant", "tool", "function"] }, "content": { "type": ["string", "array", "null"] },
            })) },
            "temperature": number(0.0, 2.0), "top_p": number(0.0, 1.0), "max_tokens": count(), "max_completion_tokens": count(),
            "frequency_penalty": number(-2.0, 2.0), "presence_penalty": number(-2.0, 2.0),
            "stop": { "anyOf": [{ "type": "string" }, stops()] }, "n": count(), "stream": flag(), "tools": list(),
        })),
        "ResponsesRequest": object(&["model", "input"], json!({
            "model": model(), "input": text_or_list(), "instructions": { "type": "string" },
            "temperature": number(0.0, 2.0), "top_p": number(0.0, 1.0), "max_tokens": count(), "max_output_tokens": count(),
            "stream": flag(), "tools": list(),
        })),
        "MessagesRequest": object(&["model", "messages"], json!({
            "model": model(), "messages": { "type": "array", "minItems": 1, "items": { "type": "object" } }, "max_tokens": count(),
            "system": text_or_list(), "temperature": number(0.0, 1.0), "top_p": number(0.0, 1.0),
            "top_k": { "type": "integer", "minimum": 0 }, "stop_sequences": stops(), "stream": flag(), "tools": list(),
            "metadata": object(&[], json!({ "user_id": { "type": "string" } })),
        })),
        "GenerateContentRequest": object(&["contents"], json!({
            "contents": { "type": "array", "minItems": 1, "items": { "type": "object" } },
            "systemInstruction": { "type": "object" }, "generationConfig": { "type": "object" }, "safetySettings": list(), "tools": list(),
        })),
    })
}
