//! The fields of this format whose translation is shown in docs/chat/fields.md.

use serde_json::{Value, json};

use crate::format::FieldProbes;

pub(super) fn field_probes() -> FieldProbes {
    let function = json!({"type": "function", "name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}, "strict": false});
    let fields: Value = json!([
        {"instructions": "be brief"}, {"max_output_tokens": 77}, {"temperature": 0.5}, {"top_p": 0.9}, {"top_logprobs": 2},
        {"text": {"format": {"type": "json_object"}}}, {"text": {"verbosity": "low"}},
        {"tools": [function]}, {"tools": [function], "tool_choice": "required"}, {"tools": [function], "parallel_tool_calls": false},
        {"tools": [{"type": "namespace", "name": "ns", "tools": [function]}]}, {"tools": [{"type": "web_search"}]},
        {"tools": [{"type": "web_search", "filters": {"allowed_domains": ["a.org"]}}]}, {"tools": [{"type": "file_search", "vector_store_ids": ["v"]}]},
        {"reasoning": {"effort": "high", "summary": "auto"}}, {"include": ["reasoning.encrypted_content"]}, {"include": ["web_search_call.results"]},
        {"previous_response_id": "resp_1"}, {"conversation": "conv_1"}, {"prompt": {"id": "p"}}, {"background": true}, {"store": true}, {"store": false},
        {"truncation": "auto"}, {"truncation": "disabled"}, {"max_tool_calls": 3}, {"metadata": {"k": "v"}}, {"user": "u1"}, {"prompt_cache_key": "key"},
        {"safety_identifier": "sid"}, {"service_tier": "flex"}, {"context_management": [{"type": "compaction", "compact_threshold": 1000}]},
    ]);
    FieldProbes {
        plain_request: json!({"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]}),
        fields: fields.as_array().cloned().unwrap_or_default(),
    }
}
