//! The fields of this format whose translation is shown in docs/chat/fields.md.

use serde_json::{Value, json};

use crate::format::FieldProbes;

pub(super) fn field_probes() -> FieldProbes {
    let function = json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}});
    let fields: Value = json!([
        {"max_completion_tokens": 77}, {"temperature": 0.5}, {"temperature": 1.5}, {"top_p": 0.9}, {"stop": ["END"]}, {"stop": [" "]},
        {"n": 2}, {"seed": 7}, {"frequency_penalty": 0.5}, {"presence_penalty": 0.5}, {"logit_bias": {"50256": -100}},
        {"logprobs": true, "top_logprobs": 2}, {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object", "properties": {}}}}},
        {"tools": [function]}, {"tools": [function], "tool_choice": "required"}, {"tools": [function], "parallel_tool_calls": false},
        {"tools": [{"type": "custom", "custom": {"name": "c", "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /x/"}}}}]},
        {"web_search_options": {}}, {"reasoning_effort": "high"}, {"verbosity": "low"}, {"user": "u1"}, {"metadata": {"k": "v"}}, {"store": true},
        {"prompt_cache_key": "key"}, {"safety_identifier": "sid"}, {"service_tier": "flex"}, {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "mp3"}},
        {"prediction": {"type": "content", "content": "x"}},
    ]);
    FieldProbes {
        plain_request: json!({"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}),
        fields: fields.as_array().cloned().unwrap_or_default(),
    }
}
