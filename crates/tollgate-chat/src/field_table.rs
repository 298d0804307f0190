//! What becomes of each field in each of the twelve translated pairs of formats, found by translating a request with the field
//! and without it: docs/chat/fields.md (`cargo xtask docs`).
//!
//! A field may be dropped only if the reply answers the same question without it: [`REASONS`] says why for each.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::hub::ModelCapabilities;
use crate::{FORMATS, Format, InvalidRequest, Target, WrittenRequest};

/// What becomes of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Its values arrive as they are, perhaps under another name.
    Carried,
    /// Something else says the same.
    Changed,
    /// The request is answered with 400 that names the field.
    Rejected,
    /// It is left out and named in `x-tollgate-dropped`.
    Dropped,
    /// It only states what is so anyway.
    Implied,
}

/// A field of a client's format, and what becomes of it in the other formats.
#[derive(Debug, Clone)]
pub struct Row {
    /// The client's format.
    pub client: &'static str,
    /// The field with its value, as JSON text.
    pub field: String,
    /// The other formats with the field's fate.
    pub fates: Vec<(&'static str, Fate)>,
}

/// Why the reply is the same answer without a field, by the name in `x-tollgate-dropped`.
pub const REASONS: &[(&str, &str)] = &[
    (
        "inference_geo",
        "the operator's channels decide where a model runs",
    ),
    (
        "toolConfig.functionCallingConfig.mode",
        "the model is given the same schema, without the guarantee",
    ),
    (
        "logit_bias",
        "weighs single tokens of one vendor's tokenizer",
    ),
    ("prediction", "makes the same reply faster"),
    ("seed", "vendors promise no repeatable replies with it"),
    (
        "generationConfig.seed",
        "vendors promise no repeatable replies with it",
    ),
    ("frequency_penalty", "tunes the choice of words"),
    ("presence_penalty", "tunes the choice of words"),
    (
        "generationConfig.frequencyPenalty",
        "tunes the choice of words",
    ),
    (
        "generationConfig.presencePenalty",
        "tunes the choice of words",
    ),
    ("top_k", "tunes the choice of words"),
    ("generationConfig.topK", "tunes the choice of words"),
    ("temperature", "above 1 it is 1 in the messages format"),
    (
        "generationConfig.temperature",
        "above 1 it is 1 in the messages format",
    ),
    ("verbosity", "a wish for the length"),
    ("text.verbosity", "a wish for the length"),
    ("metadata", "for the vendor's own records"),
    ("labels", "for the vendor's own records"),
    ("user", "for the vendor's own records"),
    ("metadata.user_id", "for the vendor's own records"),
    (
        "store",
        "a later request that needs the stored reply is refused",
    ),
    ("prompt_cache_key", "makes the same reply cheaper"),
    ("prompt_cache_retention", "makes the same reply cheaper"),
    ("cache_control", "makes the same reply cheaper"),
    ("service_tier", "decides about speed and price"),
    ("serviceTier", "decides about speed and price"),
    ("speed", "decides about speed and price"),
    ("safety_identifier", "for the vendor's own records"),
    ("moderation", "the provider's own rules hold in any case"),
    (
        "safetySettings",
        "the provider's own rules hold in any case",
    ),
    (
        "truncation",
        "a conversation that is too long is an error instead of being cut",
    ),
    (
        "max_tool_calls",
        "counts calls of tools that the vendor runs: such tools are refused",
    ),
    ("include", "adds details of tools that the vendor runs"),
    (
        "context_management",
        "shortens long conversations: one that is too long is an error",
    ),
    (
        "parallel_tool_calls",
        "each call of a reply is complete, and their results may come one by one",
    ),
    (
        "tool_choice.disable_parallel_tool_use",
        "each call of a reply is complete, and their results may come one by one",
    ),
    (
        "strict",
        "the model is given the same schema, without the guarantee",
    ),
    ("max_uses", "limits the cost of a search"),
    ("googleSearch", "other settings of the search are hints"),
    ("user_location", "a hint for search results"),
    ("search_context_size", "a hint for search results"),
    ("detail", "tunes how closely an image is read"),
    (
        "generationConfig.mediaResolution",
        "tunes how closely an image is read",
    ),
    ("filename", "the file itself arrives"),
    ("name", "who of several users speaks: the text arrives"),
    (
        "messages[0].name",
        "who of several users speaks: the text arrives",
    ),
    ("messages", "who of several users speaks: the text arrives"),
];

/// Every probed field of every format.
pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for client in FORMATS {
        for (field, request) in probes(client.name()) {
            let others = FORMATS.iter().filter(|to| to.name() != client.name());
            let fates = others.map(|to| (to.name(), fate(*client, *to, &request)));
            rows.push(Row {
                client: client.name(),
                field: field.to_string(),
                fates: fates.collect(),
            });
        }
    }
    rows
}

/// The names in `x-tollgate-dropped` for the probed fields.
pub fn dropped_names() -> Vec<String> {
    let mut names = Vec::new();
    for client in FORMATS {
        let without = translate_all(*client, &base(client.name()));
        for (_, request) in probes(client.name()) {
            for (before, after) in without.iter().zip(translate_all(*client, &request)) {
                let (Ok(before), Ok(after)) = (before, after) else {
                    continue;
                };
                let new = after
                    .dropped
                    .into_iter()
                    .filter(|n| !before.dropped.contains(n));
                names.extend(new);
            }
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// The page docs/chat/fields.md, without its first line.
pub fn page() -> String {
    let mut text = "# Fields in other formats\n\nWhat becomes of a client's field when its model is served through another format: **carried** (perhaps under another name), **changed** \
(something else says the same), **rejected** (400 that names the field), **dropped** (named in `x-tollgate-dropped`, 400 with \
`x-tollgate-strict: true`), **implied** (it says what is so anyway). Found for a model that takes everything; what single models do not \
take is on [their providers' pages](../channels.md). Fields that are not here and that no format knows are dropped.\n"
        .to_owned();
    let rows = rows();
    for client in FORMATS.iter().map(|format| format.name()) {
        let others: Vec<&str> = FORMATS
            .iter()
            .map(|f| f.name())
            .filter(|n| *n != client)
            .collect();
        let _ = write!(
            text,
            "\n## From {client}\n\n| field | {} |\n|---|---|---|---|\n",
            others.join(" | ")
        );
        for row in rows.iter().filter(|row| row.client == client) {
            let fates: Vec<String> = row
                .fates
                .iter()
                .map(|(_, fate)| format!("{fate:?}").to_lowercase())
                .collect();
            let _ = writeln!(
                text,
                "| `{}` | {} |",
                row.field.replace('|', "\\|"),
                fates.join(" | ")
            );
        }
    }
    text += "\n## Why a field may be dropped\n\nThe reply answers the same question without it:\n\n| named in the header | why |\n|---|---|\n";
    let reasons: BTreeMap<&str, &str> = REASONS.iter().copied().collect();
    for name in dropped_names() {
        let why = reasons.get(name.as_str()).copied().unwrap_or_default();
        let _ = writeln!(text, "| `{name}` | {why} |");
    }
    text
}

fn translate(
    client: &dyn Format,
    to: &dyn Format,
    request: &Value,
) -> Result<WrittenRequest, InvalidRequest> {
    let capabilities = ModelCapabilities::default();
    let target = Target {
        model: "m",
        stream: false,
        capabilities: &capabilities,
        default_max_tokens: 8192,
    };
    let read = client.read_request(request.to_string().as_bytes())?;
    to.write_request(&read, &target)
}

fn translate_all(
    client: &dyn Format,
    request: &Value,
) -> Vec<Result<WrittenRequest, InvalidRequest>> {
    let others = FORMATS.iter().filter(|to| to.name() != client.name());
    others.map(|to| translate(client, *to, request)).collect()
}

fn fate(client: &dyn Format, to: &dyn Format, request: &Value) -> Fate {
    let base = base(client.name());
    let (Ok(before), Ok(after)) = (translate(client, to, &base), translate(client, to, request))
    else {
        return Fate::Rejected;
    };
    if after
        .dropped
        .iter()
        .any(|name| !before.dropped.contains(name))
    {
        return Fate::Dropped;
    }
    if before.body == after.body {
        return Fate::Implied;
    }
    let sent: Vec<String> = leaves(&serde_json::from_slice(&after.body).unwrap_or_default());
    let given = leaves(request);
    let known = leaves(&base);
    let is_carried = given
        .iter()
        .filter(|leaf| !known.contains(leaf))
        .all(|leaf| sent.contains(leaf));
    match is_carried && given.len() > known.len() {
        true => Fate::Carried,
        false => Fate::Changed,
    }
}

/// The texts, numbers and flags in a JSON value.
fn leaves(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => members.values().flat_map(leaves).collect(),
        Value::Array(items) => items.iter().flat_map(leaves).collect(),
        other => vec![other.to_string()],
    }
}

/// A plain request of a format.
fn base(client: &str) -> Value {
    match client {
        "responses" => {
            json!({"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]})
        }
        "messages" => {
            json!({"model": "m", "max_tokens": 4096, "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]})
        }
        "generate-content" => json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
        _ => {
            json!({"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]})
        }
    }
}

/// The fields of a format, each with a request that has it.
fn probes(client: &'static str) -> Vec<(Value, Value)> {
    let fields = match client {
        "responses" => response_fields(),
        "messages" => message_fields(),
        "generate-content" => content_fields(),
        _ => chat_fields(),
    };
    let Value::Array(fields) = fields else {
        return Vec::new();
    };
    let probe = |field: Value| {
        let mut request = base(client);
        for (name, value) in field.as_object().into_iter().flatten() {
            request[name.as_str()] = value.clone();
        }
        (field, request)
    };
    fields.into_iter().map(probe).collect()
}

fn chat_fields() -> Value {
    let function = json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}});
    json!([
        {"max_completion_tokens": 77}, {"temperature": 0.5}, {"temperature": 1.5}, {"top_p": 0.9}, {"stop": ["END"]}, {"stop": [" "]},
        {"n": 2}, {"seed": 7}, {"frequency_penalty": 0.5}, {"presence_penalty": 0.5}, {"logit_bias": {"50256": -100}},
        {"logprobs": true, "top_logprobs": 2}, {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object", "properties": {}}}}},
        {"tools": [function]}, {"tools": [function], "tool_choice": "required"}, {"tools": [function], "parallel_tool_calls": false},
        {"tools": [{"type": "custom", "custom": {"name": "c", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /x/"}}}}]},
        {"web_search_options": {}}, {"reasoning_effort": "high"}, {"verbosity": "low"}, {"user": "u1"}, {"metadata": {"k": "v"}}, {"store": true},
        {"prompt_cache_key": "key"}, {"safety_identifier": "sid"}, {"service_tier": "flex"}, {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "mp3"}},
        {"prediction": {"type": "content", "content": "x"}},
    ])
}

fn response_fields() -> Value {
    let function = json!({"type": "function", "name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}, "strict": false});
    json!([
        {"instructions": "be brief"}, {"max_output_tokens": 77}, {"temperature": 0.5}, {"top_p": 0.9}, {"top_logprobs": 2},
        {"text": {"format": {"type": "json_object"}}}, {"text": {"verbosity": "low"}},
        {"tools": [function]}, {"tools": [function], "tool_choice": "required"}, {"tools": [function], "parallel_tool_calls": false},
        {"tools": [{"type": "namespace", "name": "ns", "tools": [function]}]}, {"tools": [{"type": "web_search"}]},
        {"tools": [{"type": "web_search", "filters": {"allowed_domains": ["a.org"]}}]}, {"tools": [{"type": "file_search", "vector_store_ids": ["v"]}]},
        {"reasoning": {"effort": "high", "summary": "auto"}}, {"include": ["reasoning.encrypted_content"]}, {"include": ["web_search_call.results"]},
        {"previous_response_id": "resp_1"}, {"conversation": "conv_1"}, {"prompt": {"id": "p"}}, {"background": true}, {"store": true}, {"store": false},
        {"truncation": "auto"}, {"truncation": "disabled"}, {"max_tool_calls": 3}, {"metadata": {"k": "v"}}, {"user": "u1"}, {"prompt_cache_key": "key"},
        {"safety_identifier": "sid"}, {"service_tier": "flex"}, {"context_management": [{"type": "compaction", "compact_threshold": 1000}]},
    ])
}

fn message_fields() -> Value {
    let function = json!({"name": "f", "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}}});
    let document = json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "facts"}, "citations": {"enabled": true}});
    json!([
        {"system": "be brief"}, {"temperature": 0.5}, {"top_p": 0.9}, {"top_k": 40}, {"stop_sequences": ["END"]}, {"metadata": {"user_id": "u1"}},
        {"tools": [function]}, {"tools": [function], "tool_choice": {"type": "any"}},
        {"tools": [function], "tool_choice": {"type": "auto", "disable_parallel_tool_use": true}},
        {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        {"tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 2}]},
        {"tools": [{"type": "web_search_20250305", "name": "web_search", "allowed_domains": ["a.org"]}]},
        {"tools": [{"type": "web_search_20250305", "name": "web_search", "blocked_domains": ["a.org"]}]},
        {"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]},
        {"messages": [{"role": "user", "content": [document]}]},
        {"thinking": {"type": "enabled", "budget_tokens": 2048}}, {"thinking": {"type": "disabled"}}, {"output_config": {"effort": "high"}},
        {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object", "properties": {}, "additionalProperties": false}}}},
        {"service_tier": "standard_only"}, {"speed": "fast"}, {"inference_geo": "eu"}, {"container": "c1"}, {"mcp_servers": [{"type": "url", "url": "https://a.org", "name": "n"}]},
        {"context_management": {"edits": []}}, {"thread": {"type": "create"}}, {"thread": {"type": "continue", "previous_message_id": "msg_1"}},
    ])
}

fn content_fields() -> Value {
    let function = json!([{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}]}]);
    let config = |value: Value| json!({"generationConfig": value});
    let calling =
        |value: Value| json!({"tools": function, "toolConfig": {"functionCallingConfig": value}});
    json!([
        {"systemInstruction": {"parts": [{"text": "be brief"}]}},
        config(json!({"maxOutputTokens": 77})), config(json!({"temperature": 0.5})), config(json!({"temperature": 1.5})), config(json!({"topP": 0.9})), config(json!({"topK": 40})),
        config(json!({"stopSequences": ["END"]})), config(json!({"candidateCount": 2})), config(json!({"seed": 7})), config(json!({"frequencyPenalty": 0.5})),
        config(json!({"presencePenalty": 0.5})), config(json!({"responseLogprobs": true, "logprobs": 2})), config(json!({"responseMimeType": "application/json"})),
        config(json!({"responseMimeType": "application/json", "responseJsonSchema": {"type": "object", "properties": {}}})),
        config(json!({"responseModalities": ["IMAGE"]})), config(json!({"speechConfig": {"languageCode": "en"}})),
        config(json!({"mediaResolution": "MEDIA_RESOLUTION_LOW"})), config(json!({"thinkingConfig": {"thinkingBudget": 2048}})), config(json!({"thinkingConfig": {"includeThoughts": true}})),
        {"tools": function}, calling(json!({"mode": "ANY"})), calling(json!({"mode": "VALIDATED"})),
        {"tools": [{"googleSearch": {}}]}, {"tools": [{"googleSearch": {"excludeDomains": ["a.org"]}}]}, {"tools": [{"codeExecution": {}}]},
        {"safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]}, {"cachedContent": "cachedContents/c"}, {"serviceTier": "flex"}, {"labels": {"k": "v"}},
    ])
}
