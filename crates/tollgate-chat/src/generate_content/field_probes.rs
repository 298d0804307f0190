//! The fields of this format whose translation is shown in docs/chat/fields.md.

use serde_json::{Value, json};

use crate::format::FieldProbes;

pub(super) fn field_probes() -> FieldProbes {
    let function = json!([{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}]}]);
    let config = |value: Value| json!({"generationConfig": value});
    let calling =
        |value: Value| json!({"tools": function, "toolConfig": {"functionCallingConfig": value}});
    let fields: Value = json!([
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
    ]);
    FieldProbes {
        plain_request: json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
        fields: fields.as_array().cloned().unwrap_or_default(),
    }
}
