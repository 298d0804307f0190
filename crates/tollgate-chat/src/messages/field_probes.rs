//! The fields of this format whose translation is shown in docs/chat/fields.md.

use serde_json::{Value, json};

use crate::format::FieldProbes;

pub(super) fn field_probes() -> FieldProbes {
    let function = json!({"name": "f", "input_schema": {"type": "object", "properties": {"a": {"type": "string"}}}});
    let document = json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "facts"}, "citations": {"enabled": true}});
    let fields: Value = json!([
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
    ]);
    FieldProbes {
        plain_request: json!({"model": "m", "max_tokens": 4096, "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}),
        fields: fields.as_array().cloned().unwrap_or_default(),
    }
}
