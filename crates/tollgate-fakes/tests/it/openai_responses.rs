//! What responses refuses.

use serde_json::{Value, json};

use crate::client::{PNG, RESPONSES};

#[tokio::test]
async fn parameters() {
    let base = (RESPONSES.body)("hello");
    RESPONSES
        .table(
            &base,
            &[
                ("", json!({})),
                ("moved-field", json!({"max_tokens": 9})),
                ("moved-field", json!({"response_format": {"type": "text"}})),
                ("moved-field", json!({"messages": []})),
                ("unknown-field", json!({"stop": "x"})),
                ("unknown-field", json!({"n": 1})),
                ("unknown-field", json!({"seed": 1})),
                (
                    "unknown-field",
                    json!({"stream": true,
                    "stream_options": {"include_usage": true}}),
                ),
                ("stream-options", json!({"stream_options": {}})),
                ("missing-field", json!({"model": null})),
                ("input", json!({"input": null})),
                ("range", json!({"temperature": 2.5})),
                ("range", json!({"max_output_tokens": 0})),
                ("value", json!({"include": ["everything"]})),
                (
                    "unsupported-parameter",
                    json!({"reasoning": {"effort": "low"}}),
                ),
                (
                    "",
                    json!({"model": "gpt-5", "reasoning": {"effort": "low", "summary": "auto"}}),
                ),
                (
                    "unsupported-value",
                    json!({"model": "o3", "temperature": 0.5}),
                ),
                (
                    "previous-response",
                    json!({"previous_response_id": "elsewhere"}),
                ),
                ("", json!({"previous_response_id": "resp_1"})),
                (
                    "two-states",
                    json!({"previous_response_id": "resp_1", "conversation": "c"}),
                ),
                (
                    "name-pattern",
                    json!({"text": {"format": {"type": "json_schema",
                    "name": "a b", "schema": {"type": "object"}}}}),
                ),
                (
                    "unknown-field",
                    json!({"text": {"format": {"type": "json_schema",
                    "json_schema": {"name": "n", "schema": {}}}}}),
                ),
                (
                    "json-word",
                    json!({"text": {"format": {"type": "json_object"}}}),
                ),
            ],
        )
        .await;
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "done"})
}

fn with(mut item: Value, name: &str, value: Value) -> Value {
    item[name] = value;
    item
}

#[tokio::test]
async fn items() {
    let base = (RESPONSES.body)("hello");
    let input = |items: &[Value]| json!({"input": items});
    let message = |role: &str, part: Value| json!({"input": [{"type": "message", "role": role, "content": [part]}]});
    let user = json!({"role": "user", "content": "hello"});
    let reasoning = |content: &str| json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": content});
    let long = "x".repeat(65);
    RESPONSES
        .table(
            &base,
            &[
                (
                    "",
                    input(&[user.clone(), call("a"), call("b"), output("b"), output("a")]),
                ),
                ("missing-result", input(&[call("a"), user.clone()])),
                ("orphan-result", input(&[output("a")])),
                ("duplicate-id", input(&[call("a"), call("a"), output("a")])),
                (
                    "",
                    input(&[json!({"type": "item_reference", "id": "fc_1"}), output("a")]),
                ),
                ("length", input(&[call(&long), output(&long)])),
                (
                    "item-id",
                    input(&[with(call("a"), "id", json!("call_1")), output("a")]),
                ),
                (
                    "item-type",
                    input(&[json!({"type": "tool_result", "id": "x"})]),
                ),
                (
                    "value",
                    json!({"input": [{"role": "tool", "content": "x"}]}),
                ),
                (
                    "missing-field",
                    input(&[json!({"type": "function_call", "call_id": "a"})]),
                ),
                ("type", input(&[with(call("a"), "arguments", json!({}))])),
                (
                    "",
                    message("user", json!({"type": "input_text", "text": "x"})),
                ),
                (
                    "part-type",
                    message("user", json!({"type": "text", "text": "x"})),
                ),
                (
                    "part-type",
                    message("assistant", json!({"type": "input_text", "text": "x"})),
                ),
                (
                    "",
                    message(
                        "assistant",
                        json!({"type": "output_text", "text": "x",
                    "annotations": []}),
                    ),
                ),
                (
                    "",
                    message(
                        "user",
                        json!({"type": "input_image",
                    "image_url": format!("data:image/png;base64,{PNG}")}),
                    ),
                ),
                (
                    "type",
                    message(
                        "user",
                        json!({"type": "input_image",
                    "image_url": {"url": "https://example.org/"}}),
                    ),
                ),
                (
                    "image",
                    message(
                        "user",
                        json!({"type": "input_image",
                    "image_url": "data:image/png;base64,AAAA"}),
                    ),
                ),
                (
                    "missing-field",
                    message("user", json!({"type": "input_file"})),
                ),
                (
                    "",
                    input(&[
                        user.clone(),
                        reasoning("enc_fake_1"),
                        call("a"),
                        output("a"),
                    ]),
                ),
                (
                    "encrypted-content",
                    input(&[reasoning("gAAA"), call("a"), output("a")]),
                ),
                (
                    "lone-reasoning",
                    input(&[user.clone(), reasoning("enc_fake_1")]),
                ),
            ],
        )
        .await;
}

#[tokio::test]
async fn tools() {
    let base = (RESPONSES.body)("hello");
    let tool = |tool: Value| json!({"tools": [tool]});
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    RESPONSES
        .table(
            &base,
            &[
                (
                    "",
                    tool(json!({"type": "function", "name": "f", "parameters": open})),
                ),
                (
                    "missing-field",
                    tool(json!({"type": "function", "function": {"name": "f"}})),
                ),
                (
                    "strict-schema",
                    tool(json!({"type": "function", "name": "f",
                    "parameters": open, "strict": true})),
                ),
                (
                    "name-length",
                    tool(json!({"type": "function", "name": "f".repeat(65)})),
                ),
                (
                    "tool-type",
                    tool(json!({"type": "remote_mcp", "remote_mcp": {}})),
                ),
                ("", tool(json!({"type": "web_search"}))),
                ("", tool(json!({"type": "custom", "name": "f"}))),
                (
                    "unknown-field",
                    tool(json!({"type": "custom", "name": "f", "custom": {}})),
                ),
                ("choice-without-tools", json!({"tool_choice": "required"})),
                (
                    "tool-choice",
                    json!({"tool_choice": {"type": "function",
                    "function": {"name": "f"}}, "tools": [{"type": "function", "name": "f"}]}),
                ),
                (
                    "tool-choice",
                    json!({"tool_choice": {"type": "function", "name": "g"},
                    "tools": [{"type": "function", "name": "f"}]}),
                ),
            ],
        )
        .await;
}

#[tokio::test]
async fn a_tool_is_strict_unless_it_says_otherwise() {
    let fake = RESPONSES.start().await;
    let mut body = (RESPONSES.body)("hello");
    body["tools"] = json!([{"type": "function", "name": "f"},
        {"type": "function", "name": "g", "strict": false}]);
    let tools = &RESPONSES.post(&fake, &body).await.json()["tools"];
    assert_eq!(tools[0]["strict"], true);
    assert_eq!(tools[1]["strict"], false);
}
