//! The chat endpoints in the OpenAPI document: four formats, in the envelope and bare (docs/chat.md).

use serde_json::{Map, Value, json};

use super::{answer, get, object, reference};

/// Every POST: path, what it is, operation id, request schema, whether replies stand in the envelope, whether the path names the model.
const POSTS: &[(&str, &str, &str, &str, bool, bool)] = &[
    (
        "/api/v1/chat/completions",
        "Chat, chat-completions format",
        "chatCompletions",
        "ChatCompletionsRequest",
        true,
        false,
    ),
    (
        "/v1/responses",
        "Chat, responses format",
        "responses",
        "ResponsesRequest",
        true,
        false,
    ),
    (
        "/v1/messages",
        "Chat, messages format",
        "messages",
        "MessagesRequest",
        true,
        false,
    ),
    (
        "/v1/messages/count_tokens",
        "Count a prompt's tokens; free",
        "countMessages",
        "MessagesRequest",
        false,
        false,
    ),
    (
        "/v1beta/models/{named}",
        "Chat, generative-content format",
        "generateContent",
        "GenerateContentRequest",
        true,
        true,
    ),
    (
        "/v1/chat/completions",
        "Chat, as OpenAI's API",
        "bareChatCompletionsShort",
        "ChatCompletionsRequest",
        false,
        false,
    ),
    (
        "/openai/v1/chat/completions",
        "Chat, as OpenAI's API",
        "bareChatCompletions",
        "ChatCompletionsRequest",
        false,
        false,
    ),
    (
        "/openai/v1/responses",
        "Chat, as OpenAI's responses API",
        "bareResponses",
        "ResponsesRequest",
        false,
        false,
    ),
    (
        "/anthropic/v1/messages",
        "Chat, as Anthropic's API",
        "bareMessages",
        "MessagesRequest",
        false,
        false,
    ),
    (
        "/anthropic/v1/messages/count_tokens",
        "Count a prompt's tokens; free",
        "bareCountMessages",
        "MessagesRequest",
        false,
        false,
    ),
    (
        "/gemini/v1beta/models/{named}",
        "Chat, as Google's API",
        "bareGenerateContent",
        "GenerateContentRequest",
        false,
        true,
    ),
    (
        "/gemini/v1/models/{named}",
        "Chat, as Google's API",
        "bareGenerateContentV1",
        "GenerateContentRequest",
        false,
        true,
    ),
];

/// Every list of models: path, operation id.
const LISTS: &[(&str, &str)] = &[
    ("/v1beta/models", "listChatModels"),
    ("/openai/v1/models", "listOpenaiModels"),
    ("/anthropic/v1/models", "listAnthropicModels"),
    ("/gemini/v1beta/models", "listGeminiModels"),
    ("/gemini/v1/models", "listGeminiModelsV1"),
];

/// The paths, put into `paths`.
pub(super) fn paths(paths: &mut Map<String, Value>) {
    for (path, summary, id, schema, enveloped, in_path) in POSTS {
        let item = paths.entry(*path).or_insert_with(|| json!({}));
        item["post"] = post(summary, id, schema, *enveloped, *in_path);
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
            "One of them",
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

fn post(summary: &str, id: &str, schema: &str, enveloped: bool, in_path: bool) -> Value {
    let mut parameters = vec![json!({
        "name": "x-tollgate-strict", "in": "header", "required": false,
        "description": "`true`: what the model's provider cannot be told is an error instead of being named in `x-tollgate-dropped`.",
        "schema": { "type": "string", "enum": ["true", "false"] },
    })];
    if in_path {
        parameters.push(named(
            "`MODEL:generateContent`, `MODEL:streamGenerateContent` or `MODEL:countTokens`.",
        ));
    }
    let reply = if enveloped {
        object(
            &["code", "data"],
            json!({ "code": { "const": 200 }, "data": { "type": "object" } }),
        )
    } else {
        json!({ "type": "object" })
    };
    let mut done = answer("The reply; with `stream`, the format's own events", &reply);
    done["content"]["text/event-stream"] = json!({});
    let mut responses = json!({ "200": done });
    for status in [400, 401, 402, 403, 404, 413, 429, 502, 503, 504] {
        responses[status.to_string()] = answer(
            "An error, in the words of the format",
            &json!({ "type": "object" }),
        );
    }
    json!({
        "tags": ["Chat"],
        "operationId": id,
        "summary": summary,
        "parameters": parameters,
        "requestBody": { "required": true, "content": { "application/json": { "schema": reference(schema) } } },
        "responses": responses,
    })
}

fn named(description: &str) -> Value {
    json!({ "name": "named", "in": "path", "required": true, "description": description, "schema": { "type": "string" } })
}

/// The schemas of the requests: the documented fields; further fields of the vendors are accepted too.
pub(super) fn schemas() -> Value {
    let number =
        |least: f64, most: f64| json!({ "type": "number", "minimum": least, "maximum": most });
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
